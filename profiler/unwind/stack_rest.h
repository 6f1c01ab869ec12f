/* The rest of a stack: what lies above the copy of it, of a thread that does not run. It is fetched where a walk asks for
 * it, so that a frame with a large buffer is skipped, not read, in windows that double while the walk goes on where the
 * last one ended.
 *
 *   struct stack_rest rest = {.fetch = fetch, .context = process, .end = end_of_the_mapping};
 *
 *   stack_rest_begin(&rest, &sample);
 *   request.read_memory = stack_rest_read;
 *   request.read_context = &rest;
 *   backend->walk(unwinder, &request, &stack);
 *   if (rest.fetched_bytes > 0 && has_run_since_its_copy_was_made) ... the frames above the copy are worth nothing
 */
#ifndef STALLGRAPH_UNWIND_STACK_REST_H
#define STALLGRAPH_UNWIND_STACK_REST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/model/raw_sample.h"

enum {
    STACK_REST_FIRST_BYTES = 16 * 1024, /* of a window that does not go on where another ended */
    STACK_REST_FETCH_BYTES = 64 * 1024, /* of the largest window */
    STACK_REST_MAX_BYTES = 256 * 1024,  /* of one stack, all windows together */
};

/* Makes the target's memory from an address on available at *ret_bytes, until the next fetch. Returns how much that is:
 * it may be less than asked for. Or -errno: then nothing more is fetched of this stack. */
typedef ssize_t (*stack_rest_fetch)(void *context, uint64_t address, size_t size_bytes,
                                    const uint8_t **ret_bytes);

struct stack_rest {
    stack_rest_fetch fetch;
    void *context;
    uint64_t end; /* of the stack's mapping: nothing is fetched from there on */

    size_t fetched_bytes;

    /* Private. */
    uint64_t begin;
    uint64_t window_address;
    size_t window_bytes;
    const uint8_t *window;
    size_t next_window_bytes;
    size_t left_bytes;
};

void stack_rest_begin(struct stack_rest *rest, const struct raw_sample *sample);

/* An unwind_read_memory; context is a struct stack_rest. -EFAULT for all that is no part of the rest. */
int stack_rest_read(void *context, uint64_t address, void *bytes, size_t size_bytes);

#endif
