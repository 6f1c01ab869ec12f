/* All TCP sockets of a network namespace that listen or have a connection, from the kernel's tables: sock_diag(7). Some
 * 0.5 us each; not for the sampling thread.
 *
 *   r = tcp_dump(netlink_fd, AF_INET, visit, context);     // inet_diag_open() makes the fd
 */
#ifndef STALLGRAPH_WAIT_TCP_DUMP_H
#define STALLGRAPH_WAIT_TCP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/wait/socket_address.h"

struct tcp_dump_socket {
    struct socket_address local, remote;
    uint64_t inode; /* 0: a connection that nobody has accepted yet */
    bool listening;
    uint32_t receive_queue; /* listening: connections to be accepted; else bytes that nobody has read */
    uint32_t send_queue;    /* listening: the most that may wait to be accepted */
    bool awaits_answer;     /* its last bytes went out, and none have come since */
};

/* Anything but 0 ends the dump. */
typedef int tcp_dump_visit(void *context, const struct tcp_dump_socket *socket);

/* Pure: the messages of one datagram. 1: more follow, 0: that was the end, or -errno, or what visit returned. */
int tcp_dump_parse(const uint8_t *bytes, size_t size, tcp_dump_visit *visit, void *context);

/* family: AF_INET or AF_INET6 (which has IPv4 connections to sockets bound to :: too). Listening sockets come first.
 * 0, or -errno, or what visit returned. */
int tcp_dump(int netlink_fd, int family, tcp_dump_visit *visit, void *context);

#endif
