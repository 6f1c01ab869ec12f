/* The kernel's call chain by frame pointers, which stands beside the copy of the stack in a sample. */
#ifndef STALLGRAPH_UNWIND_UNWIND_CHAIN_H
#define STALLGRAPH_UNWIND_UNWIND_CHAIN_H

#include "profiler/unwind/unwinder.h"

/* Appends chain[from, ...) of the sample to the stack: the first address of the chain as it is, others
 * minus 1. Stops at a caller that is not in code. Sets stack->end: UNWIND_TOO_DEEP where the kernel's limit
 * or ours cut the chain, UNWIND_BAD_STACK at such a caller, else UNWIND_REACHED_START. */
void unwind_chain_append(const struct unwind_request *request, size_t from, struct unwound_stack *stack);

/* Where in the chain the stack goes on, given that its last frame is there too. Returns the index of the next
 * frame, or 0 when the last frame is not in the chain. */
size_t unwind_chain_find_next(const struct raw_sample *sample, const struct unwound_stack *stack);

#endif
