/* Exact counts of waits by place, at the price of two time stamps each: no stack is walked. For engine
 * `tick`, whose looks know which stack stands at a place.
 *
 *   wait_counts_open(&counts, &err);
 *   wait_counts_add_process(counts, pid);
 *   ...
 *   wait_counts_stop(counts);
 *   while (wait_counts_next(counts, &site)) ...
 */
#ifndef STALLGRAPH_COLLECT_WAIT_COUNTS_H
#define STALLGRAPH_COLLECT_WAIT_COUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/base/error.h"
#include "profiler/model/histogram.h"

/* All waits of one thread at one place: the same numbers as a look of a tick has of it. */
struct wait_site {
    pid_t pid, tid;
    uint64_t ip, sp;
    int64_t syscall;
    uint64_t argument;
    struct histogram histogram; /* from switch-out to switch-in */
};

struct wait_counts;

/* -EOPNOTSUPP in builds without BPF; else -errno when it is not permitted. */
int wait_counts_open(struct wait_counts **ret_counts, struct error *err);
void wait_counts_close(struct wait_counts *counts); /* NULL allowed */
int wait_counts_add_process(struct wait_counts *counts, pid_t pid);
void wait_counts_stop(struct wait_counts *counts);
bool wait_counts_next(struct wait_counts *counts, struct wait_site *ret_site);
/* Waits at places for which there was no room. */
uint64_t wait_counts_dropped(const struct wait_counts *counts);

#endif
