/* .gnu_debugdata: an xz-compressed ELF file with the symbols that .dynsym lacks (GDB manual,
 * "MiniDebugInfo"). */
#ifndef STALLGRAPH_SYMBOLIZE_MINIDEBUGINFO_H
#define STALLGRAPH_SYMBOLIZE_MINIDEBUGINFO_H

#include <stddef.h>

#include "profiler/symbolize/elf_file.h"

/* Opens the ELF file inside. Returns 0, -ENOENT where there is none, -ENOEXEC where it is broken, -EFBIG
 * where it unpacks to more than 128 MiB or needs more than 128 MiB of memory for it. */
int minidebuginfo_open(struct elf_file *file, struct elf_file *ret_inner);

/* Unpacks xz, at most limit_bytes. The caller frees *ret_bytes. */
int minidebuginfo_unpack(const void *packed, size_t packed_size, size_t limit_bytes, char **ret_bytes,
                         size_t *ret_size);

#endif
