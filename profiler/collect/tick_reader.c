#include "profiler/collect/tick_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/clock.h"

/* What is shared beside the bytes stands in pages behind them. */
struct shared {
    struct tick_answer progress;
    struct thread_look look;
};

enum request_kind { READ_FDS, RUN_PROGRAM, READ_MEMORY, LOOK_AT_THREAD };

struct request {
    enum request_kind kind;
    size_t fd_count;
    int fds[TICK_READER_FDS];
    struct tick_memory memory;
    struct thread_look_request look;
    size_t offset; /* of the memory, or the thread's stack */
};

static bool has_room(const struct tick_reader *reader, size_t filled_bytes)
{
    return filled_bytes + TICK_READER_ROOM_BYTES <= reader->capacity_bytes;
}

/* What it got is noted after each read: where the next one hangs, that much is there. */
static void read_to_end(const struct tick_reader *reader, const struct request *request)
{
    size_t filled_bytes = 0;
    size_t done = 0;

    while (done < request->fd_count && has_room(reader, filled_bytes)) {
        ssize_t got =
            read(request->fds[done], reader->bytes + filled_bytes, reader->capacity_bytes - filled_bytes);

        if (got > 0)
            filled_bytes += (size_t)got;
        else if (got == 0 || errno != EINTR) /* the end, or a process that has gone */
            done++;
        reader->progress->filled_bytes = filled_bytes;
        reader->progress->done = done;
    }
}

/* bpf(2), BPF_PROG_RUN. */
static ssize_t run_program(int fd)
{
    union bpf_attr attributes = {0};

    attributes.test.prog_fd = (uint32_t)fd;
    return syscall(SYS_bpf, BPF_PROG_RUN, &attributes, sizeof attributes) < 0 ? -errno : 0;
}

/* In the process of its own. Nothing here may allocate or lock: it is a fork of a program that goes on. */
static _Noreturn void serve(const struct tick_reader *reader, int request_fd, int reply_fd)
{
    struct request request;

    while (read(request_fd, &request, sizeof request) == (ssize_t)sizeof request) {
        uint8_t *bytes = reader->bytes + request.offset;
        ssize_t got = 0;

        switch (request.kind) {
        case READ_FDS:
            read_to_end(reader, &request);
            break;
        case RUN_PROGRAM:
            got = run_program(request.fds[0]);
            break;
        case READ_MEMORY:
            got = process_memory_read(request.memory.pid, request.memory.address, bytes,
                                      request.memory.size_bytes);
            break;
        case LOOK_AT_THREAD:
            thread_look_take(&request.look, bytes, reader->look);
            break;
        }
        if (write(reply_fd, &got, sizeof got) != (ssize_t)sizeof got)
            break;
    }
    _exit(0);
}

/* Shares the table of descriptors, so that iterators that are opened later can be named by number; memory is
 * its own but for the shared mapping. No handler of ours may run there, and it must not outlive us. */
static _Noreturn void run_child(const struct tick_reader *reader, pid_t parent, int request_fd, int reply_fd)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    serve(reader, request_fd, reply_fd);
}

static int start_process(struct tick_reader *reader, struct error *err)
{
    int request[2];
    int reply[2];
    pid_t parent = getpid();
    long pid;

    if (pipe2(request, O_CLOEXEC) < 0)
        return error_set(err, -errno, "make a pipe");
    if (pipe2(reply, O_CLOEXEC) < 0) {
        int code = error_set(err, -errno, "make a pipe");

        close(request[0]);
        close(request[1]);
        return code;
    }
    pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, 0);
    if (pid == 0)
        run_child(reader, parent, request[0], reply[1]);
    if (pid < 0) {
        int code = error_set(err, -errno, "start the reader");

        close(request[0]);
        close(request[1]);
        close(reply[0]);
        close(reply[1]);
        return code;
    }
    /* The table is one: the ends that only the process uses stay open here, and are closed with it. */
    reader->pid = (pid_t)pid;
    reader->request_fd = request[1];
    reader->reply_fd = reply[0];
    reader->child_request_fd = request[0];
    reader->child_reply_fd = reply[1];
    return 0;
}

static uint64_t process_cpu_ns(pid_t pid)
{
    struct timespec t;
    clockid_t clock;

    if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
        return 0;
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void end_process(struct tick_reader *reader)
{
    if (reader->pid <= 0)
        return;
    reader->ended_cpu_ns += process_cpu_ns(reader->pid);
    kill(reader->pid, SIGKILL);
    while (waitpid(reader->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(reader->request_fd);
    close(reader->reply_fd);
    close(reader->child_request_fd);
    close(reader->child_reply_fd);
    reader->pid = 0;
}

int tick_reader_start(struct tick_reader *reader, size_t capacity_bytes, struct error *err)
{
    void *bytes = mmap(NULL, capacity_bytes + sizeof(struct shared), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct shared *shared;
    int r;

    if (bytes == MAP_FAILED)
        return error_set(err, -errno, "map %zu bytes for the reader", capacity_bytes);
    shared = (struct shared *)(void *)((uint8_t *)bytes + capacity_bytes);
    *reader = (struct tick_reader){
        .bytes = bytes,
        .capacity_bytes = capacity_bytes,
        .progress = &shared->progress,
        .look = &shared->look,
    };
    r = start_process(reader, err);
    if (r < 0)
        tick_reader_stop(reader);
    return r;
}

int tick_reader_restart(struct tick_reader *reader, struct error *err)
{
    end_process(reader);
    reader->asked = false;
    return start_process(reader, err);
}

void tick_reader_stop(struct tick_reader *reader)
{
    end_process(reader);
    if (reader->bytes != NULL)
        munmap(reader->bytes, reader->capacity_bytes + sizeof(struct shared));
    reader->bytes = NULL;
}

static int put_request(struct tick_reader *reader, const struct request *request)
{
    return write(reader->request_fd, request, sizeof *request) == (ssize_t)sizeof *request ? 0 : -EPIPE;
}

/* "4242 (stallgraph) R 1 ...": it does not hang, it has no CPU. Its name is our own, without a parenthesis. */
static bool wants_cpu(pid_t pid)
{
    char path[64];
    char text[64] = "";
    const char *state;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (read(fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    close(fd);
    state = strchr(text, ')');
    return state != NULL && strncmp(state, ") R", 3) == 0;
}

/* On a busy machine a process may have to wait for its turn: for so many times as long. */
enum { MOST_TIMEOUTS = 10 };

static ssize_t take_reply(struct tick_reader *reader, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = reader->reply_fd, .events = POLLIN};
    uint64_t timeout_ns = (uint64_t)timeout_ms * NS_PER_MS;
    uint64_t deadline_ns = clock_now_ns() + timeout_ns;
    int timeouts = 0;
    ssize_t got;

    for (;;) {
        uint64_t now_ns = clock_now_ns();
        int left_ms = now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / NS_PER_MS) + 1 : 0;
        int ready = poll(&poll_fd, 1, left_ms);

        if (ready > 0)
            break;
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready == 0 && (++timeouts >= MOST_TIMEOUTS || !wants_cpu(reader->pid)))
            return -ETIMEDOUT;
        if (ready == 0)
            deadline_ns = clock_now_ns() + timeout_ns;
    }
    if (read(reader->reply_fd, &got, sizeof got) != (ssize_t)sizeof got)
        return -EPIPE;
    return got;
}

int tick_reader_begin(struct tick_reader *reader, const int *fds, size_t count)
{
    struct request request = {.kind = READ_FDS, .fd_count = count};
    int r;

    if (count == 0 || count > TICK_READER_FDS || reader->asked)
        return -EINVAL;
    memcpy(request.fds, fds, count * sizeof *fds);
    reader->progress->filled_bytes = 0;
    reader->progress->done = 0;
    r = put_request(reader, &request);
    reader->asked = r == 0;
    return r;
}

int tick_reader_begin_program(struct tick_reader *reader, int program_fd)
{
    int r;

    if (reader->asked)
        return -EINVAL;
    r = put_request(reader, &(struct request){.kind = RUN_PROGRAM, .fds = {program_fd}});
    reader->asked = r == 0;
    return r;
}

int tick_reader_end(struct tick_reader *reader, int timeout_ms, struct tick_answer *ret_answer)
{
    ssize_t r = take_reply(reader, timeout_ms);

    reader->asked = false;
    ret_answer->filled_bytes = reader->progress->filled_bytes;
    ret_answer->done = reader->progress->done;
    return r < 0 ? (int)r : 0;
}

ssize_t tick_reader_read_memory(struct tick_reader *reader, const struct tick_memory *memory, size_t offset,
                                int timeout_ms)
{
    if (memory->size_bytes > TICK_READER_MEMORY_BYTES || offset > reader->capacity_bytes ||
        memory->size_bytes > reader->capacity_bytes - offset)
        return -EINVAL;
    if (reader->asked ||
        put_request(reader, &(struct request){.kind = READ_MEMORY, .memory = *memory, .offset = offset}) < 0)
        return -EPIPE;
    return take_reply(reader, timeout_ms);
}

int tick_reader_look(struct tick_reader *reader, const struct thread_look_request *request, size_t offset,
                     int timeout_ms, struct thread_look *ret_look)
{
    ssize_t r;

    if (request->limit_bytes > PROCESS_MEMORY_MAX_BYTES || offset > reader->capacity_bytes ||
        request->limit_bytes > reader->capacity_bytes - offset)
        return -EINVAL;
    if (reader->asked ||
        put_request(reader, &(struct request){.kind = LOOK_AT_THREAD, .look = *request, .offset = offset}) <
            0)
        return -EPIPE;
    r = take_reply(reader, timeout_ms);
    if (r < 0)
        return (int)r;
    *ret_look = *reader->look;
    return 0;
}

uint64_t tick_reader_cpu_ns(const struct tick_reader *reader)
{
    return reader->ended_cpu_ns + process_cpu_ns(reader->pid);
}
