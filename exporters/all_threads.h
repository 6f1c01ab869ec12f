/* All threads' samples added up: one for each distinct (stack, state), in an order that shows the heaviest
 * stacks first and like callers side by side, so that a viewer in time order draws it well. */
#ifndef STALLGRAPH_EXPORTERS_ALL_THREADS_H
#define STALLGRAPH_EXPORTERS_ALL_THREADS_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/model/call_tree.h"
#include "profiler/model/profile.h"

struct all_threads_sample {
    uint32_t stack;
    enum thread_state state;
    uint64_t weight_ns;
};

struct all_threads {
    struct all_threads_sample *items;
    size_t count;
    size_t capacity;
};

/* IDLE_SEPARATE puts idle samples last, IDLE_HIDE leaves them out. all is overwritten. */
void all_threads_init(struct all_threads *all, const struct profile *profile, enum idle_mode idle);
void all_threads_finish(struct all_threads *all);

#endif
