/* A 64-bit ELF file of this machine's byte order, read through libelf with what a hostile file could do to
 * libelf checked first: a section table that is larger than the file, sections of any size, a file that
 * shrinks meanwhile (it is read by pread, never mapped).
 *
 *   struct elf_file file;
 *   if (elf_file_open(&file, fd) == 0) {
 *       struct elf_section symtab;
 *       if (elf_file_find(&file, ".symtab", &symtab) && elf_file_load(&file, &symtab)) ... symtab.bytes ...
 *       elf_file_close(&file);
 *   } */
#ifndef STALLGRAPH_SYMBOLIZE_ELF_FILE_H
#define STALLGRAPH_SYMBOLIZE_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

#include "profiler/model/binary.h"

struct elf_file {
    Elf *elf;
    int fd;      /* our own, or -1 */
    char *image; /* our own, or NULL */
    size_t section_count;
    uint16_t machine;      /* EM_X86_64 ... */
    uint64_t loaded_bytes; /* of all sections together */
};

struct elf_section {
    Elf_Scn *scn;
    Elf64_Shdr header;
    const uint8_t *bytes; /* NULL until elf_file_load; aligned as the file has it: read with memcpy */
    size_t size_bytes;
};

/* Duplicates fd. Returns 0, or -errno: -ENOEXEC where it is no sound ELF file. */
int elf_file_open(struct elf_file *file, int fd);
/* Takes over the image (from malloc), also on failure. */
int elf_file_open_image(struct elf_file *file, char *image, size_t size_bytes);
/* The file of a binary, or its image. Returns -EBADF where it has neither. */
int elf_file_open_binary(struct elf_file *file, const struct binary *binary);
void elf_file_close(struct elf_file *file);

/* By index, from 1; by name, the first. False where there is none. */
bool elf_file_section(const struct elf_file *file, size_t index, struct elf_section *ret_section);
bool elf_file_find(const struct elf_file *file, const char *name, struct elf_section *ret_section);
/* "" where it has none. Valid until the file is closed. */
const char *elf_file_section_name(const struct elf_file *file, const struct elf_section *section);

/* Reads its bytes. False where it has none (SHT_NOBITS, compressed, out of the file) or more than the limit,
 * or where all that was loaded from the file would exceed 512 MiB. Valid until the file is closed. */
bool elf_file_load(struct elf_file *file, struct elf_section *section, uint64_t limit_bytes);

/* The string at an offset of a loaded section, not NUL-terminated where the section ends first. Length 0 out
 * of it. */
const char *elf_section_string(const struct elf_section *section, uint64_t offset, size_t *ret_length);

/* From a note section. Returns its size, 0 = none. */
size_t elf_file_build_id(struct elf_file *file, uint8_t build_id[static BINARY_BUILD_ID_MAX_BYTES]);

/* .gnu_debuglink (GDB manual, "Separate Debug Files"): a base name, NUL, padding to 4, CRC-32 of the debug
 * file. */
struct elf_debug_link {
    char name[256]; /* never with '/' */
    uint32_t crc;
};
bool elf_file_debug_link(struct elf_file *file, struct elf_debug_link *ret_link);

#endif
