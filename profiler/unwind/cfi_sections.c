#include "profiler/unwind/cfi_sections.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "profiler/base/memory.h"

enum { NAMES_MAX_BYTES = 16 << 20 };

/* elf_strptr reads the names of the sections whole, whatever their size, which the file says. */
static bool has_sound_names(Elf *elf, size_t names)
{
    GElf_Shdr header;

    return gelf_getshdr(elf_getscn(elf, names), &header) != NULL && header.sh_size <= NAMES_MAX_BYTES;
}

/* The callers see to elf_end: a section lives as long as its Elf. */
static Elf_Scn *find_section(Elf *elf, const char *name, GElf_Shdr *ret_header)
{
    Elf_Scn *section = NULL;
    size_t names;

    if (elf == NULL || elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names) != 0 ||
        !has_sound_names(elf, names))
        return NULL;
    while ((section = elf_nextscn(elf, section)) != NULL) {
        const char *found;

        if (gelf_getshdr(section, ret_header) == NULL || ret_header->sh_type == SHT_NOBITS)
            continue;
        found = elf_strptr(elf, names, ret_header->sh_name);
        if (found != NULL && strcmp(found, name) == 0)
            return section;
    }
    return NULL;
}

/* ELF_C_READ, never ELF_C_READ_MMAP: a file that shrinks while it is mapped kills the reader. */
static Elf *open_elf(const struct binary *binary)
{
    if (binary->fd < 0 || !binary->is_elf || elf_version(EV_CURRENT) == EV_NONE)
        return NULL;
    return elf_begin(binary->fd, ELF_C_READ, NULL);
}

int cfi_sections_find_eh_frame(const struct binary *binary, struct cfi_section *ret_section)
{
    Elf *elf = open_elf(binary);
    GElf_Shdr header;
    Elf_Scn *section = find_section(elf, ".eh_frame", &header);

    if (section != NULL && header.sh_size > 0 && header.sh_size <= CFI_SECTION_MAX_BYTES)
        *ret_section =
            (struct cfi_section){.binary = binary, .vaddr = header.sh_addr, .size_bytes = header.sh_size};
    else
        section = NULL;
    elf_end(elf);
    return section != NULL ? 0 : -ENOENT;
}

/* Go compresses its debug sections; a small file may claim to hold a huge one. */
static bool decompress(Elf_Scn *section, const GElf_Shdr *header)
{
    GElf_Chdr compression;

    if ((header->sh_flags & SHF_COMPRESSED) == 0)
        return true;
    return gelf_getchdr(section, &compression) != NULL && compression.ch_size <= CFI_SECTION_MAX_BYTES &&
           elf_compress(section, 0, 0) >= 0;
}

int cfi_sections_read_debug_frame(const struct binary *binary, uint8_t **ret_bytes, size_t *ret_size_bytes)
{
    Elf *elf = open_elf(binary);
    GElf_Shdr header;
    Elf_Scn *section = find_section(elf, ".debug_frame", &header);
    Elf_Data *data = NULL;

    if (section != NULL && header.sh_size <= CFI_SECTION_MAX_BYTES && decompress(section, &header))
        data = elf_getdata(section, NULL);
    if (data != NULL && data->d_buf != NULL && data->d_size > 0 && data->d_size <= CFI_SECTION_MAX_BYTES) {
        *ret_bytes = memory_copy(data->d_buf, data->d_size);
        *ret_size_bytes = data->d_size;
    } else {
        data = NULL;
    }
    elf_end(elf);
    return data != NULL ? 0 : -ENOENT;
}
