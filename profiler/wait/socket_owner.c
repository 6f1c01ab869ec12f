#include "profiler/wait/socket_owner.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/file.h"
#include "profiler/base/vec.h"
#include "profiler/wait/fd_link.h"

/* Listening sockets are opened early and have low numbers. */
enum { FDS_PER_PROCESS = 4096, FDS_TOTAL = 300000, COMM_LIMIT = 64, COMM_FULL = 15, LINK_BYTES = 64 };

struct search {
    struct socket_owner *owners;
    size_t count;
    size_t missing;
    size_t links_read;
    uint64_t deadline_ns;
    const atomic_bool *stop;
};

uint64_t socket_owner_network(int proc_fd)
{
    struct stat st;

    return fstatat(proc_fd, "ns/net", &st, 0) == 0 ? st.st_ino : 0;
}

static bool holds_for_others(const char *comm)
{
    static const char *const names[] = {"systemd", "docker-proxy", "rootlessport", "slirp4netns", "conmon"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], comm) == 0)
            return true;
    return false;
}

/* comm is cut at 15 bytes: where the executable's name goes on from there, it is the better one. */
static void prefer_executable(pid_t pid, char *name)
{
    char path[64];
    char link[PATH_MAX];
    const char *base;
    ssize_t length;

    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    length = readlink(path, link, sizeof link - 1);
    if (length <= 0)
        return;
    link[length] = '\0';
    base = strrchr(link, '/');
    base = base != NULL ? base + 1 : link;
    if (strncmp(base, name, COMM_FULL) == 0 && strchr(base, ' ') == NULL)
        snprintf(name, SOCKET_OWNER_NAME_BYTES, "%.*s", SOCKET_OWNER_NAME_BYTES - 1, base);
}

void socket_owner_name(pid_t pid, char ret_name[SOCKET_OWNER_NAME_BYTES])
{
    AUTO_FREE char *comm = NULL;
    char path[64];
    size_t size = 0;

    ret_name[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    if (file_read(AT_FDCWD, path, COMM_LIMIT, &comm, &size) < 0)
        return;
    if (size > 0 && comm[size - 1] == '\n')
        comm[--size] = '\0';
    if (holds_for_others(comm))
        return;
    snprintf(ret_name, SOCKET_OWNER_NAME_BYTES, "%s", comm);
    if (size == COMM_FULL)
        prefer_executable(pid, ret_name);
    for (char *at = ret_name; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f || *at == ',' || *at == ']')
            *at = '_';
}

static void note(struct search *search, pid_t pid, uint64_t inode)
{
    for (size_t i = 0; i < search->count; i++) {
        struct socket_owner *owner = &search->owners[i];

        if (owner->inode != inode || owner->name[0] != '\0')
            continue;
        socket_owner_name(pid, owner->name);
        if (owner->name[0] != '\0')
            search->missing--;
    }
}

static bool is_over(const struct search *search)
{
    return search->missing == 0 || search->links_read > FDS_TOTAL || clock_now_ns() > search->deadline_ns ||
           (search->stop != NULL && atomic_load(search->stop));
}

static bool is_in_wanted_network(const struct search *search, int proc_fd)
{
    uint64_t network = socket_owner_network(proc_fd);

    for (size_t i = 0; i < search->count; i++)
        if (search->owners[i].network == network && search->owners[i].name[0] == '\0')
            return true;
    return false;
}

static void look_through(struct search *search, pid_t pid, int proc_fd)
{
    AUTO_CLOSEDIR DIR *dir = NULL;
    struct dirent *entry;
    int fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (int count = 0; count < FDS_PER_PROCESS && (entry = readdir(dir)) != NULL; count++) {
        struct fd_link link;
        char text[LINK_BYTES];
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, text, sizeof text);

        search->links_read++;
        if (length <= 0 || text[0] != 's')
            continue;
        fd_link_parse(text, (size_t)length, &link);
        if (link.kind == FD_KIND_SOCKET)
            note(search, pid, link.inode);
    }
}

static int compare_pids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a;
    pid_t right = *(const pid_t *)b;

    return (left > right) - (left < right);
}

void socket_owner_find(struct socket_owner *owners, size_t count, const atomic_bool *stop)
{
    struct search search = {.owners = owners,
                            .count = count,
                            .missing = count,
                            .deadline_ns = clock_now_ns() + 3 * NS_PER_S,
                            .stop = stop};
    AUTO_CLOSEDIR DIR *proc = opendir("/proc");
    VEC_OF(pid_t) pids = {0};
    struct dirent *entry;

    for (size_t i = 0; i < count; i++)
        owners[i].name[0] = '\0';
    while (proc != NULL && (entry = readdir(proc)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]))
            VEC_PUSH(&pids, (pid_t)strtol(entry->d_name, NULL, 10));
    if (pids.count > 0)
        qsort(pids.items, pids.count, sizeof pids.items[0], compare_pids);
    for (size_t i = 0; i < pids.count && !is_over(&search); i++) {
        AUTO_CLOSE int proc_fd = -1;
        char path[32];

        snprintf(path, sizeof path, "/proc/%d", pids.items[i]);
        proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (proc_fd >= 0 && is_in_wanted_network(&search, proc_fd))
            look_through(&search, pids.items[i], proc_fd);
    }
    free(pids.items);
}
