/* A pass over the target's threads, without stopping them: emits each one that is not where it was, with its stacks where
 * it does not run. A thread that is off its CPU at two passes with the same number of switches has not moved, so it costs a
 * comparison.
 *
 * Two ways: `walk`, from Linux 6.7 on, goes through the threads itself and writes into memory that user space has mapped;
 * `look` is run by the kernel's task iterator for each thread, and writes what is read from the iterator. With 10,000
 * threads that do not move a pass of the first takes 3 ms, of the second 5 ms: the iterator takes a reference to each
 * thread, and looks its number up. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "profiler/collect/bpf/throttled.h"
#include "profiler/collect/bpf/tick_record.h"

/* What is read of the kernel's structures; the loader finds the real offsets in the kernel's BTF. */
struct sched_entity {
    __u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct sched_info {
    unsigned long pcount;
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

/* Kernel functions, and what they take (include/linux/bpf.h, kernel/bpf/task_iter.c). */
struct bpf_iter_task {
    __u64 state[3];
};

struct bpf_iter_num {
    __u64 state[1];
};

enum { WALK_THREADS_OF_PROCESS = 2 }; /* BPF_TASK_ITER_PROC_THREADS */

extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;
extern int bpf_iter_task_new(struct bpf_iter_task *iterator, struct task_struct *task,
                             unsigned int flags) __ksym __weak;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *iterator) __ksym __weak;
extern void bpf_iter_task_destroy(struct bpf_iter_task *iterator) __ksym __weak;
extern int bpf_iter_num_new(struct bpf_iter_num *iterator, int begin, int end) __ksym __weak;
extern int *bpf_iter_num_next(struct bpf_iter_num *iterator) __ksym __weak;
extern void bpf_iter_num_destroy(struct bpf_iter_num *iterator) __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;

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

/* A record with its stack, before that is cut to what was copied. */
struct buffer {
    struct tick_record record;
    char stack[TICK_STACK_BYTES];
};

/* Of `look`, which one reader at a time runs: the record is put together here, since it is too big for the BPF stack. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct buffer);
} buffers SEC(".maps");

/* Of `walk`: the records of a pass, one behind the other. */
struct area {
    __u8 bytes[TICK_AREA_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct area);
} areas SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} exits SEC(".maps");

/* Set by user space between passes. */
bool emit_all = false;              /* also those that did not change: the first pass, and the last */
bool check_process = false;         /* the iterator is not bound to one process */
__u32 stack_threshold = 0xffffffff; /* stacks are taken when a random number is not above it */

/* Set by user space before loading: calls whose name tells all about a wait within them that a signal can end. Their kernel
 * stack, a tenth of what a pass costs, is not taken unless all are wanted. */
const volatile bool all_kernel_stacks = true;
const volatile bool plain_waits[TICK_PLAIN_WAITS] = {};

/* Of `walk`: set by user space. */
__u32 walked_processes[TICK_MAX_PROCESSES] = {};
__u32 walked_process_count = 0;
bool walk_on = false; /* with the threads that the last walk had no room for */

/* Read by user space after a walk. */
__u32 walk_filled_bytes = 0; /* of the area */

/* Numbers of the threads that are not where they were. */
__u32 moved[TICK_SEEN_THREADS] = {};
__u32 moved_count = 0;
__u32 moved_done = 0;

/* Threads of the target that were looked at; read by user space. */
__u64 threads_seen = 0;

/* Read by user space when the reader does not come back: whose memory it is at. */
__u32 memory_read_of = 0;

/* Set by user space before it ends a reader that hangs. From then on no memory can be read in its name, and what is taken
 * would be without a stack: nothing more is emitted, nor noted as seen. */
bool abandoned = false;

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
static __u64 stack_bytes_there(struct task_struct *task, struct tick_record *record)
{
    struct vma_end vma = {0};
    __u64 sp = record->sp;
    __u64 bytes;

    bpf_find_vma((void *)task, sp, take_vma_end, &vma, 0);
    record->stack_end = vma.end;
    bytes = vma.end > sp ? vma.end - sp : 4096 - (sp & 4095);
    return bytes < TICK_STACK_BYTES ? bytes : TICK_STACK_BYTES;
}

static void copy_user_stack(struct task_struct *task, struct buffer *buffer)
{
    struct tick_record *record = &buffer->record;
    __u64 bytes = stack_bytes_there(task, record);
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

static bool wants_kernel_stack(const struct tick_record *record)
{
    enum { INTERRUPTIBLE = 1 }; /* TASK_INTERRUPTIBLE, include/linux/sched.h */
    __u64 syscall = (__u64)record->syscall;

    return all_kernel_stacks || (record->state & INTERRUPTIBLE) == 0 || syscall >= TICK_PLAIN_WAITS ||
           !plain_waits[syscall];
}

static void take_stacks(struct task_struct *task, struct buffer *buffer)
{
    struct tick_record *record = &buffer->record;
    long kernel_bytes = 0;

    take_registers(task, record);
    if (wants_kernel_stack(record))
        kernel_bytes = bpf_get_task_stack((void *)task, record->kernel, sizeof record->kernel, 0);
    if (kernel_bytes > 0)
        record->kernel_count = (__u32)kernel_bytes / sizeof record->kernel[0];
    copy_user_stack(task, buffer);
    if (task->nvcsw + task->nivcsw != record->voluntary_switches + record->involuntary_switches ||
        task->on_cpu)
        record->flags |= TICK_CHANGED;
}

static void begin_record(struct task_struct *task, struct tick_record *record, bool on_cpu)
{
    record->tid = (__u32)task->pid;
    record->pid = (__u32)task->tgid;
    record->flags = on_cpu ? TICK_ON_CPU : is_throttled(task) ? TICK_THROTTLED : 0;
    record->state = task->__state;
    record->kernel_count = 0;
    record->stack_bytes = 0;
    record->time_ns = bpf_ktime_get_ns();
    record->start_time_ns = task->start_boottime;
    record->voluntary_switches = task->nvcsw;
    record->involuntary_switches = task->nivcsw;
    record->on_cpu_ns = task->se.sum_exec_runtime;
    record->runnable_ns = task->sched_info.run_delay;
    record->switches_in = task->sched_info.pcount;
    record->stack_end = 0;
    record->syscall = -1;
    record->ip = 0;
    record->sp = 0;
}

static struct seen *seen_of(const struct task_struct *task)
{
    __u32 place = (__u32)task->pid % TICK_SEEN_THREADS;

    return bpf_map_lookup_elem(&seen_threads, &place);
}

static bool is_off_cpu(const struct task_struct *task)
{
    return task->on_cpu == 0 && task->__state != 0;
}

static bool is_unchanged(const struct task_struct *task, const struct seen *seen)
{
    return is_off_cpu(task) && seen->switches_and_off_cpu == (task->nvcsw + task->nivcsw) * 2 + 1 &&
           seen->start_time_ns == task->start_boottime;
}

/* Into the buffer; returns how much of it that is. */
static __u32 write_record(struct task_struct *task, struct buffer *buffer, bool unchanged)
{
    struct tick_record *record = &buffer->record;
    bool on_cpu = task->on_cpu != 0;
    __u32 stack_bytes;

    begin_record(task, record, on_cpu);
    if (unchanged) {
        record->flags |= TICK_UNCHANGED;
    } else if (!on_cpu) {
        if (bpf_get_prandom_u32() <= stack_threshold)
            take_stacks(task, buffer);
        else
            record->flags |= TICK_NOT_CHOSEN;
    }
    stack_bytes = record->stack_bytes;
    if (stack_bytes > TICK_STACK_BYTES)
        stack_bytes = 0;
    stack_bytes = (stack_bytes + 7) & ~7U; /* the next one begins at a multiple of 8 */
    record->record_bytes = sizeof *record + stack_bytes;
    return record->record_bytes;
}

/* A look that got no stack is repeated: the thread counts as changed until one did. */
static void note_seen(struct seen *seen, const struct tick_record *record)
{
    bool settled =
        record->state != 0 && (record->flags & (TICK_ON_CPU | TICK_CHANGED | TICK_NOT_CHOSEN)) == 0;

    seen->start_time_ns = record->start_time_ns;
    seen->switches_and_off_cpu = (record->voluntary_switches + record->involuntary_switches) * 2 + settled;
}

SEC("iter.s/task")
int look(struct bpf_iter__task *context)
{
    struct task_struct *task = context->task;
    __u32 zero = 0;

    if (task == NULL || task->exit_state != 0 || abandoned)
        return 0;
    __u32 tgid = (__u32)task->tgid;
    if (check_process && bpf_map_lookup_elem(&wanted_processes, &tgid) == NULL)
        return 0;
    struct seen *seen = seen_of(task);
    struct buffer *buffer = bpf_map_lookup_elem(&buffers, &zero);
    if (seen == NULL || buffer == NULL)
        return 0;

    bool unchanged = is_unchanged(task, seen);
    threads_seen++;
    if (unchanged && !emit_all)
        return 0;
    if (task->mm == NULL) /* a thread of the kernel, or one that is about to end */
        return 0;
    __u64 bytes = write_record(task, buffer, unchanged);
    __asm__ volatile(
        ""
        : "+r"(bytes)); /* the verifier must see the bound in the very register that is passed on */
    if (bytes > sizeof *buffer || abandoned)
        return 0;
    /* When the reader's buffer is full the kernel calls again for the same thread: nothing is noted before. */
    if (bpf_seq_write(context->meta->seq, buffer, bytes) == 0)
        note_seen(seen, &buffer->record);
    return 0;
}

/* Within an RCU section, where nothing may sleep: only who is to be looked at. */
static void note_moved(const struct task_struct *task)
{
    struct seen *seen = seen_of(task);

    threads_seen++;
    if (task->exit_state != 0 || task->mm == NULL || seen == NULL || (is_unchanged(task, seen) && !emit_all))
        return;
    if (moved_count < TICK_SEEN_THREADS)
        moved[moved_count++ % TICK_SEEN_THREADS] = (__u32)task->pid;
}

static void walk_process(struct task_struct *leader)
{
    struct bpf_iter_task threads;
    struct task_struct *task;

    bpf_rcu_read_lock();
    bpf_iter_task_new(&threads, leader, WALK_THREADS_OF_PROCESS);
    while ((task = bpf_iter_task_next(&threads)) != NULL)
        note_moved(task);
    bpf_iter_task_destroy(&threads);
    bpf_rcu_read_unlock();
}

static void walk_processes(void)
{
    struct bpf_iter_num numbers;
    int *number;

    bpf_iter_num_new(&numbers, 0, TICK_MAX_PROCESSES);
    while ((number = bpf_iter_num_next(&numbers)) != NULL) {
        __u32 i = (__u32)*number;
        struct task_struct *leader;

        if (i >= walked_process_count || i >= TICK_MAX_PROCESSES)
            break;
        leader = bpf_task_from_pid((__s32)walked_processes[i]);
        if (leader == NULL)
            continue;
        walk_process(leader);
        bpf_task_release(leader);
    }
    bpf_iter_num_destroy(&numbers);
}

/* false where there is no room, or an end. */
static bool visit(__u32 tid, struct area *area)
{
    __u32 filled_bytes = walk_filled_bytes;
    struct buffer *buffer;
    struct task_struct *task;
    struct seen *seen;

    if (filled_bytes > TICK_AREA_BYTES - sizeof *buffer)
        return false;
    buffer = (struct buffer *)(area->bytes + filled_bytes);
    task = bpf_task_from_pid((__s32)tid);
    if (task == NULL)
        return true;
    seen = seen_of(task);
    if (seen != NULL && task->exit_state == 0) {
        __u32 bytes = write_record(task, buffer, is_unchanged(task, seen));

        if (!abandoned) {
            walk_filled_bytes = filled_bytes + bytes;
            note_seen(seen, &buffer->record);
        }
    }
    bpf_task_release(task);
    return !abandoned;
}

SEC("syscall")
int walk(void *unused)
{
    struct bpf_iter_num numbers;
    __u32 zero = 0;
    struct area *area = bpf_map_lookup_elem(&areas, &zero);

    (void)unused;
    walk_filled_bytes = 0;
    if (area == NULL)
        return 0;
    if (!walk_on) {
        moved_count = 0;
        moved_done = 0;
        walk_processes();
    }
    bpf_iter_num_new(&numbers, 0, TICK_SEEN_THREADS);
    while (bpf_iter_num_next(&numbers) != NULL) {
        if (moved_done >= moved_count || !visit(moved[moved_done % TICK_SEEN_THREADS], area))
            break;
        moved_done++;
    }
    bpf_iter_num_destroy(&numbers);
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
