#include "profiler/wait/far_end.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/wait/inet_diag.h"
#include "profiler/wait/listener_list.h"
#include "profiler/wait/socket_owner.h"

enum { MAX_NETWORKS = 64, MAX_PROCESSES = 65536, KEPT_FOR_S = 5 };

struct network {
    uint64_t inode;
    int netlink_fd; /* -1: not permitted */
    struct listener_list listeners;
};

struct far_end_finder {
    VEC_OF(struct network) networks;
    uint64_t read_ns;   /* when all namespaces were looked for */
    bool has_all;       /* they were, in the last seconds */
    uint64_t inside_of; /* the namespace that the thread is in; 0 = not known */
};

struct far_end_finder *far_end_finder_create(void)
{
    return memory_zeroed(1, sizeof(struct far_end_finder));
}

static void forget(struct far_end_finder *finder)
{
    for (size_t i = 0; i < finder->networks.count; i++) {
        if (finder->networks.items[i].netlink_fd >= 0)
            close(finder->networks.items[i].netlink_fd);
        listener_list_finish(&finder->networks.items[i].listeners);
    }
    finder->networks.count = 0;
    finder->has_all = false;
}

void far_end_finder_destroy(struct far_end_finder *finder)
{
    if (finder == NULL)
        return;
    forget(finder);
    free(finder->networks.items);
    free(finder);
}

static int open_netlink(struct far_end_finder *finder, int proc_fd, uint64_t inode)
{
    AUTO_CLOSE int network_fd = -1;

    if (finder->inside_of == 0) {
        AUTO_CLOSE int self_fd = open("/proc/thread-self", O_PATH | O_DIRECTORY | O_CLOEXEC);

        finder->inside_of = self_fd >= 0 ? socket_owner_network(self_fd) : 0;
    }
    if (finder->inside_of != inode) {
        network_fd = openat(proc_fd, "ns/net", O_RDONLY | O_CLOEXEC);
        if (network_fd < 0 || setns(network_fd, CLONE_NEWNET) < 0)
            return -1;
        finder->inside_of = inode;
    }
    return inet_diag_open();
}

static struct network *find_network(struct far_end_finder *finder, uint64_t inode)
{
    for (size_t i = 0; i < finder->networks.count; i++)
        if (finder->networks.items[i].inode == inode)
            return &finder->networks.items[i];
    return NULL;
}

static struct network *add_network(struct far_end_finder *finder, int proc_fd, uint64_t inode)
{
    struct network *network = find_network(finder, inode);

    if (network != NULL || inode == 0 || finder->networks.count == MAX_NETWORKS)
        return network;
    VEC_PUSH(&finder->networks,
             ((struct network){.inode = inode, .netlink_fd = open_netlink(finder, proc_fd, inode)}));
    network = &finder->networks.items[finder->networks.count - 1];
    listener_list_read(&network->listeners, proc_fd);
    return network;
}

static void add_all_networks(struct far_end_finder *finder)
{
    AUTO_CLOSEDIR DIR *proc = opendir("/proc");
    struct dirent *entry;

    finder->has_all = true;
    for (int count = 0; proc != NULL && count < MAX_PROCESSES && (entry = readdir(proc)) != NULL; count++) {
        AUTO_CLOSE int proc_fd = -1;

        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        proc_fd = openat(dirfd(proc), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (proc_fd >= 0)
            add_network(finder, proc_fd, socket_owner_network(proc_fd));
    }
}

/* Someone listens there, and (unless it cannot be anybody else) has the other half of the connection. */
static bool is_far_end(const struct network *network, const struct far_end_question *question,
                       struct far_end *ret_end)
{
    const struct listener *listener = listener_list_find(&network->listeners, &question->remote);
    uint64_t connection;

    if (listener == NULL)
        return false;
    if (!(socket_address_is_loopback(&question->remote) && network->inode == question->network) &&
        (network->netlink_fd < 0 ||
         inet_diag_find(network->netlink_fd, &question->remote, &question->local, &connection) < 0))
        return false;
    *ret_end = (struct far_end){.inode = listener->inode, .network = network->inode};
    return true;
}

int far_end_find(struct far_end_finder *finder, const struct far_end_question *question,
                 struct far_end *ret_end)
{
    uint64_t now_ns = clock_now_ns();
    const struct network *own;

    if (now_ns - finder->read_ns > KEPT_FOR_S * NS_PER_S) {
        forget(finder);
        finder->read_ns = now_ns;
    }
    own = add_network(finder, question->proc_fd, question->network);
    if (own != NULL && is_far_end(own, question, ret_end))
        return 0;
    if (socket_address_is_loopback(&question->remote))
        return -ENOENT;
    if (!finder->has_all)
        add_all_networks(finder);
    for (size_t i = 0; i < finder->networks.count; i++)
        if (is_far_end(&finder->networks.items[i], question, ret_end))
            return 0;
    return -ENOENT;
}
