/* The TCP sockets that wait for connections in one network namespace. The kernel lists them before all
 * others, so that reading them costs the same however many connections there are. */
#ifndef STALLGRAPH_WAIT_LISTENER_LIST_H
#define STALLGRAPH_WAIT_LISTENER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/wait/socket_address.h"

struct listener {
    struct socket_address address;
    uint64_t inode;
};

/* Zeroed is empty. */
struct listener_list {
    struct listener *items;
    size_t count;
    size_t capacity;
};

void listener_list_finish(struct listener_list *list);

/* Of the namespace that the process behind proc_fd (an fd of /proc/PID) is in; what was there is replaced. 0,
 * or -errno with an empty list. */
int listener_list_read(struct listener_list *list, int proc_fd);

/* One that takes connections to the address: bound to it, or to any address with its port. NULL = none. */
const struct listener *listener_list_find(const struct listener_list *list,
                                          const struct socket_address *address);

#endif
