/* What a descriptor of a process is, told from its link /proc/PID/fd/N. proc(5).
 *
 *   socket:[35823]   pipe:[1234]   anon_inode:[eventpoll]   anon_inode:inotify   /var/lib/db/base/1
 *   /memfd:x (deleted)   /dev/pts/3 */
#ifndef STALLGRAPH_WAIT_FD_LINK_H
#define STALLGRAPH_WAIT_FD_LINK_H

#include <stddef.h>
#include <stdint.h>

enum { FD_LINK_PATH_BYTES = 80 };

enum fd_kind {
    FD_KIND_UNKNOWN,
    FD_KIND_SOCKET,
    FD_KIND_PIPE,
    FD_KIND_EPOLL,
    FD_KIND_EVENTFD,
    FD_KIND_TIMERFD,
    FD_KIND_SIGNALFD,
    FD_KIND_INOTIFY, /* and fanotify */
    FD_KIND_IO_URING,
    FD_KIND_ANON, /* other anonymous inodes, such as pidfds and userfaultfds: path says which */
    FD_KIND_PATH, /* a name in the file system: a regular file, a FIFO, a device, a terminal */
};

struct fd_link {
    enum fd_kind kind;
    uint64_t inode;                /* FD_KIND_SOCKET, FD_KIND_PIPE */
    char path[FD_LINK_PATH_BYTES]; /* FD_KIND_PATH, FD_KIND_ANON: cut to its end where it is long; control
                                      bytes are '?' */
};

/* Pure. */
void fd_link_parse(const char *text, size_t length, struct fd_link *ret_link);

/* Below proc_fd, an fd of /proc/PID. 0 or -errno (-ENOENT: not open, or the process is gone; -EACCES). */
int fd_link_read(int proc_fd, int fd, struct fd_link *ret_link);

#endif
