#include "profiler/model/binary.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

enum {
    MAX_PROGRAM_HEADERS = 4096,
    MAX_NOTE_SEGMENT_BYTES = 1 << 16,
    MAX_VDSO_BYTES = 1 << 20,
    PAGE_BYTES = 4096,
    NO_BINARY = UINT32_MAX,
};

#if defined(__x86_64__)
static const uint16_t NATIVE_MACHINE = EM_X86_64;
#else
#error "name the ELF machine of this architecture"
#endif

struct binary_table {
    VEC_OF(struct binary *) binaries;
    VEC_OF(uint32_t) next_of_key; /* by id: an older binary whose key has the same hash, or NO_BINARY */
    struct id_map newest_of_key;  /* hash of device and inode -> id */
    struct id_map jit_of_process; /* process id -> id */
    uint32_t vdso;                /* id, or NO_BINARY */
};

static uint64_t hash_key(const struct binary_key *key)
{
    return hash_mix(hash_mix(0, key->device), key->inode);
}

struct binary_table *binary_table_create(void)
{
    struct binary_table *table = memory_zeroed(1, sizeof *table);

    table->vdso = NO_BINARY;
    return table;
}

void binary_table_destroy(struct binary_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->binaries.count; i++) {
        struct binary *binary = table->binaries.items[i];

        if (binary->fd >= 0)
            close(binary->fd);
        free(binary->path);
        free(binary->segments);
        free((void *)binary->image);
        free(binary);
    }
    free(table->binaries.items);
    free(table->next_of_key.items);
    id_map_finish(&table->newest_of_key);
    id_map_finish(&table->jit_of_process);
    free(table);
}

struct binary *binary_table_get(const struct binary_table *table, uint32_t id)
{
    return id < table->binaries.count ? table->binaries.items[id] : NULL;
}

uint32_t binary_table_count(const struct binary_table *table)
{
    return (uint32_t)table->binaries.count;
}

struct binary *binary_table_find(const struct binary_table *table, const struct binary_key *key)
{
    uint32_t id;

    if (!id_map_get(&table->newest_of_key, hash_key(key), &id))
        return NULL;
    for (; id != NO_BINARY; id = table->next_of_key.items[id]) {
        struct binary *binary = table->binaries.items[id];

        if (binary->key.device != key->device || binary->key.inode != key->inode)
            continue;
        if (key->generation == 0 || binary->key.generation == key->generation)
            return binary;
        /* First seen in /proc/PID/maps, which tells no generation: the first one heard of becomes its own, so
         * that an inode that is used again later is somebody else. */
        if (binary->key.generation == 0) {
            binary->key.generation = key->generation;
            return binary;
        }
    }
    return NULL;
}

static struct binary *add(struct binary_table *table, enum binary_kind kind, const char *path)
{
    struct binary *binary = memory_zeroed(1, sizeof *binary);

    binary->id = (uint32_t)table->binaries.count;
    binary->kind = kind;
    binary->path = string_copy(path);
    binary->fd = -1;
    VEC_PUSH(&table->binaries, binary);
    VEC_PUSH(&table->next_of_key, NO_BINARY);
    return binary;
}

/* Notes: 4-byte name size, descriptor size and type, then the name and the descriptor, each padded. */
static void find_build_id(struct binary *binary, const Elf64_Phdr *header)
{
    uint64_t size = header->p_filesz < MAX_NOTE_SEGMENT_BYTES ? header->p_filesz : MAX_NOTE_SEGMENT_BYTES;
    uint64_t align = header->p_align == 8 ? 8 : 4;
    AUTO_FREE uint8_t *bytes = memory_zeroed(size + 1, 1);
    ssize_t got = binary_read(binary, header->p_offset, bytes, size);
    uint64_t at = 0;

    if (got < 0)
        return;
    size = (uint64_t)got;
    while (size - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        uint64_t name;
        uint64_t descriptor;

        memcpy(&note, bytes + at, sizeof note);
        name = at + sizeof note;
        descriptor = (name + note.n_namesz + align - 1) / align * align; /* 32-bit sizes: no overflow */
        at = (descriptor + note.n_descsz + align - 1) / align * align;
        if (descriptor + note.n_descsz > size)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(bytes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 && note.n_descsz > 0 &&
            note.n_descsz <= BINARY_BUILD_ID_MAX_BYTES) {
            memcpy(binary->build_id, bytes + descriptor, note.n_descsz);
            binary->build_id_size_bytes = note.n_descsz;
            return;
        }
        if (at > size)
            return;
    }
}

static void add_segment(struct binary *binary, const Elf64_Phdr *header)
{
    /* Ranges that wrap around would make every later sum a trap: such a header is none. */
    if (header->p_filesz > header->p_memsz || header->p_offset > INT64_MAX - PAGE_BYTES ||
        header->p_filesz > INT64_MAX - PAGE_BYTES - header->p_offset ||
        header->p_memsz > UINT64_MAX - PAGE_BYTES ||
        header->p_vaddr > UINT64_MAX - PAGE_BYTES - header->p_memsz)
        return;
    binary->segments[binary->segment_count++] = (struct binary_segment){
        .vaddr = header->p_vaddr,
        .offset = header->p_offset,
        .file_size_bytes = header->p_filesz,
        .memory_size_bytes = header->p_memsz,
        .executable = (header->p_flags & PF_X) != 0,
    };
}

/* PN_XNUM: more headers than e_phnum can hold; the first section header knows how many. */
static uint64_t program_header_count(const struct binary *binary, const Elf64_Ehdr *header)
{
    Elf64_Shdr section;

    if (header->e_phnum != PN_XNUM)
        return header->e_phnum;
    if (header->e_shoff == 0 ||
        binary_read(binary, header->e_shoff, &section, sizeof section) != sizeof section)
        return 0;
    return section.sh_info;
}

static void read_elf_headers(struct binary *binary)
{
    AUTO_FREE Elf64_Phdr *headers = NULL;
    Elf64_Ehdr header;
    uint64_t count;
    ssize_t got;

    if (binary_read(binary, 0, &header, sizeof header) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != NATIVE_MACHINE ||
        (header.e_type != ET_EXEC && header.e_type != ET_DYN) || header.e_phentsize != sizeof *headers)
        return;
    count = program_header_count(binary, &header);
    if (count == 0 || count > MAX_PROGRAM_HEADERS)
        return;
    headers = memory_zeroed(count, sizeof *headers);
    got = binary_read(binary, header.e_phoff, headers, count * sizeof *headers);
    if (got < (ssize_t)sizeof *headers)
        return;
    count = (uint64_t)got / sizeof *headers;
    binary->segments = memory_zeroed(count, sizeof *binary->segments);
    binary->is_elf = true;
    binary->elf_type = header.e_type;
    for (uint64_t i = 0; i < count; i++) {
        if (headers[i].p_type == PT_LOAD)
            add_segment(binary, &headers[i]);
        else if (headers[i].p_type == PT_NOTE && binary->build_id_size_bytes == 0)
            find_build_id(binary, &headers[i]);
        else if (headers[i].p_type == PT_GNU_EH_FRAME) {
            binary->eh_frame_hdr_vaddr = headers[i].p_vaddr;
            binary->eh_frame_hdr_size_bytes = headers[i].p_memsz;
        }
    }
}

struct binary *binary_table_add_file(struct binary_table *table, const struct binary_key *key,
                                     const char *path, int fd)
{
    struct binary *binary = add(table, BINARY_FILE, path);
    uint64_t hash = hash_key(key);

    binary->key = *key;
    binary->fd = fd;
    id_map_get(&table->newest_of_key, hash, &table->next_of_key.items[binary->id]);
    id_map_put(&table->newest_of_key, hash, binary->id);
    if (fd >= 0)
        read_elf_headers(binary);
    return binary;
}

/* The kernel maps the whole image, section headers last; nothing but its own headers says how long it is. */
static size_t vdso_size_bytes(const uint8_t *image)
{
    Elf64_Ehdr header;
    uint64_t size;

    memcpy(&header, image, sizeof header);
    size = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
    for (uint16_t i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;

        memcpy(&segment, image + header.e_phoff + (uint64_t)i * sizeof segment, sizeof segment);
        if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > size)
            size = segment.p_offset + segment.p_filesz;
    }
    return size <= MAX_VDSO_BYTES ? size : 0;
}

struct binary *binary_table_vdso(struct binary_table *table)
{
    const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    struct binary *binary;

    if (table->vdso != NO_BINARY)
        return table->binaries.items[table->vdso];
    binary = add(table, BINARY_VDSO, "[vdso]");
    table->vdso = binary->id;
    if (image != NULL) {
        binary->image_size_bytes = vdso_size_bytes(image);
        binary->image = memory_copy(image, binary->image_size_bytes);
        read_elf_headers(binary);
    }
    return binary;
}

struct binary *binary_table_jit(struct binary_table *table, uint32_t process)
{
    struct binary *binary;
    uint32_t id;

    if (id_map_get(&table->jit_of_process, process, &id))
        return table->binaries.items[id];
    binary = add(table, BINARY_JIT, "[jit]");
    binary->jit_process = process;
    id_map_put(&table->jit_of_process, process, binary->id);
    return binary;
}

ssize_t binary_read(const struct binary *binary, uint64_t offset, void *bytes, size_t size_bytes)
{
    if (binary->image != NULL) {
        if (offset >= binary->image_size_bytes)
            return 0;
        if (size_bytes > binary->image_size_bytes - offset)
            size_bytes = binary->image_size_bytes - offset;
        memcpy(bytes, binary->image + offset, size_bytes);
        return (ssize_t)size_bytes;
    }
    if (binary->fd < 0)
        return -EBADF;
    if (size_bytes > INT64_MAX || offset > INT64_MAX - size_bytes)
        return 0; /* no file is that long */
    return file_read_at(binary->fd, bytes, size_bytes, (off_t)offset);
}

/* Does [start, start+size), or with whole_pages the pages that it touches, hold value? */
static bool range_holds(uint64_t start, uint64_t size, uint64_t value, bool whole_pages)
{
    uint64_t end = start + size;

    if (size == 0)
        return false;
    if (whole_pages) {
        start = start / PAGE_BYTES * PAGE_BYTES;
        end = (end + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    }
    return start <= value && value < end;
}

bool binary_offset_to_vaddr(const struct binary *binary, uint64_t offset, uint64_t *ret_vaddr)
{
    /* Executable before not, then exactly held before held by its pages. */
    for (int pass = 0; pass < 4; pass++)
        for (size_t i = 0; i < binary->segment_count; i++) {
            const struct binary_segment *segment = &binary->segments[i];

            if (segment->executable == (pass < 2) &&
                range_holds(segment->offset, segment->file_size_bytes, offset, pass % 2 == 1)) {
                *ret_vaddr = segment->vaddr + (offset - segment->offset);
                return true;
            }
        }
    return false;
}

bool binary_vaddr_to_offset(const struct binary *binary, uint64_t vaddr, uint64_t *ret_offset)
{
    /* Pages overlap in the file, hardly ever in memory: an exact holder is the right one. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < binary->segment_count; i++) {
            const struct binary_segment *segment = &binary->segments[i];

            if (range_holds(segment->vaddr, segment->file_size_bytes, vaddr, pass == 1)) {
                *ret_offset = segment->offset + (vaddr - segment->vaddr);
                return true;
            }
        }
    return false;
}

const char *binary_base_name(const struct binary *binary)
{
    const char *slash = strrchr(binary->path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : binary->path;
}
