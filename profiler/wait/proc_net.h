/* The socket tables of a network namespace as /proc/PID/net/{tcp,tcp6,udp,udp6} show them: of the namespace
 * that the process is in, which takes no rights to enter it. proc_pid_net(5).
 *
 *   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
 *   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   107        0 35823 1 ...
 *
 * An address is its 32-bit words in the machine's order, a port a plain number; st 0A = listening. */
#ifndef STALLGRAPH_WAIT_PROC_NET_H
#define STALLGRAPH_WAIT_PROC_NET_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/wait/socket_address.h"

enum { PROC_NET_LISTEN = 0x0a, PROC_NET_SYN_SENT = 2 };

struct proc_net_socket {
    struct socket_address local, remote;
    unsigned state;
    uint64_t inode;
};

/* Pure: one line. 0, or -EBADMSG (the head line, for one). */
int proc_net_parse_line(const char *line, size_t length, struct proc_net_socket *ret_socket);

/* Told of each socket in turn; anything but 0 ends the walk. */
typedef int proc_net_visit(void *context, const struct proc_net_socket *socket);

/* Walks one table ("tcp", "tcp6", "udp", "udp6") below proc_fd, an fd of /proc/PID, at most limit_bytes of
 * it: a table of 50,000 sockets takes 60 ms. Returns what ended it, 0, or -errno. */
int proc_net_walk(int proc_fd, const char *table, size_t limit_bytes, proc_net_visit *visit, void *context);

#endif
