/* Where the mappings of a process end: a read of a stack must not go past its own, into memory that may be
 * anything (a device, a file that does not answer).
 *
 *   struct memory_ranges ranges = {0};
 *   size = memory_ranges_bytes_from(&ranges, pid, sp, 16384);
 *   memory_ranges_finish(&ranges);
 */
#ifndef STALLGRAPH_COLLECT_MEMORY_RANGES_H
#define STALLGRAPH_COLLECT_MEMORY_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/base/vec.h"

/* Half-open. */
struct memory_range {
    uint64_t start, end;
};

/* Zeroed knows nothing yet. */
struct memory_ranges {
    VEC_OF(struct memory_range) ranges; /* ascending */
    uint64_t next_read_ns;              /* /proc/PID/maps is not read again before */
};

void memory_ranges_finish(struct memory_ranges *ranges);

/* The mapping that the address is in. Reads /proc/PID/maps when it is in none that is known, as often as that costs
 * little. */
bool memory_ranges_find(struct memory_ranges *ranges, pid_t pid, uint64_t address,
                        struct memory_range *ret_range);

/* How many bytes can be read from address on within its mapping, at most limit_bytes. Of an address that is
 * in none: to the end of its page. */
size_t memory_ranges_bytes_from(struct memory_ranges *ranges, pid_t pid, uint64_t address,
                                size_t limit_bytes);

#endif
