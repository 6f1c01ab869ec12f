/* The target's memory as a sample shows it: the copy of the stack first, then code from the mapped files,
 * then whatever the request can read. */
#ifndef STALLGRAPH_UNWIND_UNWIND_MEMORY_H
#define STALLGRAPH_UNWIND_UNWIND_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/model/binary.h"
#include "profiler/unwind/unwinder.h"

enum { UNWIND_MEMORY_PAGE_BYTES = 4096 };

/* Zeroed, then begun anew for each request. */
struct unwind_memory {
    const struct binary_table *binaries;
    const struct unwind_request *request;
    bool has_failed;         /* since unwind_memory_begin */
    uint64_t failed_address; /* of the latest read that failed */

    /* The page that request->read_memory gave last: a stack is read upwards, and each call costs a system
     * call. */
    bool has_page;
    uint64_t page_address;
    uint8_t page[UNWIND_MEMORY_PAGE_BYTES];
};

void unwind_memory_begin(struct unwind_memory *memory, const struct unwind_request *request);

/* The 8 bytes at any address. Returns false when they cannot be had. */
bool unwind_memory_read_word(struct unwind_memory *memory, uint64_t address, uint64_t *ret_word);

/* Code bytes, from the file that is mapped there; of JIT code, by the request. Returns how many were read. */
size_t unwind_memory_read_code(const struct unwind_memory *memory, uint64_t address, uint8_t *bytes,
                               size_t size_bytes);

/* Does the latest failure lie above what the sample holds of the stack? */
bool unwind_memory_failed_beyond_copy(const struct unwind_memory *memory);

#endif
