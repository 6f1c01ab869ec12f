/* The kernel's task iterators over processes, for kernels that cannot walk through the threads of a process by themselves
 * (before 6.7). Part of tick_bpf.c: not for others. */
#ifndef STALLGRAPH_COLLECT_TICK_BPF_ITERATORS_H
#define STALLGRAPH_COLLECT_TICK_BPF_ITERATORS_H

#include <stddef.h>
#include <sys/types.h>

#include "profiler/base/vec.h"
#include "profiler/collect/tick_reader.h"

struct bpf_link;
struct tick_bpf;

struct tick_process_link {
    pid_t pid;
    struct bpf_link *link; /* NULL while one link for everybody is used */
};

struct tick_iterators {
    struct tick_bpf *skeleton; /* loaded; borrowed */
    VEC_OF(struct tick_process_link) processes;
    struct bpf_link *everybody;
    int fds[TICK_READER_FDS]; /* of the pass that goes on: those that are not at their end */
    size_t count;
};

void tick_iterators_finish(struct tick_iterators *iterators);

/* 0 or -errno; a process that is gone is no error. */
int tick_iterators_add(struct tick_iterators *iterators, pid_t pid);
void tick_iterators_remove(struct tick_iterators *iterators, pid_t pid);

/* Opens those of a pass. */
void tick_iterators_begin(struct tick_iterators *iterators);
/* Closes the first ones. */
void tick_iterators_end(struct tick_iterators *iterators, size_t count);

#endif
