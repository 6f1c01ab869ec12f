/* What is mapped where in one process, now: mappings are applied in time order, and each stack is looked up
 * while its moment is the present. Ranges are half-open and never overlap: a new one cuts what it covers, as
 * mmap does. */
#ifndef STALLGRAPH_MODEL_ADDRESS_SPACE_H
#define STALLGRAPH_MODEL_ADDRESS_SPACE_H

#include <stddef.h>
#include <stdint.h>

struct mapping {
    uint64_t start;
    uint64_t end;
    uint64_t file_offset; /* of start; for JIT memory, equal to start, so that "offsets" are addresses */
    uint32_t binary;      /* id in the binary_table */
};

/* Zeroed is empty. */
struct address_space {
    struct mapping *mappings; /* by start, ascending */
    size_t count;
    size_t capacity;
};

void address_space_finish(struct address_space *space);
void address_space_clear(struct address_space *space);                               /* exec */
void address_space_copy(struct address_space *to, const struct address_space *from); /* fork */

/* An empty range (start >= end) is ignored. */
void address_space_insert(struct address_space *space, const struct mapping *mapping);

/* NULL where nothing executable is known to be mapped. Valid until the next change. */
const struct mapping *address_space_find(const struct address_space *space, uint64_t address);

#endif
