/* A build without BPF: opening says so. */
#ifndef STALLGRAPH_HAVE_BPF

#include <errno.h>

#include "profiler/collect/tick.h"

static int open_tick(const struct tick_options *options, struct tick **ret_tick, struct error *err)
{
    (void)options;
    (void)ret_tick;
    return error_say(err, -EOPNOTSUPP, "built without BPF");
}

const struct tick_backend tick_bpf = {.name = "bpf", .open = open_tick};

#endif
