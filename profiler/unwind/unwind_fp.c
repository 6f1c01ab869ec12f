/* Frame pointers: the chain that the kernel walked while the sample was taken; of a thread that did not run, for which
 * there is none, the same chain in the copy of its stack. Cheap, and it works in JIT code. What it loses:
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
#include "profiler/unwind/unwind_fallback.h"
#include "profiler/unwind/unwind_memory.h"
#include "profiler/unwind/unwinder.h"

struct unwinder {
    struct unwind_memory memory;
};

static struct unwinder *fp_create(const struct binary_table *binaries)
{
    struct unwinder *unwinder = memory_zeroed(1, sizeof *unwinder);

    unwinder->memory.binaries = binaries;
    return unwinder;
}

/* A link that points above the copy may go on there. */
static enum unwind_end end_of_chain(const struct unwind_memory *memory, enum unwind_fallback step)
{
    return step == UNWIND_FALLBACK_UNREADABLE && unwind_memory_failed_beyond_copy(memory)
               ? UNWIND_COPY_ENDED
               : UNWIND_REACHED_START;
}

static void walk_links(struct unwind_memory *memory, const struct registers *leaf,
                       struct unwound_stack *stack)
{
    struct registers registers = *leaf;
    enum unwind_fallback step;

    do {
        if (stack->count == UNWIND_MAX_FRAMES) {
            stack->end = UNWIND_TOO_DEEP;
            return;
        }
        stack->addresses[stack->count] = registers.value[REGISTER_IP] - (stack->count > 0);
        stack->count++;
        step = unwind_fallback_step_frame_pointer(memory, &registers, &registers);
    } while (step == UNWIND_FALLBACK_CALLER);
    stack->end = end_of_chain(memory, step);
}

static void fp_walk(struct unwinder *unwinder, const struct unwind_request *request,
                    struct unwound_stack *ret_stack)
{
    const struct raw_sample *sample = request->sample;

    ret_stack->count = 0;
    ret_stack->end = UNWIND_NO_REGISTERS;
    if (sample->user_chain_count > 0) {
        unwind_chain_append(request, 0, ret_stack);
        return;
    }
    if (!registers_has(&sample->registers, REGISTER_IP) || !registers_has(&sample->registers, REGISTER_RSP))
        return;
    unwind_memory_begin(&unwinder->memory, request);
    walk_links(&unwinder->memory, &sample->registers, ret_stack);
    if (!registers_has(&sample->registers, REGISTER_RBP)) /* of those that /proc tells, it is none */
        ret_stack->end = UNWIND_NO_RULE;
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
