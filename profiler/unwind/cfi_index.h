/* From an address of a binary to its call frame record. Of .eh_frame_hdr's sorted table where there is one,
 * else of an index that is made by reading .eh_frame or .debug_frame once.
 *
 *   struct cfi_index *index = cfi_index_create(binary);
 *   if (cfi_index_find(index, vaddr, buffer, &record) == 0) ...
 *   cfi_index_destroy(index);
 *
 * What is kept is 8 bytes a function (and a .debug_frame as a whole); records are read when they are wanted.
 */
#ifndef STALLGRAPH_UNWIND_CFI_INDEX_H
#define STALLGRAPH_UNWIND_CFI_INDEX_H

#include "profiler/model/binary.h"
#include "profiler/unwind/cfi_record.h"

struct cfi_index;

/* Never NULL; empty where the binary has no such tables. Borrows the binary. */
struct cfi_index *cfi_index_create(const struct binary *binary);
/* An index of bytes in memory, which are borrowed. */
struct cfi_index *cfi_index_create_section(const struct cfi_section *section);
void cfi_index_destroy(struct cfi_index *index);

/* The record whose code holds vaddr, an ELF virtual address. Returns 0, or -ENOENT. */
int cfi_index_find(struct cfi_index *index, uint64_t vaddr, struct cfi_buffer *buffer,
                   struct cfi_record *ret_record);

#endif
