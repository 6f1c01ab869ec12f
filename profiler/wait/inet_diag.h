/* Asks the kernel for one TCP socket by its two ends: sock_diag(7), which needs no rights, only a netlink
 * socket of the network namespace that is asked about. An exact question takes 4 to 17 us however many
 * sockets there are. */
#ifndef STALLGRAPH_WAIT_INET_DIAG_H
#define STALLGRAPH_WAIT_INET_DIAG_H

#include <stdint.h>

#include "profiler/wait/socket_address.h"

/* A netlink socket, or -errno. It belongs to the namespace that the calling thread is in. */
int inet_diag_open(void);

/* The connected socket whose own end is local and whose far end is remote: 0 and its inode (0 for one that no
 * process holds), or -errno; -ENOENT: there is none. */
int inet_diag_find(int netlink_fd, const struct socket_address *local, const struct socket_address *remote,
                   uint64_t *ret_inode);

#endif
