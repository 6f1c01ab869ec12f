/* A build without BPF: opening says so, and the rest is never called. */
#ifndef STALLGRAPH_HAVE_BPF

#include <errno.h>

#include "profiler/collect/wait_counts.h"

int wait_counts_open(struct wait_counts **ret_counts, struct error *err)
{
    (void)ret_counts;
    return error_say(err, -EOPNOTSUPP, "built without BPF");
}

void wait_counts_close(struct wait_counts *counts)
{
    (void)counts;
}

int wait_counts_add_process(struct wait_counts *counts, pid_t pid)
{
    (void)counts;
    (void)pid;
    return -EOPNOTSUPP;
}

void wait_counts_stop(struct wait_counts *counts)
{
    (void)counts;
}

bool wait_counts_next(struct wait_counts *counts, struct wait_site *ret_site)
{
    (void)counts;
    (void)ret_site;
    return false;
}

uint64_t wait_counts_dropped(const struct wait_counts *counts)
{
    (void)counts;
    return 0;
}

#endif
