#include "profiler/wait/wait_namer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/wait/fd_link.h"
#include "profiler/wait/futex_wait.h"
#include "profiler/wait/socket_namer.h"
#include "profiler/wait/syscall_fd.h"
#include "profiler/wait/syscall_name.h"

enum { SETTLE_MS = 3000, MAX_POLLS = 4096, NOT_OPENED = -1, NOT_THERE = -2 };

#define MARK_BEGIN "\001"
#define MARK_END "\002"

/* What a set of descriptors was named last: programs poll the same ones over and over. */
struct kept_poll {
    char text[WAIT_TEXT_BYTES];
    uint64_t until_ns;
};

struct wait_namer {
    struct service_finder *finder;
    struct socket_namer *sockets;
    VEC_OF(int) proc_fds; /* by process: of /proc/PID, NOT_OPENED or NOT_THERE */
    VEC_OF(struct kept_poll) polls;
    struct id_map poll_of_set; /* (process, the set) -> index */
};

struct wait_namer *wait_namer_create(void)
{
    struct wait_namer *namer = memory_zeroed(1, sizeof *namer);

    namer->finder = service_finder_create();
    namer->sockets = socket_namer_create(namer->finder);
    return namer;
}

void wait_namer_destroy(struct wait_namer *namer)
{
    if (namer == NULL)
        return;
    socket_namer_destroy(namer->sockets);
    service_finder_destroy(namer->finder);
    for (size_t i = 0; i < namer->proc_fds.count; i++)
        if (namer->proc_fds.items[i] >= 0)
            close(namer->proc_fds.items[i]);
    free(namer->proc_fds.items);
    free(namer->polls.items);
    id_map_finish(&namer->poll_of_set);
    free(namer);
}

void wait_namer_forget(struct wait_namer *namer, uint32_t process)
{
    if (process >= namer->proc_fds.count)
        return;
    if (namer->proc_fds.items[process] >= 0)
        close(namer->proc_fds.items[process]);
    namer->proc_fds.items[process] = NOT_THERE;
}

/* Held from its first wait on: a number that is given to another process later leads nowhere. */
static int proc_fd_of(struct wait_namer *namer, const struct wait_question *question)
{
    char path[32];
    int *fd;

    while (namer->proc_fds.count <= question->process)
        VEC_PUSH(&namer->proc_fds, NOT_OPENED);
    fd = &namer->proc_fds.items[question->process];
    if (*fd == NOT_OPENED) {
        snprintf(path, sizeof path, "/proc/%d", question->pid);
        *fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (*fd < 0)
            *fd = NOT_THERE;
    }
    return *fd;
}

static void set_text(struct wait_answer *answer, const char *verb, const char *what, const char *detail)
{
    int length = snprintf(answer->text, sizeof answer->text, "[wait: %s%s%s%s]", verb, what,
                          detail[0] != '\0' ? " " : "", detail);

    if (length >= (int)sizeof answer->text)
        answer->text[sizeof answer->text - 2] = ']'; /* cut, but still a frame of its kind */
}

static void name_by_syscall(const struct wait_question *question, struct wait_answer *answer)
{
    struct wait_name name;

    wait_from_syscall_name(syscall_name(question->syscall), &name);
    memcpy(answer->text, name.text, sizeof answer->text);
}

static const char *socket_verb(const struct socket_name *name, enum fd_use use, bool write)
{
    if (name->role == WAIT_ROLE_ACCEPT)
        return "accept ";
    if (use == FD_USE_CONNECT || (write && name->connecting))
        return "connect ";
    if (name->role == WAIT_ROLE_CLIENT)
        return write ? "send client " : "client ";
    return write ? "send " : "";
}

static void set_socket_text(struct wait_answer *answer, const struct socket_name *name, enum fd_use use,
                            bool write)
{
    char detail[WAIT_TEXT_BYTES];

    if (name->service != SOCKET_NO_SERVICE)
        snprintf(detail, sizeof detail, "%s" MARK_BEGIN "%u" MARK_END, name->where, name->service);
    else
        snprintf(detail, sizeof detail, "%s%s%s", name->where, name->owner[0] != '\0' ? " " : "",
                 name->owner);
    set_text(answer, socket_verb(name, use, write), name->protocol, detail);
}

static bool name_socket(struct wait_namer *namer, const struct socket_process *process,
                        const struct syscall_fds *fds, const struct syscall_fd *item, uint64_t inode,
                        struct wait_answer *answer)
{
    const struct socket_name *name;
    struct socket_name target;
    bool found = socket_namer_find(namer->sockets, process, item->fd, inode, &name) == 0;

    if (fds->use == FD_USE_CONNECT && fds->target.family != AF_UNSPEC) {
        const char *protocol = found ? name->protocol : fds->target.family == AF_UNIX ? "unix" : "tcp";

        /* A unix socket that has no name yet looks like one of a pair. */
        if (strcmp(protocol, "socketpair") == 0)
            protocol = "unix";
        socket_namer_of_target(namer->sockets, process, &fds->target, protocol, &target);
        name = &target;
    } else if (!found) {
        return false;
    }
    set_socket_text(answer, name, fds->use, item->write);
    return true;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* A thread in state D waits for the disk below a regular file; asking for the type of others must not wait
 * for their file system: AT_STATX_DONT_SYNC takes what the kernel knows. */
static mode_t type_of_path(int proc_fd, int fd)
{
    struct statx st;
    char path[32];

    snprintf(path, sizeof path, "fd/%d", fd);
    if (statx(proc_fd, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) < 0)
        return S_IFREG;
    return st.stx_mode & S_IFMT;
}

static bool is_terminal(const char *path)
{
    return strncmp(path, "/dev/pts/", 9) == 0 || strncmp(path, "/dev/tty", 8) == 0 ||
           strcmp(path, "/dev/console") == 0;
}

static bool name_path(const struct wait_question *question, int proc_fd, const struct syscall_fds *fds,
                      const struct syscall_fd *item, const struct fd_link *link, struct wait_answer *answer)
{
    mode_t type = question->uninterruptible ? S_IFREG : type_of_path(proc_fd, item->fd);

    if (fds->use == FD_USE_SYNC)
        return false; /* "[wait: fsync]" says more */
    if (type == S_IFIFO)
        set_text(answer, item->write ? "send " : "", "pipe", base_name(link->path));
    else if (type == S_IFCHR && is_terminal(link->path))
        set_text(answer, item->write ? "send " : "", "tty", "");
    else if (type == S_IFCHR)
        set_text(answer, "", "device", link->path);
    else
        set_text(answer, "disk ", item->write ? "write" : "read", "");
    return true;
}

static bool name_fd(struct wait_namer *namer, const struct wait_question *question,
                    const struct syscall_fds *fds, const struct syscall_fd *item, struct wait_answer *answer)
{
    const struct socket_process process = {
        .id = question->process, .proc_fd = proc_fd_of(namer, question), .pid_fd = question->pid_fd};
    const char *verb = item->write ? "send " : "";
    struct fd_link link;

    if (process.proc_fd < 0 || fd_link_read(process.proc_fd, item->fd, &link) < 0)
        return false;
    switch (link.kind) {
    case FD_KIND_SOCKET:
        return name_socket(namer, &process, fds, item, link.inode, answer);
    case FD_KIND_PIPE:
        set_text(answer, verb, "pipe", item->fd == STDIN_FILENO ? "stdin" : "");
        return true;
    case FD_KIND_EPOLL:
        set_text(answer, "", "epoll", "");
        return true;
    case FD_KIND_EVENTFD:
        set_text(answer, verb, "eventfd", "");
        return true;
    case FD_KIND_TIMERFD:
        set_text(answer, "", "timerfd", "");
        return true;
    case FD_KIND_SIGNALFD:
        set_text(answer, "", "signalfd", "");
        return true;
    case FD_KIND_INOTIFY:
        set_text(answer, "", "inotify", "");
        return true;
    case FD_KIND_IO_URING:
        set_text(answer, "", "io_uring", "");
        return true;
    case FD_KIND_ANON:
        set_text(answer, "", "anon", link.path);
        return true;
    case FD_KIND_PATH:
        return name_path(question, process.proc_fd, fds, item, &link, answer);
    case FD_KIND_UNKNOWN:
        return false;
    }
    return false;
}

/* Of several descriptors: what they are if they are all the same; an event loop where connections are
 * accepted too; else the first that leads to a dependency, then one that leads to a client; what is left is
 * an event loop. */
static void choose(struct wait_namer *namer, const struct wait_question *question,
                   const struct syscall_fds *fds, struct wait_answer *answer)
{
    struct wait_answer best = {0};
    bool all_equal = true;
    bool accepts = false;
    bool all_accept = true;
    int best_rank = 0;

    for (size_t i = 0; i < fds->count; i++) {
        static const int ranks[WAIT_ROLE_COUNT] = {
            [WAIT_ROLE_OUTBOUND] = 4, [WAIT_ROLE_SEND_CLIENT] = 3, [WAIT_ROLE_CLIENT] = 2};
        struct wait_answer one = {0};
        enum wait_role role;
        int rank;

        if (!name_fd(namer, question, fds, &fds->items[i], &one))
            name_by_syscall(question, &one);
        role = wait_role_of_text(one.text);
        accepts = accepts || role == WAIT_ROLE_ACCEPT;
        all_accept = all_accept && role == WAIT_ROLE_ACCEPT;
        all_equal = all_equal && (i == 0 || strcmp(one.text, answer->text) == 0);
        if (i == 0)
            memcpy(answer->text, one.text, sizeof answer->text);
        rank = ranks[role] > 0 ? ranks[role] : 1;
        if (rank > best_rank) {
            best = one;
            best_rank = rank;
        }
    }
    if (all_equal || all_accept)
        return; /* the first one's */
    if (accepts || best_rank <= 1)
        set_text(answer, "", "events", "");
    else
        memcpy(answer->text, best.text, sizeof answer->text);
}

static uint64_t key_of_set(uint32_t process, const struct syscall_fds *fds)
{
    uint64_t key = process;

    for (size_t i = 0; i < fds->count; i++)
        key = hash_mix(key, (uint64_t)fds->items[i].fd << 1 | fds->items[i].write);
    return key;
}

/* More than one descriptor: each costs a few microseconds, so the choice is kept for a second. */
static void name_set(struct wait_namer *namer, const struct wait_question *question,
                     const struct syscall_fds *fds, struct wait_answer *answer)
{
    uint64_t key = key_of_set(question->process, fds);
    uint64_t now_ns = clock_now_ns();
    struct kept_poll *kept;
    uint32_t index;

    if (!id_map_get(&namer->poll_of_set, key, &index)) {
        if (namer->polls.count == MAX_POLLS) {
            id_map_clear(&namer->poll_of_set);
            namer->polls.count = 0;
        }
        index = (uint32_t)namer->polls.count;
        VEC_PUSH(&namer->polls, ((struct kept_poll){0}));
        id_map_put(&namer->poll_of_set, key, index);
    }
    kept = &namer->polls.items[index];
    if (now_ns >= kept->until_ns) {
        choose(namer, question, fds, answer);
        memcpy(kept->text, answer->text, sizeof kept->text);
        kept->until_ns = now_ns + NS_PER_S;
    }
    memcpy(answer->text, kept->text, sizeof answer->text);
}

static void name_fds(struct wait_namer *namer, const struct wait_question *question,
                     const struct syscall_fds *fds, struct wait_answer *answer)
{
    if (fds->use == FD_USE_EPOLL)
        set_text(answer, "", "epoll", "");
    else if (fds->use == FD_USE_IO_URING)
        set_text(answer, "", "io_uring", "");
    else if (fds->count > 1)
        name_set(namer, question, fds, answer);
    else if (fds->use == FD_USE_POLL && fds->count == 0 && !fds->unreadable)
        set_text(answer, "", "sleep", "");
    else if (fds->count == 0 || !name_fd(namer, question, fds, &fds->items[0], answer))
        name_by_syscall(question, answer);
}

static void name_futex(const struct wait_question *question, struct wait_answer *answer)
{
    struct futex_wait wait;
    char name[WAIT_TEXT_BYTES / 2] = "";

    futex_wait_read(question->arguments, question->memory, &wait);
    switch (wait.kind) {
    case FUTEX_WAIT_CONDITION:
        set_text(answer, "", "condition", "");
        return;
    case FUTEX_WAIT_JOIN:
        set_text(answer, "", "join", "");
        return;
    case FUTEX_WAIT_LOCK:
        break;
    }
    answer->lock_address = wait.lock_address;
    answer->lock_owner = wait.owner;
    if (question->name_address == NULL ||
        !question->name_address(question->name_context, wait.lock_address, name, sizeof name))
        name[0] = '\0';
    set_text(answer, "", "lock", name);
}

/* Calls that look something up or change it in a file system: in state D they wait for its disk, or its
 * server. */
static bool is_file_system_call(const char *name)
{
    static const char *const names[] = {
        "open",     "openat",    "openat2", "creat",    "stat",       "lstat",    "newfstatat", "statx",
        "access",   "faccessat", "unlink",  "unlinkat", "rename",     "renameat", "renameat2",  "mkdir",
        "mkdirat",  "rmdir",     "link",    "linkat",   "symlink",    "readlink", "readlinkat", "truncate",
        "getdents", "execve",    "chmod",   "chown",    "faccessat2", "fstat",    "close",      "fadvise64",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

void wait_namer_name(struct wait_namer *namer, const struct wait_question *question,
                     struct wait_answer *ret_answer)
{
    const char *name = syscall_name(question->syscall);
    struct syscall_fds fds;

    *ret_answer = (struct wait_answer){0};
    if (question->syscall < 0)
        set_text(ret_answer, "", "page fault", "");
    else if (question->syscall == SYS_futex)
        name_futex(question, ret_answer);
    else if (syscall_fd_list(question->syscall, question->arguments, question->memory, &fds))
        name_fds(namer, question, &fds, ret_answer);
    else if (question->uninterruptible && name != NULL && is_file_system_call(name))
        set_text(ret_answer, "disk ", name, "");
    else
        name_by_syscall(question, ret_answer);
    ret_answer->role = wait_role_of_text(ret_answer->text);
    ret_answer->kind = wait_kind_of_text(ret_answer->text);
}

void wait_namer_settle(struct wait_namer *namer)
{
    service_finder_settle(namer->finder, SETTLE_MS);
}

void wait_namer_finish_text(struct wait_namer *namer, const char *text, char *ret_text, size_t size)
{
    const char *mark = strchr(text, MARK_BEGIN[0]);
    const char *end = mark != NULL ? strchr(mark, MARK_END[0]) : NULL;
    const char *service;

    if (end == NULL) {
        snprintf(ret_text, size, "%s", text);
        return;
    }
    service = service_finder_name(namer->finder, (uint32_t)strtoul(mark + 1, NULL, 10));
    snprintf(ret_text, size, "%.*s%s%s%s", (int)(mark - text), text, service[0] != '\0' ? " " : "", service,
             end + 1);
}
