/* With STALLGRAPH_BPF=OFF tick_bpf_none.c stands in for this file. */
#ifdef STALLGRAPH_HAVE_BPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/collect/bpf/tick_record.h"
#include "profiler/collect/bpf_quiet.h"
#include "profiler/collect/tick.h"
#include "profiler/collect/tick_reader.h"
#include "tick.skel.h"

enum {
    AREA_BYTES = 4 << 20,
    READ_TIMEOUT_MS = 500, /* a pass takes milliseconds; a page may have to come from a disk */
    MAX_PROCESS_LINKS =
        TICK_READER_FDS, /* a link costs 8 us a pass: beyond that one pass over everybody is cheaper */
    MANY_THREADS = 1000,
};

/* Inode of the first pid namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO): the programs see its
 * numbers. */
#define FIRST_PID_NAMESPACE_INODE 0xEFFFFFFCu

struct process_link {
    pid_t pid;
    struct bpf_link *link; /* NULL while one link for everybody is used */
};

struct tick {
    struct tick_bpf *skeleton;
    struct tick_reader reader;
    struct ring_buffer *exits;
    VEC_OF(struct process_link) processes;
    struct bpf_link *everybody;

    /* The pass that goes on: iterators that are not at their end, and what was read. */
    int iterator_fds[TICK_READER_FDS];
    size_t iterator_count;
    size_t filled_bytes;
    size_t given_bytes;
    bool stepwise;        /* pass() waits for what the reader finds; else next() does */
    struct error trouble; /* of the reader, since the last pass was begun; told by the next */
    int trouble_code;

    VEC_OF(struct tick_exit) ended;
    size_t given_ended;
    struct tick_look look; /* scratch: chains of the view that was given out */
    uint64_t kernel_chain[TICK_KERNEL_FRAMES];
};

static int take_exit(void *context, void *data, size_t size)
{
    struct tick *tick = context;

    if (size >= sizeof(struct tick_exit))
        VEC_PUSH(&tick->ended, *(const struct tick_exit *)data);
    return 0;
}

static int check_namespace(struct error *err)
{
    struct stat st;

    if (stat("/proc/self/ns/pid", &st) < 0)
        return error_set(err, -errno, "read the own pid namespace");
    if (st.st_ino != FIRST_PID_NAMESPACE_INODE)
        return error_say(err, -ENOTSUP, "BPF sees numbers of the first pid namespace, this is another");
    return 0;
}

/* The first ones. */
static void end_iterators(struct tick *tick, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(tick->iterator_fds[i]);
    tick->iterator_count -= count;
    memmove(tick->iterator_fds, tick->iterator_fds + count,
            tick->iterator_count * sizeof *tick->iterator_fds);
}

static void close_tick(struct tick *tick)
{
    if (tick == NULL)
        return;
    end_iterators(tick, tick->iterator_count);
    tick_reader_stop(&tick->reader);
    for (size_t i = 0; i < tick->processes.count; i++)
        bpf_link__destroy(tick->processes.items[i].link);
    bpf_link__destroy(tick->everybody);
    ring_buffer__free(tick->exits);
    tick_bpf__destroy(tick->skeleton);
    free(tick->processes.items);
    free(tick->ended.items);
    free(tick);
}

static int load(const struct tick_options *options, struct tick *tick, struct error *err)
{
    int r;

    bpf_keep_quiet();
    tick->skeleton = tick_bpf__open();
    if (tick->skeleton == NULL)
        return error_set(err, -errno, "open the tick's BPF programs");
    bpf_program__set_autoload(tick->skeleton->progs.follow_fork, options->children);
    r = tick_bpf__load(tick->skeleton);
    if (r < 0)
        return error_set(err, r, "load the tick's BPF programs");
    tick->skeleton->links.note_exit = bpf_program__attach(tick->skeleton->progs.note_exit);
    if (tick->skeleton->links.note_exit == NULL)
        return error_set(err, -errno, "attach to sched_process_exit");
    if (options->children) {
        tick->skeleton->links.follow_fork = bpf_program__attach(tick->skeleton->progs.follow_fork);
        if (tick->skeleton->links.follow_fork == NULL)
            return error_set(err, -errno, "attach to sched_process_fork");
    }
    tick->exits = ring_buffer__new(bpf_map__fd(tick->skeleton->maps.exits), take_exit, tick, NULL);
    if (tick->exits == NULL)
        return error_set(err, -errno, "map the ring of exits");
    return tick_reader_start(&tick->reader, AREA_BYTES, err);
}

static int open_tick(const struct tick_options *options, struct tick **ret_tick, struct error *err)
{
    struct tick *tick;
    int r = check_namespace(err);

    if (r < 0)
        return r;
    tick = memory_zeroed(1, sizeof *tick);
    r = load(options, tick, err);
    if (r < 0) {
        close_tick(tick);
        return r;
    }
    *ret_tick = tick;
    return 0;
}

/* pid 0 = every process. Returns NULL with errno. */
static struct bpf_link *attach(const struct tick *tick, pid_t pid)
{
    union bpf_iter_link_info info = {.task.pid = (uint32_t)pid};
    LIBBPF_OPTS(bpf_iter_attach_opts, options);

    if (pid != 0) {
        options.link_info = &info;
        options.link_info_len = sizeof info;
    }
    return bpf_program__attach_iter(tick->skeleton->progs.look, &options);
}

/* From a link a process to one for everybody, when there are too many. */
static int use_everybody(struct tick *tick)
{
    if (tick->everybody == NULL)
        tick->everybody = attach(tick, 0);
    if (tick->everybody == NULL)
        return -errno;
    for (size_t i = 0; i < tick->processes.count; i++) {
        bpf_link__destroy(tick->processes.items[i].link);
        tick->processes.items[i].link = NULL;
    }
    tick->skeleton->bss->check_process = true;
    return 0;
}

static int add_process(struct tick *tick, pid_t pid)
{
    struct process_link entry = {.pid = pid};
    uint32_t key = (uint32_t)pid;
    uint8_t one = 1;

    for (size_t i = 0; i < tick->processes.count; i++)
        if (tick->processes.items[i].pid == pid)
            return 0;
    if (bpf_map_update_elem(bpf_map__fd(tick->skeleton->maps.wanted_processes), &key, &one, BPF_ANY) < 0)
        return -errno;
    if (tick->everybody == NULL && tick->processes.count < MAX_PROCESS_LINKS) {
        entry.link = attach(tick, pid);
        if (entry.link == NULL)
            return errno == ESRCH ? 0 : -errno;
    }
    VEC_PUSH(&tick->processes, entry);
    return tick->everybody == NULL && entry.link == NULL ? use_everybody(tick) : 0;
}

/* Its entry in the map stays until its last thread has ended: exits are told by it. The number may be given
 * out again only then. */
static void remove_process(struct tick *tick, pid_t pid)
{
    uint32_t key = (uint32_t)pid;

    bpf_map_delete_elem(bpf_map__fd(tick->skeleton->maps.wanted_processes), &key);
    for (size_t i = 0; i < tick->processes.count; i++) {
        if (tick->processes.items[i].pid != pid)
            continue;
        bpf_link__destroy(tick->processes.items[i].link);
        tick->processes.items[i] = tick->processes.items[--tick->processes.count];
        return;
    }
}

/* The reader hung in somebody's memory: that thread's is not touched again. */
static int refuse_hanging_thread(struct tick *tick, struct error *err)
{
    uint32_t tid = tick->skeleton->bss->memory_read_of;
    uint8_t one = 1;

    if (tid != 0)
        bpf_map_update_elem(bpf_map__fd(tick->skeleton->maps.refused_threads), &tid, &one, BPF_ANY);
    tick->skeleton->bss->memory_read_of = 0;
    return tick_reader_restart(&tick->reader, err);
}

static void begin_iterator(struct tick *tick, const struct bpf_link *link)
{
    int fd = bpf_iter_create(bpf_link__fd(link));

    if (fd >= 0) /* else it is gone since: its exit tells */
        tick->iterator_fds[tick->iterator_count++] = fd;
}

/* From the second field from the end of "0.20 0.18 0.12 1/80 11206", proc(5); 0 = not known. */
static unsigned long count_all_threads(void)
{
    char text[128] = "";
    int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    unsigned long count = 0;

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) > 0 && strchr(text, '/') != NULL)
        count = strtoul(strchr(text, '/') + 1, NULL, 10);
    close(fd);
    return count;
}

/* An iterator over everybody finds a thread with fewer cache misses than one over a process does (8 ms a pass for 14,
 * with 10,000 threads on a busy machine): it is the better one where most threads are the target's. */
static void choose_iterators(struct tick *tick)
{
    uint64_t threads = tick->skeleton->bss->threads_seen;

    tick->skeleton->bss->threads_seen = 0;
    if (tick->everybody == NULL && threads >= MANY_THREADS && threads > count_all_threads() / 2)
        use_everybody(tick);
}

static void begin_iterators(struct tick *tick)
{
    choose_iterators(tick);
    if (tick->everybody != NULL)
        begin_iterator(tick, tick->everybody);
    else
        for (size_t i = 0; i < tick->processes.count; i++)
            begin_iterator(tick, tick->processes.items[i].link);
}

static int ask(struct tick *tick)
{
    int r = tick_reader_begin(&tick->reader, tick->iterator_fds, tick->iterator_count);

    tick->filled_bytes = 0;
    tick->given_bytes = 0;
    return r < 0 ? error_set(&tick->trouble, r, "ask the reader of the tick") : 0;
}

/* Who was asked for is there then, or a part of it when there was no room for all. */
static int take_answer(struct tick *tick, struct error *err)
{
    struct tick_answer answer;
    int r = tick_reader_end(&tick->reader, READ_TIMEOUT_MS, &answer);

    tick->filled_bytes = answer.filled_bytes;
    end_iterators(tick, answer.done);
    if (r == 0)
        return 0;
    if (tick->iterator_count > 0)
        end_iterators(tick, 1);
    return refuse_hanging_thread(tick, err);
}

/* Waits for more records of this pass; false where there are none. */
static bool more_records(struct tick *tick)
{
    if (tick->trouble_code == 0 && !tick->reader.asked && tick->iterator_count > 0)
        tick->trouble_code = ask(tick);
    if (tick->trouble_code < 0 || !tick->reader.asked)
        return false;
    tick->trouble_code = take_answer(tick, &tick->trouble);
    /* After the looks: who ended meanwhile is not taken for alive. */
    if (tick->iterator_count == 0)
        ring_buffer__consume(tick->exits);
    return true;
}

static void begin_pass(struct tick *tick, bool all)
{
    while (more_records(tick)) /* what nobody took */
        continue;
    tick->ended.count = 0;
    tick->given_ended = 0;
    tick->skeleton->bss->emit_all = all;
    begin_iterators(tick);
    if (tick->iterator_count == 0)
        ring_buffer__consume(tick->exits);
    tick->filled_bytes = 0;
    tick->given_bytes = 0;
}

/* Only asks, unless all are wanted: what the reader finds is waited for when it is taken, as a rule at the next tick. So
 * a tick wakes each of us once. */
static int pass(struct tick *tick, bool all, struct error *err)
{
    if (!tick->stepwise || tick->iterator_count == 0)
        begin_pass(tick, all);
    tick->stepwise = all;
    if (tick->trouble_code == 0 && !all && tick->iterator_count > 0)
        tick->trouble_code = ask(tick);
    if (all)
        more_records(tick);
    if (tick->trouble_code < 0) {
        *err = tick->trouble;
        return tick->trouble_code;
    }
    return all && tick->iterator_count > 0;
}

static enum tick_look_state look_state(const struct tick_record *record)
{
    enum { KERNEL_STOPPED = 0x4 | 0x8 }; /* __TASK_STOPPED | __TASK_TRACED, include/linux/sched.h */

    if ((record->flags & TICK_ON_CPU) != 0)
        return TICK_RUNNING;
    if (record->state == 0)
        return TICK_RUNNABLE;
    return (record->state & KERNEL_STOPPED) != 0 ? TICK_STOPPED : TICK_BLOCKED;
}

static enum tick_stack look_stack(const struct tick_record *record)
{
    if ((record->flags & (TICK_ON_CPU | TICK_UNCHANGED)) != 0)
        return TICK_STACK_NONE;
    if ((record->flags & TICK_NOT_CHOSEN) != 0)
        return TICK_STACK_LEFT_OUT;
    if ((record->flags & TICK_CHANGED) != 0)
        return TICK_STACK_RACED;
    return record->stack_bytes > 0 ? TICK_STACK_WHOLE : TICK_STACK_NONE;
}

/* Those of a system call's arguments too: vfork keeps its return address in one (rdi). */
static void take_registers(const struct tick_record *record, struct registers *registers)
{
    static const enum register_number of_arguments[] = {REGISTER_RDI, REGISTER_RSI, REGISTER_RDX,
                                                        REGISTER_R10, REGISTER_R8,  REGISTER_R9};

    *registers = (struct registers){0};
    if (record->sp == 0)
        return;
    registers_set(registers, REGISTER_IP, record->ip);
    registers_set(registers, REGISTER_RSP, record->sp);
    registers_set(registers, REGISTER_RBP, record->bp);
    registers_set(registers, REGISTER_RBX, record->bx);
    registers_set(registers, REGISTER_R12, record->r12);
    registers_set(registers, REGISTER_R13, record->r13);
    registers_set(registers, REGISTER_R14, record->r14);
    registers_set(registers, REGISTER_R15, record->r15);
    for (size_t i = 0; i < sizeof of_arguments / sizeof of_arguments[0]; i++)
        registers_set(registers, of_arguments[i], record->arguments[i]);
}

static void fill_look(struct tick *tick, const struct tick_record *record, const uint8_t *stack)
{
    enum { UNINTERRUPTIBLE = 0x2 };
    struct tick_look *look = &tick->look;

    *look = (struct tick_look){
        .pid = (pid_t)record->pid,
        .tid = (pid_t)record->tid,
        .state = look_state(record),
        .stack = look_stack(record),
        .unchanged = (record->flags & TICK_UNCHANGED) != 0,
        .uninterruptible = (record->state & UNINTERRUPTIBLE) != 0,
        .time_ns = record->time_ns,
        .start_time_ns = record->start_time_ns,
        .on_cpu_ns = record->on_cpu_ns,
        .runnable_ns = record->runnable_ns,
        .voluntary_switches = record->voluntary_switches,
        .involuntary_switches = record->involuntary_switches,
        .syscall = record->syscall,
        .sample = {.time_ns = record->time_ns, .pid = (pid_t)record->pid, .tid = (pid_t)record->tid},
    };
    memcpy(look->arguments, record->arguments, sizeof look->arguments);
    if (look->stack == TICK_STACK_LEFT_OUT || look->unchanged)
        return;
    take_registers(record, &look->sample.registers);
    memcpy(tick->kernel_chain, record->kernel, sizeof tick->kernel_chain);
    look->sample.kernel_chain = tick->kernel_chain;
    look->sample.kernel_chain_count =
        record->kernel_count < TICK_KERNEL_FRAMES ? record->kernel_count : TICK_KERNEL_FRAMES;
    look->sample.stack = stack;
    look->sample.stack_size_bytes = record->stack_bytes;
    look->sample.stack_address = record->sp;
}

static void fill_ended(struct tick *tick, const struct tick_exit *ended)
{
    tick->look = (struct tick_look){
        .pid = (pid_t)ended->pid,
        .tid = (pid_t)ended->tid,
        .state = TICK_ENDED,
        .stack = TICK_STACK_NONE,
        .time_ns = ended->time_ns,
        .start_time_ns = ended->start_time_ns,
        .on_cpu_ns = ended->on_cpu_ns,
        .runnable_ns = ended->runnable_ns,
        .voluntary_switches = ended->voluntary_switches,
        .involuntary_switches = ended->involuntary_switches,
        .syscall = -1,
    };
}

static bool next_record(struct tick *tick, struct tick_look *ret_look)
{
    size_t left_bytes = tick->filled_bytes - tick->given_bytes;
    const uint8_t *at = tick->reader.bytes + tick->given_bytes;
    struct tick_record record;

    if (left_bytes >= sizeof record) {
        memcpy(&record, at, sizeof record);
        if (record.record_bytes >= sizeof record && record.record_bytes <= left_bytes &&
            record.stack_bytes <= record.record_bytes - sizeof record) {
            tick->given_bytes += record.record_bytes;
            fill_look(tick, &record, at + sizeof record);
            *ret_look = tick->look;
            return true;
        }
        tick->given_bytes = tick->filled_bytes; /* cannot be: the rest is dropped */
    }
    return false;
}

static bool next(struct tick *tick, struct tick_look *ret_look)
{
    do {
        if (!tick->reader.asked && next_record(tick, ret_look))
            return true;
    } while (!tick->stepwise && more_records(tick));
    if (tick->given_ended < tick->ended.count) {
        fill_ended(tick, &tick->ended.items[tick->given_ended++]);
        *ret_look = tick->look;
        return true;
    }
    return false;
}

static void set_stack_share(struct tick *tick, double share)
{
    tick->skeleton->data->stack_threshold = share >= 1   ? UINT32_MAX
                                            : share <= 0 ? 0
                                                         : (uint32_t)(share * UINT32_MAX);
}

static uint64_t cpu_ns(const struct tick *tick)
{
    return tick_reader_cpu_ns(&tick->reader);
}

const struct tick_backend tick_bpf = {
    .name = "bpf",
    .open = open_tick,
    .close = close_tick,
    .add_process = add_process,
    .remove_process = remove_process,
    .pass = pass,
    .next = next,
    .set_stack_share = set_stack_share,
    .cpu_ns = cpu_ns,
};

#endif
