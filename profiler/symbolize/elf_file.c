#include "profiler/symbolize/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/base/file.h"
#include "profiler/base/memory.h"

enum { SECTIONS_MAX = 1 << 18 };
enum { NOTES_MAX_BYTES = 64 * 1024, DEBUG_LINK_MAX_BYTES = 4096, SECTION_NAMES_MAX_BYTES = 16 << 20 };
#define LOADED_MAX_BYTES (UINT64_C(512) << 20)

/* Where the header comes from while it is checked. */
struct header_source {
    int fd;
    const char *image;
    uint64_t size_bytes;
};

static bool read_source(const struct header_source *source, uint64_t offset, void *bytes, size_t size_bytes)
{
    if (offset > source->size_bytes || source->size_bytes - offset < size_bytes)
        return false;
    if (source->image != NULL) {
        memcpy(bytes, source->image + offset, size_bytes);
        return true;
    }
    return file_read_at(source->fd, bytes, size_bytes, (off_t)offset) == (ssize_t)size_bytes;
}

/* libelf allocates for as many sections as the file claims, before it looks whether they are there. */
static bool has_sound_header(const struct header_source *source, uint16_t *ret_machine)
{
    Elf64_Ehdr header;
    Elf64_Shdr first;
    uint64_t count;

    if (!read_source(source, 0, &header, sizeof header))
        return false;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB))
        return false;
    if (header.e_shoff == 0 || header.e_shentsize != sizeof(Elf64_Shdr))
        return false;
    if (!read_source(source, header.e_shoff, &first, sizeof first))
        return false;
    /* A count that does not fit 16 bits stands in section 0 (gABI, e_shnum). */
    count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
    if (count > SECTIONS_MAX || (source->size_bytes - header.e_shoff) / sizeof(Elf64_Shdr) < count)
        return false;
    *ret_machine = header.e_machine;
    return true;
}

/* elf_strptr reads the names of the sections whole, whatever their size. */
static bool has_sound_section_names(const struct elf_file *file)
{
    struct elf_section names;
    size_t index;

    return elf_getshdrstrndx(file->elf, &index) == 0 && elf_file_section(file, index, &names) &&
           names.header.sh_size <= SECTION_NAMES_MAX_BYTES;
}

static int finish_open(struct elf_file *file)
{
    if (file->elf == NULL || elf_kind(file->elf) != ELF_K_ELF ||
        elf_getshdrnum(file->elf, &file->section_count) != 0 || !has_sound_section_names(file)) {
        elf_file_close(file);
        return -ENOEXEC;
    }
    return 0;
}

int elf_file_open(struct elf_file *file, int fd)
{
    struct header_source source = {.fd = fd};
    struct stat st;

    *file = (struct elf_file){.fd = -1};
    if (fd < 0)
        return -EBADF;
    if (fstat(fd, &st) < 0)
        return -errno;
    source.size_bytes = st.st_size > 0 ? (uint64_t)st.st_size : 0;
    if (!S_ISREG(st.st_mode) || !has_sound_header(&source, &file->machine))
        return -ENOEXEC;
    file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (file->fd < 0)
        return -errno;
    elf_version(EV_CURRENT);
    file->elf = elf_begin(file->fd, ELF_C_READ, NULL);
    return finish_open(file);
}

int elf_file_open_image(struct elf_file *file, char *image, size_t size_bytes)
{
    struct header_source source = {.fd = -1, .image = image, .size_bytes = size_bytes};

    *file = (struct elf_file){.fd = -1, .image = image};
    if (!has_sound_header(&source, &file->machine)) {
        elf_file_close(file);
        return -ENOEXEC;
    }
    elf_version(EV_CURRENT);
    file->elf = elf_memory(image, size_bytes);
    return finish_open(file);
}

int elf_file_open_binary(struct elf_file *file, const struct binary *binary)
{
    if (binary->image != NULL)
        return elf_file_open_image(file, memory_copy(binary->image, binary->image_size_bytes),
                                   binary->image_size_bytes);
    return elf_file_open(file, binary->fd);
}

void elf_file_close(struct elf_file *file)
{
    if (file->elf != NULL)
        elf_end(file->elf);
    if (file->fd >= 0)
        close(file->fd);
    free(file->image);
    *file = (struct elf_file){.fd = -1};
}

bool elf_file_section(const struct elf_file *file, size_t index, struct elf_section *ret_section)
{
    Elf_Scn *scn = index > 0 && index < file->section_count ? elf_getscn(file->elf, index) : NULL;
    const Elf64_Shdr *header = scn != NULL ? elf64_getshdr(scn) : NULL;

    if (header == NULL)
        return false;
    *ret_section = (struct elf_section){.scn = scn, .header = *header};
    return true;
}

const char *elf_file_section_name(const struct elf_file *file, const struct elf_section *section)
{
    size_t names_index;
    const char *name;

    if (elf_getshdrstrndx(file->elf, &names_index) != 0)
        return "";
    name = elf_strptr(file->elf, names_index, section->header.sh_name);
    return name != NULL ? name : "";
}

bool elf_file_find(const struct elf_file *file, const char *name, struct elf_section *ret_section)
{
    for (size_t i = 1; i < file->section_count; i++) {
        struct elf_section section;

        if (elf_file_section(file, i, &section) && strcmp(elf_file_section_name(file, &section), name) == 0) {
            *ret_section = section;
            return true;
        }
    }
    return false;
}

bool elf_file_load(struct elf_file *file, struct elf_section *section, uint64_t limit_bytes)
{
    const Elf_Data *data;

    if (section->header.sh_type == SHT_NOBITS || section->header.sh_size > limit_bytes ||
        section->header.sh_size > LOADED_MAX_BYTES - file->loaded_bytes ||
        (section->header.sh_flags & SHF_COMPRESSED) != 0)
        return false;
    /* Raw: class and byte order are this machine's, so nothing needs conversion. */
    data = elf_rawdata(section->scn, NULL);
    if (data == NULL || data->d_buf == NULL || data->d_size == 0)
        return false;
    file->loaded_bytes += data->d_size;
    section->bytes = data->d_buf;
    section->size_bytes = data->d_size;
    return true;
}

const char *elf_section_string(const struct elf_section *section, uint64_t offset, size_t *ret_length)
{
    const char *text = (const char *)section->bytes;

    *ret_length = 0;
    if (text == NULL || offset >= section->size_bytes)
        return "";
    *ret_length = strnlen(text + offset, section->size_bytes - offset);
    return text + offset;
}

/* Notes are {name size, content size, type}, then both, each padded to 4 bytes. */
static size_t build_id_in_notes(const struct elf_section *section, uint8_t *build_id)
{
    size_t at = 0;

    while (section->size_bytes - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        uint64_t name_size;
        uint64_t content_size;

        memcpy(&note, section->bytes + at, sizeof note);
        at += sizeof note;
        name_size = ((uint64_t)note.n_namesz + 3) & ~UINT64_C(3);
        content_size = ((uint64_t)note.n_descsz + 3) & ~UINT64_C(3);
        if (name_size > section->size_bytes - at)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(section->bytes + at, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            if (note.n_descsz > section->size_bytes - at - name_size ||
                note.n_descsz > BINARY_BUILD_ID_MAX_BYTES)
                return 0;
            memcpy(build_id, section->bytes + at + name_size, note.n_descsz);
            return note.n_descsz;
        }
        at += name_size;
        if (content_size > section->size_bytes - at)
            return 0;
        at += content_size;
    }
    return 0;
}

size_t elf_file_build_id(struct elf_file *file, uint8_t build_id[static BINARY_BUILD_ID_MAX_BYTES])
{
    for (size_t i = 1; i < file->section_count; i++) {
        struct elf_section section;
        size_t size = 0;

        if (elf_file_section(file, i, &section) && section.header.sh_type == SHT_NOTE &&
            elf_file_load(file, &section, NOTES_MAX_BYTES))
            size = build_id_in_notes(&section, build_id);
        if (size > 0)
            return size;
    }
    return 0;
}

bool elf_file_debug_link(struct elf_file *file, struct elf_debug_link *ret_link)
{
    struct elf_section section;
    size_t length;
    size_t crc_at;
    const char *name;

    if (!elf_file_find(file, ".gnu_debuglink", &section) ||
        !elf_file_load(file, &section, DEBUG_LINK_MAX_BYTES))
        return false;
    name = elf_section_string(&section, 0, &length);
    crc_at = (length + 1 + 3) & ~(size_t)3;
    if (length == 0 || length >= sizeof ret_link->name || memchr(name, '/', length) != NULL ||
        crc_at + sizeof ret_link->crc > section.size_bytes)
        return false;
    memcpy(ret_link->name, name, length);
    ret_link->name[length] = '\0';
    memcpy(&ret_link->crc, section.bytes + crc_at, sizeof ret_link->crc);
    return true;
}
