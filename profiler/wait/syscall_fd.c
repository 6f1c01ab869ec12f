#include "profiler/wait/syscall_fd.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { SELECT_MAX_FDS = 1024, SELECT_WORDS = SELECT_MAX_FDS / 64, NO_ARGUMENT = 6 };

/* Calls with one descriptor, and which argument it is. Numbers differ between architectures, and some are not
 * there on the newer ones. */
static const struct {
    long number;
    enum fd_use use;
    uint8_t argument;
} calls[] = {
    {SYS_read, FD_USE_READ, 0},
    {SYS_readv, FD_USE_READ, 0},
    {SYS_pread64, FD_USE_READ, 0},
    {SYS_preadv, FD_USE_READ, 0},
    {SYS_preadv2, FD_USE_READ, 0},
    {SYS_recvfrom, FD_USE_READ, 0},
    {SYS_recvmsg, FD_USE_READ, 0},
    {SYS_recvmmsg, FD_USE_READ, 0},
    {SYS_write, FD_USE_WRITE, 0},
    {SYS_writev, FD_USE_WRITE, 0},
    {SYS_pwrite64, FD_USE_WRITE, 0},
    {SYS_pwritev, FD_USE_WRITE, 0},
    {SYS_pwritev2, FD_USE_WRITE, 0},
    {SYS_sendto, FD_USE_WRITE, 0},
    {SYS_sendmsg, FD_USE_WRITE, 0},
    {SYS_sendmmsg, FD_USE_WRITE, 0},
    {SYS_sendfile, FD_USE_WRITE, 0},
    {SYS_splice, FD_USE_READ, 0},
    {SYS_tee, FD_USE_READ, 0},
    {SYS_vmsplice, FD_USE_WRITE, 0},
    {SYS_copy_file_range, FD_USE_WRITE, 2},
    {SYS_getdents64, FD_USE_READ, 0},
    {SYS_ftruncate, FD_USE_WRITE, 0},
    {SYS_fallocate, FD_USE_WRITE, 0},
    {SYS_fsync, FD_USE_SYNC, 0},
    {SYS_fdatasync, FD_USE_SYNC, 0},
    {SYS_sync_file_range, FD_USE_SYNC, 0},
    {SYS_syncfs, FD_USE_SYNC, 0},
    {SYS_accept, FD_USE_ACCEPT, 0},
    {SYS_accept4, FD_USE_ACCEPT, 0},
    {SYS_connect, FD_USE_CONNECT, 0},
    {SYS_epoll_pwait, FD_USE_EPOLL, 0},
    {SYS_epoll_pwait2, FD_USE_EPOLL, 0},
    {SYS_io_uring_enter, FD_USE_IO_URING, 0},
    {SYS_ppoll, FD_USE_POLL, NO_ARGUMENT},
    {SYS_pselect6, FD_USE_POLL, NO_ARGUMENT},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, FD_USE_EPOLL, 0},
#endif
#ifdef SYS_poll
    {SYS_poll, FD_USE_POLL, NO_ARGUMENT},
#endif
#ifdef SYS_select
    {SYS_select, FD_USE_POLL, NO_ARGUMENT},
#endif
};

static bool is_select(int64_t number)
{
#ifdef SYS_select
    if (number == SYS_select)
        return true;
#endif
    return number == SYS_pselect6;
}

static void add(struct syscall_fds *fds, int fd, bool write)
{
    if (fd >= 0 && fds->count < SYSCALL_FD_LIMIT)
        fds->items[fds->count++] = (struct syscall_fd){.fd = fd, .write = write};
}

static void list_poll(const uint64_t *arguments, const struct target_memory *memory, struct syscall_fds *fds)
{
    struct pollfd array[SYSCALL_FD_LIMIT];
    size_t count = arguments[1] < SYSCALL_FD_LIMIT ? (size_t)arguments[1] : SYSCALL_FD_LIMIT;

    if (count == 0)
        return;
    if (target_memory_read(memory, arguments[0], array, count * sizeof array[0]) < 0) {
        fds->unreadable = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bool reads = (array[i].events & (POLLIN | POLLRDNORM | POLLPRI | POLLRDHUP)) != 0;

        add(fds, array[i].fd, !reads && (array[i].events & (POLLOUT | POLLWRNORM)) != 0);
    }
}

/* Sets are arrays of long; what the kernel found ready is written to them only when the call returns. */
static bool read_set(uint64_t address, size_t words, const struct target_memory *memory, uint64_t *ret_set)
{
    return address == 0 || target_memory_read(memory, address, ret_set, words * sizeof ret_set[0]) == 0;
}

static void list_select(const uint64_t *arguments, const struct target_memory *memory,
                        struct syscall_fds *fds)
{
    uint64_t reads[SELECT_WORDS] = {0};
    uint64_t writes[SELECT_WORDS] = {0};
    size_t count = arguments[0] < SELECT_MAX_FDS ? (size_t)arguments[0] : SELECT_MAX_FDS;
    size_t words = (count + 63) / 64;

    if (!read_set(arguments[1], words, memory, reads) || !read_set(arguments[2], words, memory, writes)) {
        fds->unreadable = true;
        return;
    }
    for (size_t fd = 0; fd < count; fd++) {
        uint64_t bit = UINT64_C(1) << (fd % 64);

        if ((reads[fd / 64] & bit) != 0)
            add(fds, (int)fd, false);
        else if ((writes[fd / 64] & bit) != 0)
            add(fds, (int)fd, true);
    }
}

static void read_target(const uint64_t *arguments, const struct target_memory *memory,
                        struct syscall_fds *fds)
{
    struct sockaddr_storage address;
    size_t size = arguments[2] < sizeof address ? (size_t)arguments[2] : sizeof address;

    if (size == 0 || target_memory_read(memory, arguments[1], &address, size) < 0)
        return;
    if (socket_address_from(&address, size, &fds->target) < 0)
        fds->target.family = AF_UNSPEC;
}

bool syscall_fd_list(int64_t number, const uint64_t arguments[6], const struct target_memory *memory,
                     struct syscall_fds *ret_fds)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i].number != number)
            continue;
        ret_fds->use = calls[i].use;
        ret_fds->count = 0;
        ret_fds->unreadable = false;
        ret_fds->target = (struct socket_address){.family = AF_UNSPEC};
        if (calls[i].argument != NO_ARGUMENT)
            add(ret_fds, (int)arguments[calls[i].argument], calls[i].use == FD_USE_WRITE);
        else if (is_select(number))
            list_select(arguments, memory, ret_fds);
        else
            list_poll(arguments, memory, ret_fds);
        if (calls[i].use == FD_USE_CONNECT)
            read_target(arguments, memory, ret_fds);
        return true;
    }
    return false;
}
