/* What the counting BPF program and user space share. */
#ifndef STALLGRAPH_COLLECT_BPF_WAIT_SITE_H
#define STALLGRAPH_COLLECT_BPF_WAIT_SITE_H

#include <linux/types.h>

enum {
    WAIT_SITE_BINS =
        40, /* bin n counts waits of [2^n, 2^(n+1)) ns; the last one all longer ones: from 9 minutes on */
    WAIT_SITES_MAX = 262144,
};

/* Where a thread waits: the same as a look of a tick sees it. */
struct wait_site_key {
    __u32 tid; /* of the first pid namespace */
    __u32 pid;
    __u64 ip, sp;
    __s64 syscall;
    __u64 argument; /* the first one: which descriptor, which lock */
};

struct wait_site_value {
    __u64 count;
    __u64 sum_ns;
    __u32 bins[WAIT_SITE_BINS];
};

#endif
