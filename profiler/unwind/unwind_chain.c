#include "profiler/unwind/unwind_chain.h"

/* sysctl kernel.perf_event_max_stack, its default: of kernel and user frames together. */
enum { KERNEL_CHAIN_MAX_FRAMES = 127 };

void unwind_chain_append(const struct unwind_request *request, size_t from, struct unwound_stack *stack)
{
    const struct raw_sample *sample = request->sample;

    for (size_t i = from; i < sample->user_chain_count; i++) {
        uint64_t address = sample->user_chain[i] - (i > 0);

        if (i > 0 && address_space_find(request->space, address) == NULL) {
            stack->end = UNWIND_BAD_STACK;
            return;
        }
        if (stack->count == UNWIND_MAX_FRAMES) {
            stack->end = UNWIND_TOO_DEEP;
            return;
        }
        stack->addresses[stack->count++] = address;
    }
    stack->end = sample->user_chain_count + sample->kernel_chain_count >= KERNEL_CHAIN_MAX_FRAMES
                     ? UNWIND_TOO_DEEP
                     : UNWIND_REACHED_START;
}

/* A caller stands in the chain by its return address, one more than its look-up address. */
static bool is_same_frame(uint64_t chain_address, uint64_t look_up_address)
{
    return chain_address == look_up_address + 1 || chain_address == look_up_address;
}

/* A recursion has its address in the chain many times: where the most frames before it agree too is the right
 * one, and of several the nearest to the leaf. */
size_t unwind_chain_find_next(const struct raw_sample *sample, const struct unwound_stack *stack)
{
    size_t best_length = 0;
    size_t next = 0;

    for (size_t i = 0; i < sample->user_chain_count; i++) {
        size_t length = 0;

        while (length <= i && length < stack->count &&
               is_same_frame(sample->user_chain[i - length], stack->addresses[stack->count - 1 - length]))
            length++;
        if (length > best_length) {
            best_length = length;
            next = i + 1;
        }
    }
    return next;
}
