/* What perf events see of the machine, narrowed to the wanted processes in the kernel.
 *
 * filter_sample runs before an event takes its sample: 0 drops it, so that no stack is copied for processes
 * that nobody asked about.
 *
 * output_stack runs at each context switch, on an event that samples nothing itself, and has the CPU's event
 * for BPF output take the sample. A context-switches event that samples would be simpler, but when two of
 * them are open on a CPU (two profilers at once will do) the kernel, 6.18 at least, prepares one sample for
 * both: the second record carries the first event's id and size.
 *
 * output_switch and the output_wakeups stand for perf's events of the scheduler's tracepoints. A BPF program
 * on those would filter them for everybody; these are programs of their own. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "profiler/collect/bpf/scheduler_event.h"

/* What is read of the kernel's task_struct; the loader finds the real offsets in the kernel's BTF. */
struct task_struct {
    int pid;
    int tgid;
    int exit_state;
    struct task_struct *real_parent;
} __attribute__((preserve_access_index));

enum {
    MAX_PROCESSES = 65536,
    MAX_GENERATIONS = 2, /* a child passes by its parents until user space has heard of it */
};

/* Task states, include/linux/sched.h; the tracepoint reports the highest bit of the first seven, and some of
 * its own. */
enum {
    STATE_UNINTERRUPTIBLE = 0x2,
    STATE_REPORTED_MASK = 0x7f,
    STATE_REPORTED_IDLE = 0x80,
    STATE_REPORTED_PREEMPTED = 0x100,
    STATE_IDLE = 0x402,
    STATE_RTLOCK_WAIT = 0x1000,
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_PROCESSES);
    __type(key, __u32); /* tgid */
    __type(value, __u8);
} wanted_processes SEC(".maps");

/* Events for BPF output, one a CPU; the loader sizes the maps. */
struct output_map {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u32));
};
struct output_map stack_events SEC(".maps");
struct output_map switch_events SEC(".maps");
struct output_map wakeup_events SEC(".maps");

const volatile bool follow_children = false;

static bool is_listed(__u32 tgid)
{
    return bpf_map_lookup_elem(&wanted_processes, &tgid) != NULL;
}

static bool has_wanted_parent(struct task_struct *task)
{
    for (int i = 0; i < MAX_GENERATIONS; i++) {
        task = BPF_CORE_READ(task, real_parent);
        __u32 tgid = (__u32)BPF_CORE_READ(task, tgid);
        if (tgid <= 1)
            return false;
        if (is_listed(tgid))
            return true;
    }
    return false;
}

static bool is_wanted(struct task_struct *task)
{
    __u32 tgid = (__u32)BPF_CORE_READ(task, tgid);

    if (tgid == 0) /* the idle task */
        return false;
    return is_listed(tgid) || (follow_children && has_wanted_parent(task));
}

static bool current_is_wanted(void)
{
    __u32 tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);

    if (tgid == 0)
        return false;
    return is_listed(tgid) ||
           (follow_children && has_wanted_parent((struct task_struct *)bpf_get_current_task()));
}

SEC("perf_event")
int filter_sample(void *context)
{
    (void)context;
    return current_is_wanted() ? 1 : 0;
}

SEC("perf_event")
int output_stack(void *context)
{
    __u64 nothing = 0; /* the sample's registers and stacks are what matters; raw bytes must be some */

    if (current_is_wanted())
        bpf_perf_event_output(context, &stack_events, BPF_F_CURRENT_CPU, &nothing, sizeof nothing);
    return 0;
}

static __u64 reported_state(bool preempted, __u32 state, __u32 exit_state)
{
    __u32 reported = (state | exit_state) & STATE_REPORTED_MASK;

    if (preempted)
        return STATE_REPORTED_PREEMPTED;
    if ((state & STATE_IDLE) == STATE_IDLE)
        reported = STATE_REPORTED_IDLE;
    if ((state & STATE_RTLOCK_WAIT) != 0)
        reported = STATE_UNINTERRUPTIBLE;
    for (__u32 bit = STATE_REPORTED_IDLE; bit != 0; bit >>= 1) {
        if ((reported & bit) != 0)
            return bit;
    }
    return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(output_switch, bool preempted, struct task_struct *prev, struct task_struct *next,
             unsigned int prev_state)
{
    if (!is_wanted(prev) && !is_wanted(next))
        return 0;
    struct scheduler_switch event = {
        .prev_tid = (__u32)prev->pid,
        .next_tid = (__u32)next->pid,
        .prev_state = reported_state(preempted, prev_state, (__u32)prev->exit_state),
    };
    bpf_perf_event_output(ctx, &switch_events, BPF_F_CURRENT_CPU, &event, sizeof event);
    return 0;
}

static int output_wakeup_of(void *context, struct task_struct *task)
{
    if (!is_wanted(task))
        return 0;
    struct scheduler_wakeup event = {.tid = (__u32)BPF_CORE_READ(task, pid)};
    bpf_perf_event_output(context, &wakeup_events, BPF_F_CURRENT_CPU, &event, sizeof event);
    return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(output_wakeup, struct task_struct *task)
{
    return output_wakeup_of(ctx, task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(output_wakeup_new, struct task_struct *task)
{
    return output_wakeup_of(ctx, task);
}

/* Helpers that read the kernel's memory are for programs under a licence that is compatible with the GPL. */
char LICENSE[] SEC("license") = "GPL";
