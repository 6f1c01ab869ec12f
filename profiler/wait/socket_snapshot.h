/* The TCP and UDP sockets of a network namespace by inode, as its tables in /proc say (proc_net.h): for where a
 * descriptor may not be copied. Reading them takes a millisecond a thousand sockets, so what was read is kept, and read
 * again only when a socket is not in it and a hundred times as long has passed as it takes. */
#ifndef STALLGRAPH_WAIT_SOCKET_SNAPSHOT_H
#define STALLGRAPH_WAIT_SOCKET_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/base/id_map.h"
#include "profiler/wait/proc_net.h"

struct socket_snapshot_entry {
    struct proc_net_socket socket;
    bool is_ipv6, is_udp; /* the table that it stands in */
};

/* Zeroed is empty. */
struct socket_snapshot {
    struct socket_snapshot_entry *items;
    size_t count;
    size_t capacity;
    struct id_map index_of_inode;
    uint64_t next_ns; /* not read again before */
};

void socket_snapshot_finish(struct socket_snapshot *snapshot);

/* proc_fd: of /proc/PID of a process in the namespace. NULL: it is not there, or beyond the part that is read. Valid
 * until the next call. */
const struct socket_snapshot_entry *socket_snapshot_find(struct socket_snapshot *snapshot, int proc_fd,
                                                         uint64_t inode);

#endif
