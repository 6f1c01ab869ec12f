/* Which descriptors a blocked system call is about, and what it does with them: from its number and
 * arguments, and for poll, select and connect from the target's memory. Arguments as in the calls' man pages,
 * section 2.
 *
 *   if (syscall_fd_list(number, arguments, memory, &fds)) ...   // poll(array, 2, -1): FD_USE_POLL, two of
 * them
 */
#ifndef STALLGRAPH_WAIT_SYSCALL_FD_H
#define STALLGRAPH_WAIT_SYSCALL_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/wait/socket_address.h"
#include "profiler/wait/target_memory.h"

enum { SYSCALL_FD_LIMIT = 64 };

enum fd_use {
    FD_USE_READ,
    FD_USE_WRITE,
    FD_USE_SYNC, /* fsync and its like */
    FD_USE_ACCEPT,
    FD_USE_CONNECT,
    FD_USE_POLL, /* poll and select: each descriptor says whether it is read or written */
    FD_USE_EPOLL,
    FD_USE_IO_URING,
};

struct syscall_fd {
    int fd;
    bool write; /* waited for to be writable, and not for being readable */
};

struct syscall_fds {
    enum fd_use use;
    struct syscall_fd items[SYSCALL_FD_LIMIT]; /* the first so many */
    size_t count;
    bool unreadable;              /* there are some, but memory could not be read */
    struct socket_address target; /* where connect(2) goes; AF_UNSPEC where that is not known */
};

/* false: the call is about no descriptor. memory may be NULL. */
bool syscall_fd_list(int64_t number, const uint64_t arguments[6], const struct target_memory *memory,
                     struct syscall_fds *ret_fds);

#endif
