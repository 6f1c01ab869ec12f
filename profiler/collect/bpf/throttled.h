/* Whether a thread that wants a CPU is kept from it by a CPU quota. For BPF programs.
 *
 * From Linux 6.18 on each thread is taken out of the run queue on its way back to user space, and marked. Before, whole run
 * queues of a control group were: throttle_count says so of a group's, and of all below it. The loader finds out which of
 * the two this kernel has; with neither it knows no quotas. */
#ifndef STALLGRAPH_COLLECT_BPF_THROTTLED_H
#define STALLGRAPH_COLLECT_BPF_THROTTLED_H

#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* The loader leaves out what follows ___ when it looks for a type in the kernel. */
struct cfs_rq___quota {
    int throttle_count;
} __attribute__((preserve_access_index));

struct sched_entity___quota {
    struct cfs_rq___quota *cfs_rq;
} __attribute__((preserve_access_index));

struct task_struct___quota {
    unsigned int __state;
    int on_cpu;
    int prio;
    bool throttled;
    struct sched_entity___quota se;
} __attribute__((preserve_access_index));

static __always_inline bool is_throttled(const void *task_struct)
{
    enum { FIRST_FAIR_PRIORITY = 100 }; /* MAX_RT_PRIO: no quota holds what comes before */
    const struct task_struct___quota *task = task_struct;

    if (task->on_cpu != 0 || task->__state != 0)
        return false;
    if (bpf_core_field_exists(task->throttled))
        return task->throttled;
    if (bpf_core_field_exists(task->se.cfs_rq) &&
        bpf_core_field_exists(struct cfs_rq___quota, throttle_count)) {
        const struct cfs_rq___quota *queue = task->se.cfs_rq;

        return task->prio >= FIRST_FAIR_PRIORITY && queue != NULL && queue->throttle_count > 0;
    }
    return false;
}

#endif
