/* Counts every wait of the wanted processes by the place it happens at: two time stamps a wait and no stack
 * walk. Which stack stands at a place is known from the ticks. A wait lasts from the switch-out to the
 * switch-in. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "profiler/collect/bpf/wait_site.h"

struct mm_struct;

struct task_struct {
    int pid;
    int tgid;
    struct mm_struct *mm;
} __attribute__((preserve_access_index));

struct pt_regs {
    unsigned long di, orig_ax, ip, sp;
} __attribute__((preserve_access_index));

struct open_wait {
    __u64 since_ns; /* 0 = none */
    struct wait_site_key site;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct open_wait);
} open_waits SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, __u32); /* tgid */
    __type(value, __u8);
} wanted_processes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, WAIT_SITES_MAX);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct wait_site_key);
    __type(value, struct wait_site_value);
} sites SEC(".maps");

__u64 dropped = 0; /* waits at places that had no room */

static bool is_wanted(struct task_struct *task)
{
    __u32 tgid = (__u32)task->tgid;

    return tgid != 0 && bpf_map_lookup_elem(&wanted_processes, &tgid) != NULL;
}

static __u32 bin_of(__u64 duration_ns)
{
    __u32 bin = 0;

    for (__u32 step = 32; step > 0; step /= 2) {
        if (duration_ns >> step != 0) {
            bin += step;
            duration_ns >>= step;
        }
    }
    return bin < WAIT_SITE_BINS ? bin : WAIT_SITE_BINS - 1;
}

static void begin_wait(struct task_struct *task)
{
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs((void *)task);
    struct open_wait *wait =
        bpf_task_storage_get(&open_waits, (void *)task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

    if (wait == NULL)
        return;
    wait->site.tid = (__u32)task->pid;
    wait->site.pid = (__u32)task->tgid;
    wait->site.ip = regs->ip;
    wait->site.sp = regs->sp;
    wait->site.syscall = (__s64)regs->orig_ax;
    wait->site.argument = regs->di;
    wait->since_ns = bpf_ktime_get_ns();
}

static void end_wait(struct task_struct *task)
{
    static const struct wait_site_value nothing = {0};
    struct open_wait *wait = bpf_task_storage_get(&open_waits, (void *)task, NULL, 0);
    struct wait_site_value *value;

    if (wait == NULL || wait->since_ns == 0)
        return;
    __u64 duration_ns = bpf_ktime_get_ns() - wait->since_ns;
    wait->since_ns = 0;
    value = bpf_map_lookup_elem(&sites, &wait->site);
    if (value == NULL) {
        bpf_map_update_elem(&sites, &wait->site, &nothing, BPF_NOEXIST);
        value = bpf_map_lookup_elem(&sites, &wait->site);
    }
    if (value == NULL) {
        __sync_fetch_and_add(&dropped, 1);
        return;
    }
    /* A place belongs to one thread, which is on one CPU at a time: no atomics. */
    value->count++;
    value->sum_ns += duration_ns;
    value->bins[bin_of(duration_ns)]++;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(count_wait, bool preempted, struct task_struct *prev, struct task_struct *next,
             unsigned int prev_state)
{
    (void)ctx;
    if (!preempted && prev_state != 0 && prev->mm != NULL && is_wanted(prev))
        begin_wait(prev);
    if (next->mm != NULL && is_wanted(next))
        end_wait(next);
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
