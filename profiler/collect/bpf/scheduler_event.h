/* What the BPF programs write of a context switch and a wake-up: the raw bytes of a perf sample. */
#ifndef STALLGRAPH_COLLECT_BPF_SCHEDULER_EVENT_H
#define STALLGRAPH_COLLECT_BPF_SCHEDULER_EVENT_H

#include <linux/types.h>

struct scheduler_switch {
    __u32 prev_tid;
    __u32 next_tid;
    __u64 prev_state; /* as the sched_switch tracepoint has it */
};

struct scheduler_wakeup {
    __u32 tid;
    __u32 unused;
};

#endif
