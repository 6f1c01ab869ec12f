/* The far end of a TCP connection, where it is on this machine: in the near end's network namespace, or in
 * another one (a container's), where the kernel confirms that it has the other half of the very connection.
 *
 * Not for the sampling thread: it enters namespaces (setns(2), of the calling thread alone, which stays in
 * the last one) and goes through all processes now and then. Where entering is not permitted only loopback
 * connections are found. */
#ifndef STALLGRAPH_WAIT_FAR_END_H
#define STALLGRAPH_WAIT_FAR_END_H

#include <stdint.h>

#include "profiler/wait/socket_address.h"

struct far_end_finder;

struct far_end_question {
    int proc_fd;      /* of /proc/PID of a process on the near end */
    uint64_t network; /* inode of its network namespace */
    struct socket_address local, remote;
};

struct far_end {
    uint64_t inode; /* of the listening socket that took the connection */
    uint64_t network;
};

struct far_end_finder *far_end_finder_create(void);
void far_end_finder_destroy(struct far_end_finder *finder); /* NULL allowed */

/* 0, or -ENOENT. */
int far_end_find(struct far_end_finder *finder, const struct far_end_question *question,
                 struct far_end *ret_end);

#endif
