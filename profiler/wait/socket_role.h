/* Whether a socket leads to a dependency or to a client: of a connection the two ends look alike, so it is
 * told by who listens on its own end's port. Pure. */
#ifndef STALLGRAPH_WAIT_SOCKET_ROLE_H
#define STALLGRAPH_WAIT_SOCKET_ROLE_H

#include <stdbool.h>

#include "profiler/model/wait_role.h"
#include "profiler/wait/listener_list.h"
#include "profiler/wait/socket_table.h"

/* WAIT_ROLE_ACCEPT, WAIT_ROLE_CLIENT, WAIT_ROLE_OUTBOUND, or WAIT_ROLE_QUEUE for what stays on this machine
 * and has no ends with names (a pair of sockets, netlink). listeners are those of its network namespace. In
 * doubt it is outbound: a dependency must never pass for a client. */
enum wait_role socket_role(const struct socket_info *info, const struct listener_list *listeners);

#endif
