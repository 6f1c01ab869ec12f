/* A pass over the target's threads, without stopping them: emits each one that is not where it was, with its
 * stacks where it does not run. A thread that is off its CPU at two passes with the same number of switches
 * has not moved, so it costs a comparison. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "profiler/collect/bpf/tick_record.h"

/* What is read of the kernel's structures; the loader finds the real offsets in the kernel's BTF. */
struct sched_entity {
    __u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct sched_info {
    unsigned long long run_delay;
} __attribute__((preserve_access_index));

struct mm_struct;

struct task_struct {
    unsigned int __state;
    int on_cpu;
    int pid;
    int tgid;
    int exit_state;
    __u64 start_boottime;
    struct sched_entity se;
    struct sched_info sched_info;
    unsigned long nvcsw;
    unsigned long nivcsw;
    struct mm_struct *mm;
} __attribute__((preserve_access_index));

struct vm_area_struct {
    unsigned long vm_end;
} __attribute__((preserve_access_index));

struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r10, r9, r8, dx, si, di, orig_ax, ip, sp;
} __attribute__((preserve_access_index));

struct seq_file;

struct bpf_iter_meta {
    struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
} __attribute__((preserve_access_index));

/* Where a thread was when it was emitted last. */
struct seen {
    __u64 start_time_ns;        /* whose this is: another thread may have the same place, and takes it over */
    __u64 switches_and_off_cpu; /* the number of switches twice, and 1 if it was off its CPU */
};

/* By the low bits of the thread's number. Not task storage: with 10,000 threads a pass is made of cache misses, and task
 * storage is three of them for each thread, half of the time of a pass. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, TICK_SEEN_THREADS);
    __type(key, __u32);
    __type(value, struct seen);
} seen_threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, TICK_MAX_PROCESSES);
    __type(key, __u32); /* tgid */
    __type(value, __u8);
} wanted_processes SEC(".maps");

/* Threads whose memory does not answer (userfaultfd, FUSE): it hung the reader once, and is not asked again.
 */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, TICK_MAX_REFUSED_THREADS);
    __type(key, __u32); /* tid */
    __type(value, __u8);
} refused_threads SEC(".maps");

/* One reader at a time uses it: the record is put together here, since it is too big for the BPF stack. */
struct buffer {
    struct tick_record record;
    char stack[TICK_STACK_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct buffer);
} buffers SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} exits SEC(".maps");

/* Set by user space between passes. */
bool emit_all = false;              /* also those that did not change: the first pass, and the last */
bool check_process = false;         /* the iterator is not bound to one process */
__u32 stack_threshold = 0xffffffff; /* stacks are taken when a random number is not above it */

/* Threads of the target that were looked at; read by user space. */
__u64 threads_seen = 0;

/* Read by user space when the reader does not come back: whose memory it is at. */
__u32 memory_read_of = 0;

struct vma_end {
    __u64 end;
};

static long take_vma_end(struct task_struct *task, struct vm_area_struct *vma, struct vma_end *ret_end)
{
    (void)task;
    ret_end->end = vma->vm_end;
    return 0;
}

/* A copy is all or nothing, so it must not reach past the stack's mapping. */
static __u64 stack_bytes_there(struct task_struct *task, __u64 sp)
{
    struct vma_end vma = {0};
    __u64 bytes;

    bpf_find_vma((void *)task, sp, take_vma_end, &vma, 0);
    bytes = vma.end > sp ? vma.end - sp : 4096 - (sp & 4095);
    return bytes < TICK_STACK_BYTES ? bytes : TICK_STACK_BYTES;
}

static void copy_user_stack(struct task_struct *task, struct buffer *buffer)
{
    struct tick_record *record = &buffer->record;
    __u64 bytes = stack_bytes_there(task, record->sp);
    __u32 tid = record->tid;

    if (bpf_map_lookup_elem(&refused_threads, &tid) != NULL) {
        record->flags |= TICK_STACK_REFUSED;
        return;
    }
    memory_read_of = tid;
    if (bytes <= TICK_STACK_BYTES &&
        bpf_copy_from_user_task(buffer->stack, bytes, (void *)record->sp, (void *)task, 0) == 0)
        record->stack_bytes = bytes;
    else
        record->flags |= TICK_STACK_FAULT;
    memory_read_of = 0;
}

static void take_registers(struct task_struct *task, struct tick_record *record)
{
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs((void *)task);

    record->syscall = (__s64)regs->orig_ax;
    record->arguments[0] = regs->di;
    record->arguments[1] = regs->si;
    record->arguments[2] = regs->dx;
    record->arguments[3] = regs->r10;
    record->arguments[4] = regs->r8;
    record->arguments[5] = regs->r9;
    record->ip = regs->ip;
    record->sp = regs->sp;
    record->bp = regs->bp;
    record->bx = regs->bx;
    record->r12 = regs->r12;
    record->r13 = regs->r13;
    record->r14 = regs->r14;
    record->r15 = regs->r15;
}

static void take_stacks(struct task_struct *task, struct buffer *buffer)
{
    struct tick_record *record = &buffer->record;
    long kernel_bytes = bpf_get_task_stack((void *)task, record->kernel, sizeof record->kernel, 0);

    if (kernel_bytes > 0)
        record->kernel_count = (__u32)kernel_bytes / sizeof record->kernel[0];
    take_registers(task, record);
    copy_user_stack(task, buffer);
    if (task->nvcsw + task->nivcsw != record->voluntary_switches + record->involuntary_switches ||
        task->on_cpu)
        record->flags |= TICK_CHANGED;
}

static void begin_record(struct task_struct *task, struct tick_record *record, bool on_cpu)
{
    record->tid = (__u32)task->pid;
    record->pid = (__u32)task->tgid;
    record->flags = on_cpu ? TICK_ON_CPU : 0;
    record->state = task->__state;
    record->kernel_count = 0;
    record->stack_bytes = 0;
    record->time_ns = bpf_ktime_get_ns();
    record->start_time_ns = task->start_boottime;
    record->voluntary_switches = task->nvcsw;
    record->involuntary_switches = task->nivcsw;
    record->on_cpu_ns = task->se.sum_exec_runtime;
    record->runnable_ns = task->sched_info.run_delay;
    record->syscall = -1;
    record->ip = 0;
    record->sp = 0;
}

SEC("iter.s/task")
int look(struct bpf_iter__task *context)
{
    struct task_struct *task = context->task;
    __u32 zero = 0;

    if (task == NULL || task->exit_state != 0)
        return 0;
    __u32 tgid = (__u32)task->tgid;
    if (check_process && bpf_map_lookup_elem(&wanted_processes, &tgid) == NULL)
        return 0;
    __u32 place = (__u32)task->pid % TICK_SEEN_THREADS;
    struct seen *seen = bpf_map_lookup_elem(&seen_threads, &place);
    struct buffer *buffer = bpf_map_lookup_elem(&buffers, &zero);
    if (seen == NULL || buffer == NULL)
        return 0;

    bool on_cpu = task->on_cpu != 0;
    bool off_cpu = !on_cpu && task->__state != 0;
    __u64 switches = task->nvcsw + task->nivcsw;
    bool unchanged = off_cpu && seen->switches_and_off_cpu == switches * 2 + 1 &&
                     seen->start_time_ns == task->start_boottime;
    threads_seen++;
    if (unchanged && !emit_all)
        return 0;
    if (task->mm == NULL) /* a thread of the kernel, or one that is about to end */
        return 0;

    struct tick_record *record = &buffer->record;
    begin_record(task, record, on_cpu);
    if (unchanged) {
        record->flags |= TICK_UNCHANGED;
    } else if (!on_cpu) {
        if (bpf_get_prandom_u32() <= stack_threshold)
            take_stacks(task, buffer);
        else
            record->flags |= TICK_NOT_CHOSEN;
    }
    __u32 stack_bytes = record->stack_bytes;
    if (stack_bytes > TICK_STACK_BYTES)
        return 0;
    record->record_bytes = sizeof *record + stack_bytes;
    /* When the reader's buffer is full the kernel calls again for the same thread: nothing is noted before.
     */
    if (bpf_seq_write(context->meta->seq, buffer, sizeof *record + stack_bytes) != 0)
        return 0;
    /* A look that got no stack is repeated: the thread counts as changed until one did. */
    bool settled = off_cpu && (record->flags & (TICK_CHANGED | TICK_NOT_CHOSEN)) == 0;
    seen->start_time_ns = record->start_time_ns;
    seen->switches_and_off_cpu = switches * 2 + settled;
    return 0;
}

/* Here, not when user space hears of it: a child may end before that. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(follow_fork, struct task_struct *parent, struct task_struct *child)
{
    __u32 parent_tgid = (__u32)parent->tgid;
    __u32 child_tgid = (__u32)child->tgid;
    __u8 one = 1;

    (void)ctx;
    if (child_tgid != parent_tgid && bpf_map_lookup_elem(&wanted_processes, &parent_tgid) != NULL)
        bpf_map_update_elem(&wanted_processes, &child_tgid, &one, BPF_ANY);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(note_exit, struct task_struct *task)
{
    (void)ctx;
    __u32 tgid = (__u32)task->tgid;

    if (bpf_map_lookup_elem(&wanted_processes, &tgid) == NULL)
        return 0;
    struct tick_exit *out = bpf_ringbuf_reserve(&exits, sizeof *out, 0);
    if (out == NULL)
        return 0;
    out->tid = (__u32)task->pid;
    out->pid = tgid;
    out->time_ns = bpf_ktime_get_ns();
    out->start_time_ns = task->start_boottime;
    out->on_cpu_ns = task->se.sum_exec_runtime;
    out->runnable_ns = task->sched_info.run_delay;
    out->voluntary_switches = task->nvcsw;
    out->involuntary_switches = task->nivcsw;
    bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
