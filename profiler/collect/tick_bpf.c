/* With STALLGRAPH_BPF=OFF tick_bpf_none.c stands in for this file. */
#ifdef STALLGRAPH_HAVE_BPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/collect/bpf/tick_record.h"
#include "profiler/collect/bpf_quiet.h"
#include "profiler/collect/tick.h"
#include "profiler/collect/tick_bpf_iterators.h"
#include "profiler/collect/tick_bpf_view.h"
#include "profiler/collect/tick_reader.h"
#include "tick.skel.h"

enum {
    READ_TIMEOUT_MS = 500, /* a pass takes milliseconds; a page may have to come from a disk */
};

/* Inode of the first pid namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO): the programs see its
 * numbers. */
#define FIRST_PID_NAMESPACE_INODE 0xEFFFFFFCu

struct tick {
    struct tick_bpf *skeleton;
    struct tick_reader reader;
    struct ring_buffer *exits;
    bool walks;                      /* else the kernel's iterators are read */
    struct tick_iterators iterators; /* else unused */
    const uint8_t *bytes;            /* where the reader's answer is */
    VEC_OF(pid_t) processes;

    /* The pass that goes on. */
    bool unfinished; /* not all threads were looked at yet */
    size_t filled_bytes;
    size_t given_bytes;
    bool stepwise;        /* pass() waits for what the reader finds; else next() does */
    struct error trouble; /* of the reader, since the last pass was begun; told by the next */
    int trouble_code;

    VEC_OF(struct tick_exit) ended;
    size_t given_ended;
    struct tick_bpf_view view;
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

static void close_tick(struct tick *tick)
{
    if (tick == NULL)
        return;
    tick_iterators_finish(&tick->iterators);
    tick_reader_stop(&tick->reader);
    ring_buffer__free(tick->exits);
    if (tick->walks)
        munmap((void *)(uintptr_t)tick->bytes, TICK_AREA_BYTES);
    tick_bpf__destroy(tick->skeleton);
    free(tick->processes.items);
    free(tick->ended.items);
    free(tick);
}

/* Calls in which a thread waits for just what their name says: not those whose buffer may lie on a page that is waited for,
 * nor those that lead to a disk. */
static void list_plain_waits(struct tick_bpf *skeleton)
{
    static const int calls[] = {
        SYS_poll,
        SYS_select,
        SYS_pselect6,
        SYS_ppoll,
        SYS_epoll_wait,
        SYS_epoll_pwait,
        SYS_futex,
        SYS_nanosleep,
        SYS_pause,
        SYS_accept,
        SYS_clock_nanosleep,
        SYS_accept4,
        SYS_rt_sigtimedwait,
        SYS_wait4,
        SYS_restart_syscall,
    };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        skeleton->rodata->plain_waits[calls[i]] = true;
}

static int load_programs(const struct tick_options *options, bool walks, struct tick *tick)
{
    int r;

    tick->skeleton = tick_bpf__open();
    if (tick->skeleton == NULL)
        return -errno;
    bpf_program__set_autoload(tick->skeleton->progs.follow_fork, options->children);
    bpf_program__set_autoload(tick->skeleton->progs.walk, walks);
    bpf_program__set_autoload(tick->skeleton->progs.look, !walks);
    tick->skeleton->rodata->all_kernel_stacks = options->kernel_stacks;
    list_plain_waits(tick->skeleton);
    r = tick_bpf__load(tick->skeleton);
    if (r == 0)
        return 0;
    tick_bpf__destroy(tick->skeleton);
    tick->skeleton = NULL;
    return r;
}

static int map_area(struct tick *tick, struct error *err)
{
    void *bytes =
        mmap(NULL, TICK_AREA_BYTES, PROT_READ, MAP_SHARED, bpf_map__fd(tick->skeleton->maps.areas), 0);

    if (bytes == MAP_FAILED)
        return error_set(err, -errno, "map the tick's records");
    tick->walks = true;
    tick->bytes = bytes;
    return tick_reader_start(&tick->reader, PROCESS_MEMORY_MAX_BYTES, err);
}

/* The kernel says by refusing the program that it has not what it takes to walk. */
static int load(const struct tick_options *options, struct tick *tick, struct error *err)
{
    int r = options->only_iterator ? -ENOTSUP : load_programs(options, true, tick);

    if (r == 0)
        return map_area(tick, err);
    r = load_programs(options, false, tick);
    if (r < 0)
        return error_set(err, r, "load the tick's BPF programs");
    tick->iterators.skeleton = tick->skeleton;
    r = tick_reader_start(&tick->reader, TICK_AREA_BYTES, err);
    tick->bytes = tick->reader.bytes;
    return r;
}

static int attach_programs(const struct tick_options *options, struct tick *tick, struct error *err)
{
    tick->skeleton->links.note_exit = bpf_program__attach(tick->skeleton->progs.note_exit);
    if (tick->skeleton->links.note_exit == NULL)
        return error_set(err, -errno, "attach to sched_process_exit");
    if (options->children) {
        tick->skeleton->links.follow_fork = bpf_program__attach(tick->skeleton->progs.follow_fork);
        if (tick->skeleton->links.follow_fork == NULL)
            return error_set(err, -errno, "attach to sched_process_fork");
    }
    tick->exits = ring_buffer__new(bpf_map__fd(tick->skeleton->maps.exits), take_exit, tick, NULL);
    return tick->exits != NULL ? 0 : error_set(err, -errno, "map the ring of exits");
}

static int open_tick(const struct tick_options *options, struct tick **ret_tick, struct error *err)
{
    struct tick *tick;
    int r = check_namespace(err);

    if (r < 0)
        return r;
    bpf_keep_quiet();
    tick = memory_zeroed(1, sizeof *tick);
    r = load(options, tick, err);
    if (r == 0)
        r = attach_programs(options, tick, err);
    if (r < 0) {
        close_tick(tick);
        return r;
    }
    *ret_tick = tick;
    return 0;
}

static void list_walked(struct tick *tick)
{
    for (size_t i = 0; i < tick->processes.count; i++)
        tick->skeleton->bss->walked_processes[i] = (uint32_t)tick->processes.items[i];
    tick->skeleton->bss->walked_process_count = (uint32_t)tick->processes.count;
}

static int add_process(struct tick *tick, pid_t pid)
{
    uint32_t key = (uint32_t)pid;
    uint8_t one = 1;

    for (size_t i = 0; i < tick->processes.count; i++)
        if (tick->processes.items[i] == pid)
            return 0;
    if (tick->processes.count >= TICK_MAX_PROCESSES)
        return -E2BIG;
    if (bpf_map_update_elem(bpf_map__fd(tick->skeleton->maps.wanted_processes), &key, &one, BPF_ANY) < 0)
        return -errno;
    VEC_PUSH(&tick->processes, pid);
    if (!tick->walks)
        return tick_iterators_add(&tick->iterators, pid);
    list_walked(tick);
    return 0;
}

/* No exit of it is told from here on. Its number may be given out again only when its last thread has ended. */
static void remove_process(struct tick *tick, pid_t pid)
{
    uint32_t key = (uint32_t)pid;

    bpf_map_delete_elem(bpf_map__fd(tick->skeleton->maps.wanted_processes), &key);
    for (size_t i = 0; i < tick->processes.count; i++) {
        if (tick->processes.items[i] != pid)
            continue;
        tick->processes.items[i] = tick->processes.items[--tick->processes.count];
        break;
    }
    if (tick->walks)
        list_walked(tick);
    else
        tick_iterators_remove(&tick->iterators, pid);
}

/* The reader hung in somebody's memory: that thread's is not touched again. */
static int refuse_hanging_thread(struct tick *tick, struct error *err)
{
    uint32_t tid = tick->skeleton->bss->memory_read_of;
    uint8_t one = 1;
    int r;

    if (tid != 0)
        bpf_map_update_elem(bpf_map__fd(tick->skeleton->maps.refused_threads), &tid, &one, BPF_ANY);
    tick->skeleton->bss->abandoned = true;
    r = tick_reader_restart(&tick->reader, err);
    tick->skeleton->bss->abandoned = false;
    tick->skeleton->bss->memory_read_of = 0;
    return r;
}

static int ask(struct tick *tick)
{
    int r = tick->walks
                ? tick_reader_begin_program(&tick->reader, bpf_program__fd(tick->skeleton->progs.walk))
                : tick_reader_begin(&tick->reader, tick->iterators.fds, tick->iterators.count);

    tick->filled_bytes = 0;
    tick->given_bytes = 0;
    return r < 0 ? error_set(&tick->trouble, r, "ask the reader of the tick") : 0;
}

/* What it wrote before it hung stands. The thread that it hung at is the first of those that are left. */
static void take_walk(struct tick *tick)
{
    struct tick_bpf__bss *bss = tick->skeleton->bss;

    tick->filled_bytes = bss->walk_filled_bytes;
    tick->unfinished = bss->moved_done < bss->moved_count;
    bss->walk_on = tick->unfinished;
}

static void take_iterators(struct tick *tick, const struct tick_answer *answer, bool hangs)
{
    tick->filled_bytes = answer->filled_bytes;
    tick_iterators_end(&tick->iterators, answer->done);
    if (hangs && tick->iterators.count > 0)
        tick_iterators_end(&tick->iterators, 1);
    tick->unfinished = tick->iterators.count > 0;
}

/* Who was asked for is there then, or a part of it when there was no room for all. */
static int take_answer(struct tick *tick, struct error *err)
{
    struct tick_answer answer;
    int r = tick_reader_end(&tick->reader, READ_TIMEOUT_MS, &answer);

    if (r == 0 || r == -ETIMEDOUT || r == -EPIPE) {
        if (r < 0)
            r = refuse_hanging_thread(tick, err);
        if (tick->walks)
            take_walk(tick);
        else
            take_iterators(tick, &answer, r < 0);
        return r;
    }
    return error_set(err, r, "look at the threads");
}

/* Waits for more records of this pass; false where there are none. */
static bool more_records(struct tick *tick)
{
    if (tick->trouble_code == 0 && !tick->reader.asked && tick->unfinished)
        tick->trouble_code = ask(tick);
    if (tick->trouble_code < 0 || !tick->reader.asked)
        return false;
    tick->trouble_code = take_answer(tick, &tick->trouble);
    /* After the looks: who ended meanwhile is not taken for alive. */
    if (!tick->unfinished)
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
    if (tick->walks) {
        tick->skeleton->bss->walk_on = false;
        tick->unfinished = tick->processes.count > 0;
    } else {
        tick_iterators_begin(&tick->iterators);
        tick->unfinished = tick->iterators.count > 0;
    }
    if (!tick->unfinished)
        ring_buffer__consume(tick->exits);
    tick->filled_bytes = 0;
    tick->given_bytes = 0;
}

/* Only asks, unless all are wanted: what the reader finds is waited for when it is taken, as a rule at the next tick. So
 * a tick wakes each of us once. */
static int pass(struct tick *tick, bool all, struct error *err)
{
    if (!tick->stepwise || !tick->unfinished)
        begin_pass(tick, all);
    tick->stepwise = all;
    if (tick->trouble_code == 0 && !all && tick->unfinished)
        tick->trouble_code = ask(tick);
    if (all)
        more_records(tick);
    if (tick->trouble_code < 0) {
        *err = tick->trouble;
        return tick->trouble_code;
    }
    return all && tick->unfinished;
}

static bool next_record(struct tick *tick, struct tick_look *ret_look)
{
    size_t bytes = tick_bpf_view_record(&tick->view, tick->bytes + tick->given_bytes,
                                        tick->filled_bytes - tick->given_bytes);

    if (bytes == 0) {
        tick->given_bytes = tick->filled_bytes; /* a rest that is no record cannot be */
        return false;
    }
    tick->given_bytes += bytes;
    *ret_look = tick->view.look;
    return true;
}

static bool next(struct tick *tick, struct tick_look *ret_look)
{
    do {
        if (!tick->reader.asked && next_record(tick, ret_look))
            return true;
    } while (!tick->stepwise && more_records(tick));
    if (tick->given_ended < tick->ended.count) {
        tick_bpf_view_exit(&tick->view, &tick->ended.items[tick->given_ended++]);
        *ret_look = tick->view.look;
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
