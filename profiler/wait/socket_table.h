/* What a socket of another process is connected to. */
#ifndef STALLGRAPH_WAIT_SOCKET_TABLE_H
#define STALLGRAPH_WAIT_SOCKET_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/wait/socket_address.h"
#include "profiler/wait/socket_snapshot.h"

struct socket_info {
    int domain;                          /* AF_INET, AF_INET6, AF_UNIX, AF_NETLINK ... */
    int type;                            /* SOCK_STREAM ... */
    int protocol;                        /* IPPROTO_TCP ...; 0 of unix sockets */
    bool listening;                      /* waits for connections */
    bool connecting;                     /* its connection is being made */
    struct socket_address local, remote; /* family AF_UNSPEC = none */
    pid_t peer_pid; /* of a unix stream: who made the far side's listening socket (or the pair); 0 = not known
                     */
};

/* Looks a socket up: by a copy of the descriptor (pidfd_getfd(2): exact, cheap, and in no need of the network
 * namespace), which is closed at once; where that is not permitted in the snapshot of its namespace (NULL: not at all).
 * proc_fd is an fd of /proc/PID, pid_fd a pidfd or -1. 0, or -errno: -ESTALE when fd is another socket by now, -ENOENT
 * when it was not found. */
int socket_table_find(struct socket_snapshot *snapshot, int proc_fd, int pid_fd, int fd, uint64_t inode,
                      struct socket_info *ret_info);

/* "tcp", "udp", "unix", "netlink" ...; "socket" for what has no name here. */
const char *socket_protocol_name(const struct socket_info *info);

#endif
