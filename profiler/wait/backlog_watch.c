#include "profiler/wait/backlog_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/wait/backlog_tally.h"
#include "profiler/wait/fd_link.h"
#include "profiler/wait/inet_diag.h"
#include "profiler/wait/socket_owner.h"
#include "profiler/wait/tcp_dump.h"

/* A look costs some 0.5 us a socket of the namespace, a list of descriptors 2 us each. */
enum {
    LOOK_MS = 1000,
    LIST_MS = 3000,
    PAUSE_FACTOR =
        400, /* of what was spent: a look goes through all of the kernel's table, 4 ms where it is empty */
    MAX_PROCESSES = 64,
    MAX_NETWORKS = 8,
    MAX_FDS = 20000, /* of a list, of all processes together */
    LINK_BYTES = 64,
    STOP_MS = 1000,
};

struct network {
    uint64_t inode;
    int netlink_fd; /* -1: not permitted */
};

struct backlog_watch {
    pthread_t thread;
    bool started;
    bool abandoned; /* it hangs: what it uses must stay */
    bool has_results;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool stop;
    int proc_fds[MAX_PROCESSES]; /* of /proc/PID: a number that was given out again is not looked at */
    size_t process_count;
    bool has_new; /* of which the sockets were not listed yet */

    /* The thread's own. */
    struct network networks[MAX_NETWORKS];
    size_t network_count;
    uint64_t inside_of; /* the namespace that the thread is in */
    uint64_t next_list_ns;
    struct backlog_tally tally;
};

struct backlog_watch *backlog_watch_create(void)
{
    struct backlog_watch *watch = memory_zeroed(1, sizeof *watch);
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&watch->lock, NULL);
    return watch;
}

void backlog_watch_add(struct backlog_watch *watch, pid_t pid)
{
    char path[32];
    int fd;

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    pthread_mutex_lock(&watch->lock);
    fd = watch->process_count < MAX_PROCESSES ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        watch->proc_fds[watch->process_count++] = fd;
        watch->has_new = true;
    }
    pthread_mutex_unlock(&watch->lock);
}

/* Those that have ended make room for others. Returns how many are left; their fds stay open while the thread runs
 * outside the lock, since it alone closes them. */
static size_t list_processes(struct backlog_watch *watch, int ret_fds[MAX_PROCESSES])
{
    size_t left = 0;

    if (watch->has_new)
        watch->next_list_ns = 0;
    watch->has_new = false;
    for (size_t i = 0; i < watch->process_count; i++) {
        if (faccessat(watch->proc_fds[i], "fd", F_OK, 0) < 0 && (errno == ESRCH || errno == ENOENT))
            close(watch->proc_fds[i]);
        else
            watch->proc_fds[left++] = watch->proc_fds[i];
    }
    watch->process_count = left;
    for (size_t i = 0; i < left; i++)
        ret_fds[i] = watch->proc_fds[i];
    return left;
}

static size_t list_sockets(struct backlog_watch *watch, int proc_fd, size_t limit)
{
    AUTO_CLOSEDIR DIR *dir = NULL;
    int fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirent *entry;
    size_t count = 0;

    dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    while (count < limit && (entry = readdir(dir)) != NULL) {
        struct fd_link link;
        char text[LINK_BYTES];
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, text, sizeof text);

        count++;
        if (length <= 0 || text[0] != 's')
            continue;
        fd_link_parse(text, (size_t)length, &link);
        if (link.kind == FD_KIND_SOCKET && link.inode != 0)
            id_map_put(&watch->tally.inodes, link.inode, 1);
    }
    return count;
}

static void list_all_sockets(struct backlog_watch *watch, const int *proc_fds, size_t count)
{
    uint64_t begin_ns = clock_now_ns();
    size_t left = MAX_FDS;
    uint64_t spent_ns;

    if (begin_ns < watch->next_list_ns)
        return;
    id_map_clear(&watch->tally.inodes);
    for (size_t i = 0; i < count && left > 0; i++)
        left -= list_sockets(watch, proc_fds[i], left);
    spent_ns = clock_now_ns() - begin_ns;
    watch->next_list_ns = begin_ns + (spent_ns * PAUSE_FACTOR > LIST_MS * NS_PER_MS ? spent_ns * PAUSE_FACTOR
                                                                                    : LIST_MS * NS_PER_MS);
}

/* A netlink socket belongs to the namespace in which it was made. */
static int open_in_network(struct backlog_watch *watch, int proc_fd, uint64_t inode)
{
    AUTO_CLOSE int network_fd = -1;

    if (watch->inside_of != inode) {
        network_fd = openat(proc_fd, "ns/net", O_RDONLY | O_CLOEXEC);
        if (network_fd < 0 || setns(network_fd, CLONE_NEWNET) < 0)
            return -1;
        watch->inside_of = inode;
    }
    return inet_diag_open();
}

static void find_networks(struct backlog_watch *watch, const int *proc_fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t inode = socket_owner_network(proc_fds[i]);
        size_t k = 0;

        while (k < watch->network_count && watch->networks[k].inode != inode)
            k++;
        if (inode == 0 || k < watch->network_count || k == MAX_NETWORKS)
            continue;
        watch->networks[watch->network_count++] =
            (struct network){.inode = inode, .netlink_fd = open_in_network(watch, proc_fds[i], inode)};
    }
}

static void look(struct backlog_watch *watch, const int *proc_fds, size_t count)
{
    list_all_sockets(watch, proc_fds, count);
    find_networks(watch, proc_fds, count);
    if (watch->tally.inodes.count == 0)
        return;
    backlog_tally_begin_look(&watch->tally);
    for (size_t i = 0; i < watch->network_count; i++) {
        if (watch->networks[i].netlink_fd < 0)
            continue;
        tcp_dump(watch->networks[i].netlink_fd, AF_INET, backlog_tally_add, &watch->tally);
        tcp_dump(watch->networks[i].netlink_fd, AF_INET6, backlog_tally_add, &watch->tally);
    }
    backlog_tally_end_look(&watch->tally);
}

static void wait_until(struct backlog_watch *watch, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                                   .tv_nsec = (long)(until_ns % NS_PER_S)};
    int r = 0;

    while (!watch->stop && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
}

static void *serve(void *context)
{
    struct backlog_watch *watch = context;
    AUTO_CLOSE int self_fd = open("/proc/thread-self", O_PATH | O_DIRECTORY | O_CLOEXEC);

    watch->inside_of = self_fd >= 0 ? socket_owner_network(self_fd) : 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->stop) {
        int proc_fds[MAX_PROCESSES];
        size_t count = list_processes(watch, proc_fds);
        uint64_t begin_ns = clock_now_ns();
        uint64_t pause_ns;

        pthread_mutex_unlock(&watch->lock);
        look(watch, proc_fds, count);
        pthread_mutex_lock(&watch->lock);
        pause_ns = (clock_now_ns() - begin_ns) * PAUSE_FACTOR;
        wait_until(watch, begin_ns + (pause_ns > LOOK_MS * NS_PER_MS ? pause_ns : LOOK_MS * NS_PER_MS));
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

int backlog_watch_start(struct backlog_watch *watch)
{
    sigset_t all;
    sigset_t before;
    int r;

    /* Signals are for the thread that samples. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&watch->thread, NULL, serve, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    watch->started = r == 0;
    return -r;
}

void backlog_watch_stop(struct backlog_watch *watch)
{
    struct timespec until;

    if (!watch->started)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->stop = true;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STOP_MS / 1000;
    watch->started = false;
    watch->abandoned = pthread_timedjoin_np(watch->thread, NULL, &until) != 0;
    watch->has_results = !watch->abandoned;
}

void backlog_watch_destroy(struct backlog_watch *watch)
{
    if (watch == NULL)
        return;
    backlog_watch_stop(watch);
    if (watch->abandoned)
        return;
    for (size_t i = 0; i < watch->process_count; i++)
        close(watch->proc_fds[i]);
    for (size_t i = 0; i < watch->network_count; i++)
        if (watch->networks[i].netlink_fd >= 0)
            close(watch->networks[i].netlink_fd);
    backlog_tally_finish(&watch->tally);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

const struct backlog_listener *backlog_watch_listeners(const struct backlog_watch *watch, size_t *ret_count)
{
    *ret_count = watch->has_results ? watch->tally.listener_count : 0;
    return watch->tally.listeners;
}

const struct backlog_peer *backlog_watch_peers(const struct backlog_watch *watch, size_t *ret_count)
{
    *ret_count = watch->has_results ? watch->tally.peer_count : 0;
    return watch->tally.peers;
}
