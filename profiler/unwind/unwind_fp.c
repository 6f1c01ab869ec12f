/* Frame pointers: the chain that the kernel walked while the sample was taken. Cheap, no copy of the stack,
 * and it works in JIT code. What it loses:
 * - the caller of a function that has not yet set up its frame, or has taken it down (in its prologue, its
 * epilogue), and of a leaf without a frame: the chain goes on at the caller's caller;
 * - everything behind code that uses rbp for something else, which includes Debian's libc: the caller of a
 * libc function, and what lies above a callback from qsort or bsearch;
 * - whatever a signal handler interrupted, as a signal frame has no link.
 * Whether the last frame is the first function, or the chain broke there, cannot be told: it counts as
 * reached. */
#include <stdlib.h>

#include "profiler/base/memory.h"
#include "profiler/unwind/unwind_chain.h"
#include "profiler/unwind/unwinder.h"

/* There is no state; a pointer must be given all the same. */
struct unwinder {
    char unused;
};

static struct unwinder *fp_create(const struct binary_table *binaries)
{
    (void)binaries;
    return memory_zeroed(1, sizeof(struct unwinder));
}

static void fp_walk(struct unwinder *unwinder, const struct unwind_request *request,
                    struct unwound_stack *ret_stack)
{
    (void)unwinder;
    ret_stack->count = 0;
    ret_stack->end = UNWIND_NO_REGISTERS;
    if (request->sample->user_chain_count > 0)
        unwind_chain_append(request, 0, ret_stack);
}

static void fp_destroy(struct unwinder *unwinder)
{
    free(unwinder);
}

const struct unwinder_backend unwind_fp = {
    .name = "fp",
    .needs = UNWIND_NEEDS_USER_CHAIN,
    .create = fp_create,
    .walk = fp_walk,
    .destroy = fp_destroy,
};
