/* Which process holds a socket: a search through the descriptors of all processes of this machine, some 5 us
 * each. */
#ifndef STALLGRAPH_WAIT_SOCKET_OWNER_H
#define STALLGRAPH_WAIT_SOCKET_OWNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SOCKET_OWNER_NAME_BYTES = 32 };

struct socket_owner {
    uint64_t inode;
    uint64_t network;                   /* inode of the network namespace that it is in */
    char name[SOCKET_OWNER_NAME_BYTES]; /* found: comm of the process with the lowest number; else "" */
};

/* Looks for all of them at once, and fills in their names. Ends early when *stop is true (NULL allowed),
 * after 3 s, or after so many descriptors that more would be a burden. Init and proxies of container engines
 * do not count: they hold sockets for others. */
void socket_owner_find(struct socket_owner *owners, size_t count, const atomic_bool *stop);

/* comm of a process, made fit to stand in a wait frame: no control bytes, spaces or commas. "" when it is
 * gone or tells nothing. */
void socket_owner_name(pid_t pid, char ret_name[SOCKET_OWNER_NAME_BYTES]);

/* Inode of the network namespace of a process, by proc_fd, an fd of /proc/PID; 0 = not known. */
uint64_t socket_owner_network(int proc_fd);

#endif
