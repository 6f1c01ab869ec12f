/* Finds the call frame sections of a file by its section headers, with libelf. */
#ifndef STALLGRAPH_UNWIND_CFI_SECTIONS_H
#define STALLGRAPH_UNWIND_CFI_SECTIONS_H

#include "profiler/unwind/cfi_record.h"

enum { CFI_SECTION_MAX_BYTES = 64 << 20 };

/* .eh_frame: where it is loaded. Returns 0 with a section that reads from the binary, or -ENOENT. */
int cfi_sections_find_eh_frame(const struct binary *binary, struct cfi_section *ret_section);

/* .debug_frame: read as a whole, decompressed if need be. Returns 0 with bytes that the caller frees, or
 * -ENOENT. */
int cfi_sections_read_debug_frame(const struct binary *binary, uint8_t **ret_bytes, size_t *ret_size_bytes);

#endif
