/* The tick without BPF: /proc/PID/task/TID/{schedstat,status,syscall} and process_vm_readv(2). A thread whose
 * schedstat has not moved since it was seen blocked costs one read. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/scanner.h"
#include "profiler/base/vec.h"
#include "profiler/collect/memory_ranges.h"
#include "profiler/collect/thread_files.h"
#include "profiler/collect/thread_look.h"
#include "profiler/collect/tick.h"
#include "profiler/collect/tick_reader.h"

enum {
    STACK_BYTES = 16 * 1024, /* of the user stack, from the stack pointer upwards */
    AREA_BYTES = 4 << 20,    /* stacks of one pass, or of a part of it */
    LOOKS_AT_ONCE = 2048,
    MAX_KEPT_FILES = 512,
    SHARE_OF_FILES = 8, /* ... and at most one in so many of those that may be open */
    WAIT_CHANNEL_BYTES = 64,
    /* A page may have to come from a disk. Each time the reader hung, it is given half as long. */
    READ_TIMEOUT_MS = 250,
    LEAST_TIMEOUT_MS = 10,
};

struct seen_thread {
    struct thread_files files;
    struct proc_schedstat schedstat; /* at the last look; with the rest the last counters that are known */
    struct proc_status status;
    uint64_t start_time_ns;
    uint64_t listed_in;              /* number of the pass */
    struct memory_range stack_range; /* the mapping of its stack; empty = not known yet */
    bool settled;                    /* blocked or stopped, and given out with all that can be had */
    bool not_permitted;              /* its registers or memory */
    bool memory_refused;             /* it did not answer */
    bool ended;                      /* a main thread stays listed until its process is gone */
};

struct seen_process {
    pid_t pid;
    DIR *task; /* NULL: gone */
    bool removed;
    VEC_OF(struct seen_thread) threads;
    struct id_map index_of_tid;
    struct memory_ranges ranges;
};

struct tick {
    struct tick_reader reader;
    VEC_OF(struct seen_process) processes;
    double stack_share;
    size_t kept_files, kept_files_limit;
    unsigned hang_count;
    uint64_t passes;

    /* The pass that goes on. */
    bool in_pass;
    size_t process_index, thread_index;
    size_t filled_bytes;
    VEC_OF(struct tick_look) looks;
    size_t given_looks;
    struct id_map channel_indices; /* hash of the text -> index */
    VEC_OF(char *) channels;       /* names of wait channels, kept: a look points to one */
};

static void close_thread(struct tick *tick, struct seen_thread *thread)
{
    if (thread->files.schedstat_fd >= 0)
        tick->kept_files--;
    thread_files_close(&thread->files);
}

static void close_process(struct tick *tick, struct seen_process *process)
{
    for (size_t i = 0; i < process->threads.count; i++)
        close_thread(tick, &process->threads.items[i]);
    free(process->threads.items);
    id_map_finish(&process->index_of_tid);
    memory_ranges_finish(&process->ranges);
    if (process->task != NULL)
        closedir(process->task);
}

static void close_tick(struct tick *tick)
{
    if (tick == NULL)
        return;
    tick_reader_stop(&tick->reader);
    for (size_t i = 0; i < tick->processes.count; i++)
        close_process(tick, &tick->processes.items[i]);
    free(tick->processes.items);
    free(tick->looks.items);
    id_map_finish(&tick->channel_indices);
    for (size_t i = 0; i < tick->channels.count; i++)
        free(tick->channels.items[i]);
    free(tick->channels.items);
    free(tick);
}

/* Without CONFIG_SCHED_INFO the file is missing, or reads "0 0 0". */
static int check_schedstat(struct error *err)
{
    struct proc_schedstat own = {0};
    int r = proc_read_schedstat(getpid(), getpid(), &own);

    if (r < 0)
        return error_set(err, r, "read /proc/self/schedstat");
    if (own.on_cpu_ns == 0 && own.switches_in == 0)
        return error_say(err, -ENOTSUP, "this kernel keeps no schedstat (CONFIG_SCHEDSTATS)");
    return 0;
}

static int open_tick(const struct tick_options *options, struct tick **ret_tick, struct error *err)
{
    struct rlimit files = {0};
    struct tick *tick;
    int r = check_schedstat(err);

    (void)options; /* forks are told by others */
    if (r < 0)
        return r;
    tick = memory_zeroed(1, sizeof *tick);
    tick->stack_share = 1;
    getrlimit(RLIMIT_NOFILE, &files);
    tick->kept_files_limit =
        files.rlim_cur / SHARE_OF_FILES < MAX_KEPT_FILES ? files.rlim_cur / SHARE_OF_FILES : MAX_KEPT_FILES;
    r = tick_reader_start(&tick->reader, AREA_BYTES, err);
    if (r < 0) {
        close_tick(tick);
        return r;
    }
    *ret_tick = tick;
    return 0;
}

static struct seen_process *find_process(struct tick *tick, pid_t pid)
{
    for (size_t i = 0; i < tick->processes.count; i++)
        if (tick->processes.items[i].pid == pid && !tick->processes.items[i].removed)
            return &tick->processes.items[i];
    return NULL;
}

static int add_process(struct tick *tick, pid_t pid)
{
    struct seen_process process = {.pid = pid};
    char path[32];

    if (find_process(tick, pid) != NULL)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    process.task = opendir(path);
    if (process.task == NULL)
        return errno == ENOENT ? 0 : -errno;
    VEC_PUSH(&tick->processes, process);
    return 0;
}

/* It goes at the next pass: the one that is under way counts processes by their indices. */
static void remove_process(struct tick *tick, pid_t pid)
{
    struct seen_process *process = find_process(tick, pid);

    if (process != NULL)
        process->removed = true;
}

static void drop_removed(struct tick *tick)
{
    for (size_t i = tick->processes.count; i-- > 0;) {
        if (!tick->processes.items[i].removed)
            continue;
        close_process(tick, &tick->processes.items[i]);
        tick->processes.items[i] = tick->processes.items[--tick->processes.count];
    }
}

static struct tick_look *new_look(struct tick *tick, const struct seen_process *process,
                                  const struct seen_thread *thread, uint64_t time_ns)
{
    VEC_PUSH(&tick->looks, ((struct tick_look){
                               .pid = process->pid,
                               .tid = thread->files.tid,
                               .stack = TICK_STACK_NONE,
                               .time_ns = time_ns,
                               .start_time_ns = thread->start_time_ns,
                               .on_cpu_ns = thread->schedstat.on_cpu_ns,
                               .runnable_ns = thread->schedstat.runnable_ns,
                               .voluntary_switches = thread->status.voluntary_switches,
                               .involuntary_switches = thread->status.involuntary_switches,
                               .switches_in = thread->schedstat.switches_in,
                               .syscall = -1,
                               .sample = {.time_ns = time_ns, .pid = process->pid, .tid = thread->files.tid},
                           }));
    return &tick->looks.items[tick->looks.count - 1];
}

static void end_thread(struct tick *tick, const struct seen_process *process, struct seen_thread *thread)
{
    if (!thread->ended)
        new_look(tick, process, thread, clock_now_ns())->state = TICK_ENDED;
    thread->ended = true;
    close_thread(tick, thread);
}

/* A thread that is gone again before it could be read is none: its time is in the process's clock. */
static void add_thread(struct tick *tick, struct seen_process *process, pid_t tid)
{
    struct seen_thread thread = {
        .files = {.task_fd = dirfd(process->task), .tid = tid, .schedstat_fd = -1},
        .listed_in = tick->passes,
    };

    if (thread_files_start_time(&thread.files, &thread.start_time_ns) < 0)
        return;
    if (tick->kept_files < tick->kept_files_limit && thread_files_keep_open(&thread.files))
        tick->kept_files++;
    id_map_put(&process->index_of_tid, (uint64_t)tid, (uint32_t)process->threads.count);
    VEC_PUSH(&process->threads, thread);
}

/* Those that are listed no more have ended; but the kernel may skip one when another ends while it lists. */
static void end_unlisted(struct tick *tick, struct seen_process *process)
{
    for (size_t i = process->threads.count; i-- > 0;) {
        struct seen_thread *thread = &process->threads.items[i];
        struct proc_schedstat ignored;

        if (thread->listed_in == tick->passes ||
            (!thread->ended && thread_files_schedstat(&thread->files, &ignored) == 0))
            continue;
        end_thread(tick, process, thread);
        id_map_remove(&process->index_of_tid, (uint64_t)thread->files.tid);
        *thread = process->threads.items[--process->threads.count];
        if (i < process->threads.count)
            id_map_put(&process->index_of_tid, (uint64_t)thread->files.tid, (uint32_t)i);
    }
}

static void list_threads(struct tick *tick, struct seen_process *process)
{
    const struct dirent *entry;

    rewinddir(process->task);
    while ((entry = readdir(process->task)) != NULL) {
        struct scanner in = {.at = entry->d_name, .end = entry->d_name + strlen(entry->d_name)};
        uint64_t tid;
        uint32_t index;

        if (!scanner_take_decimal(&in, &tid) || in.at != in.end || tid > INT32_MAX)
            continue;
        if (id_map_get(&process->index_of_tid, tid, &index))
            process->threads.items[index].listed_in = tick->passes;
        else
            add_thread(tick, process, (pid_t)tid);
    }
    end_unlisted(tick, process);
}

static bool is_chosen(const struct tick *tick)
{
    return tick->stack_share >= 1 || drand48() < tick->stack_share;
}

static const char *keep_channel(struct tick *tick, const char *name)
{
    uint64_t key = hash_bytes(name, strlen(name));
    uint32_t index;

    if (name[0] == '\0')
        return NULL;
    if (!id_map_get(&tick->channel_indices, key, &index)) {
        index = (uint32_t)tick->channels.count;
        VEC_PUSH(&tick->channels, string_copy(name));
        id_map_put(&tick->channel_indices, key, index);
    }
    return tick->channels.items[index];
}

static void look_without_rights(struct tick *tick, struct seen_thread *thread, struct tick_look *look)
{
    char channel[WAIT_CHANNEL_BYTES];

    thread->not_permitted = true;
    look->stack = TICK_STACK_NOT_PERMITTED;
    if (thread_files_wait_channel(&thread->files, channel, sizeof channel) == 0)
        look->wait_channel = keep_channel(tick, channel);
}

static int timeout_ms(const struct tick *tick)
{
    int shortened = tick->hang_count < 8 ? READ_TIMEOUT_MS >> tick->hang_count : 0;

    return shortened > LEAST_TIMEOUT_MS ? shortened : LEAST_TIMEOUT_MS;
}

/* The reader hung in its memory, which is left alone from now on: what it does is looked at again without. */
static int give_up_memory(struct tick *tick, struct seen_thread *thread, struct error *err)
{
    thread->memory_refused = true;
    tick->hang_count++;
    return tick_reader_restart(&tick->reader, err);
}

static int take_look(struct tick *tick, const struct seen_process *process, struct seen_thread *thread,
                     struct thread_look *ret_look, struct error *err)
{
    struct thread_look_request request = {
        .files = thread->files,
        .pid = process->pid,
        .want_stack = thread->not_permitted || is_chosen(tick), /* what cannot be had costs nothing */
        .memory_refused = thread->memory_refused,
        .stack_range = thread->stack_range,
        .limit_bytes = STACK_BYTES,
    };
    int r = tick_reader_look(&tick->reader, &request, tick->filled_bytes, timeout_ms(tick), ret_look);

    if (r != -ETIMEDOUT && r != -EPIPE)
        return r;
    r = give_up_memory(tick, thread, err);
    if (r < 0)
        return r;
    request.memory_refused = true;
    r = tick_reader_look(&tick->reader, &request, tick->filled_bytes, READ_TIMEOUT_MS, ret_look);
    return r < 0 ? error_set(err, r, "ask the reader") : 0;
}

/* Whether another look would get more of the stack: its mapping was not known. */
static bool learn_stack_range(struct seen_process *process, struct seen_thread *thread,
                              const struct thread_look *got)
{
    uint64_t sp = got->syscall.sp;
    struct memory_range *range = &thread->stack_range;

    if (got->stack_bytes <= 0 || (sp >= range->start && sp < range->end))
        return false;
    return memory_ranges_find(&process->ranges, process->pid, sp, range);
}

static void take_stack(struct tick *tick, struct seen_thread *thread, const struct thread_look *got,
                       struct tick_look *look)
{
    if (got->syscall_result == -ENODATA) {
        look->stack = TICK_STACK_LEFT_OUT;
        return;
    }
    thread->settled = !got->moved;
    if (got->syscall_result < 0) {
        look_without_rights(tick, thread, look);
        return;
    }
    look->stack = got->moved ? TICK_STACK_RACED : TICK_STACK_NONE;
    if (got->syscall.running)
        return;
    look->syscall = got->syscall.number;
    memcpy(look->arguments, got->syscall.arguments, sizeof look->arguments);
    registers_set(&look->sample.registers, REGISTER_RSP, got->syscall.sp);
    registers_set(&look->sample.registers, REGISTER_IP, got->syscall.pc);
    if (got->stack_bytes == -EPERM && !got->moved)
        look_without_rights(tick, thread, look);
    if (got->stack_bytes <= 0)
        return;
    look->sample.stack = tick->reader.bytes + tick->filled_bytes;
    look->sample.stack_size_bytes = (size_t)got->stack_bytes;
    look->sample.stack_address = got->syscall.sp;
    if (got->syscall.sp >= thread->stack_range.start && got->syscall.sp < thread->stack_range.end)
        look->stack_end = thread->stack_range.end;
    tick->filled_bytes += (size_t)got->stack_bytes;
    if (!got->moved)
        look->stack = TICK_STACK_WHOLE;
}

static enum tick_look_state look_state(char state)
{
    switch (state) {
    case 'R':
        return TICK_AWAKE;
    case 'T':
    case 't':
        return TICK_STOPPED;
    default:
        return TICK_BLOCKED;
    }
}

static int look_at_changed(struct tick *tick, struct seen_process *process, struct seen_thread *thread,
                           struct error *err)
{
    struct thread_look got;
    struct tick_look *look;
    int r = take_look(tick, process, thread, &got, err);

    if (r == 0 && got.result == 0 && learn_stack_range(process, thread, &got))
        r = take_look(tick, process, thread, &got, err);
    if (r < 0)
        return r;
    thread->settled = false;
    if (got.result < 0 && got.result != -ESRCH && got.result != -ENOENT)
        return error_set(err, got.result, "look at a thread of process %d", process->pid);
    if (got.result < 0)
        return 0; /* it ended just now: the next listing tells */
    thread->schedstat = got.schedstat;
    if (got.status.state == 'Z' || got.status.state == 'X') {
        end_thread(tick, process, thread);
        return 0;
    }
    thread->status = got.status;
    look = new_look(tick, process, thread, got.time_ns);
    look->state = look_state(got.status.state);
    look->uninterruptible = got.status.state == 'D';
    if (look->state != TICK_AWAKE)
        take_stack(tick, thread, &got, look);
    return 0;
}

static int look_at(struct tick *tick, struct seen_process *process, struct seen_thread *thread, bool all,
                   struct error *err)
{
    uint64_t time_ns = clock_now_ns();
    struct proc_schedstat now;
    struct tick_look *look;

    if (thread->ended || thread_files_schedstat(&thread->files, &now) < 0)
        return 0;
    if (thread->settled && memcmp(&now, &thread->schedstat, sizeof now) == 0) {
        if (!all)
            return 0;
        look = new_look(tick, process, thread, time_ns);
        look->state = look_state(thread->status.state);
        look->unchanged = true;
        return 0;
    }
    return look_at_changed(tick, process, thread, err);
}

static bool is_full(const struct tick *tick)
{
    return tick->filled_bytes + STACK_BYTES > tick->reader.capacity_bytes ||
           tick->looks.count >= LOOKS_AT_ONCE;
}

static int pass(struct tick *tick, bool all, struct error *err)
{
    tick->filled_bytes = 0;
    tick->looks.count = 0;
    tick->given_looks = 0;
    if (!tick->in_pass) {
        tick->passes++;
        tick->process_index = 0;
        tick->thread_index = 0;
        drop_removed(tick);
    }
    tick->in_pass = true;
    for (; tick->process_index < tick->processes.count; tick->process_index++, tick->thread_index = 0) {
        struct seen_process *process = &tick->processes.items[tick->process_index];

        if (tick->thread_index == 0)
            list_threads(tick, process);
        for (; tick->thread_index < process->threads.count; tick->thread_index++) {
            int r;

            if (is_full(tick))
                return 1;
            r = look_at(tick, process, &process->threads.items[tick->thread_index], all, err);
            if (r < 0)
                return r;
        }
    }
    tick->in_pass = false;
    return 0;
}

static bool next(struct tick *tick, struct tick_look *ret_look)
{
    if (tick->given_looks == tick->looks.count)
        return false;
    *ret_look = tick->looks.items[tick->given_looks++];
    return true;
}

static void set_stack_share(struct tick *tick, double share)
{
    tick->stack_share = share;
}

static uint64_t cpu_ns(const struct tick *tick)
{
    return tick_reader_cpu_ns(&tick->reader);
}

const struct tick_backend tick_proc = {
    .name = "proc",
    .open = open_tick,
    .close = close_tick,
    .add_process = add_process,
    .remove_process = remove_process,
    .pass = pass,
    .next = next,
    .set_stack_share = set_stack_share,
    .cpu_ns = cpu_ns,
};
