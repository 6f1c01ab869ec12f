/* One captured stack, not yet unwound: a view into the buffer it was read into, valid until the next read
 * there. */
#ifndef STALLGRAPH_MODEL_RAW_SAMPLE_H
#define STALLGRAPH_MODEL_RAW_SAMPLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/model/registers.h"

struct raw_sample {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    pid_t pid;
    pid_t tid;

    /* User side. known == 0: the sample has no user registers (a kernel thread, or a process at its end). */
    struct registers registers;
    const uint8_t
        *stack; /* bytes of the user stack upwards from stack_address; NULL with size 0 when not captured */
    size_t stack_size_bytes;
    uint64_t stack_address; /* the stack pointer at the capture */

    /* The user call chain by frame pointers as the kernel walked it, leaf first, without context markers; may
     * be empty. */
    const uint64_t *user_chain;
    size_t user_chain_count;

    /* The kernel call chain, leaf first, without context markers; may be empty. */
    const uint64_t *kernel_chain;
    size_t kernel_chain_count;
};

#endif
