#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "profiler/wait/syscall_fd.h"

/* The target's memory is our own. */
static int read_own(void *context, uint64_t address, void *ret_bytes, size_t size_bytes)
{
    int *reads = context;

    (*reads)++;
    memcpy(ret_bytes, (const void *)(uintptr_t)address, size_bytes);
    return 0;
}

static int refuse(void *context, uint64_t address, void *ret_bytes, size_t size_bytes)
{
    (void)context, (void)address, (void)ret_bytes, (void)size_bytes;
    return -EFAULT;
}

static int reads;
static const struct target_memory own = {.context = &reads, .read = read_own};
static const struct target_memory none = {.read = refuse};

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static void test_single_descriptors(void **state)
{
    static const struct {
        long number;
        enum fd_use use;
        uint64_t arguments[6];
        int fd;
    } rows[] = {
        {SYS_read, FD_USE_READ, {7}, 7},         {SYS_recvfrom, FD_USE_READ, {8}, 8},
        {SYS_recvmsg, FD_USE_READ, {9}, 9},      {SYS_write, FD_USE_WRITE, {1}, 1},
        {SYS_sendmsg, FD_USE_WRITE, {2}, 2},     {SYS_accept4, FD_USE_ACCEPT, {3}, 3},
        {SYS_fsync, FD_USE_SYNC, {4}, 4},        {SYS_epoll_pwait, FD_USE_EPOLL, {5}, 5},
        {SYS_splice, FD_USE_READ, {6, 0, 9}, 6}, {SYS_io_uring_enter, FD_USE_IO_URING, {3}, 3},
    };

    (void)state;
    reads = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct syscall_fds fds;

        assert_true(syscall_fd_list(rows[i].number, rows[i].arguments, &own, &fds));
        assert_int_equal(fds.use, rows[i].use);
        assert_int_equal(fds.count, 1);
        assert_int_equal(fds.items[0].fd, rows[i].fd);
        assert_int_equal(fds.items[0].write, rows[i].use == FD_USE_WRITE);
    }
    assert_int_equal(reads, 0);
}

static void test_other_calls_have_none(void **state)
{
    static const uint64_t arguments[6] = {1, 2, 3};
    struct syscall_fds fds;

    (void)state;
    assert_false(syscall_fd_list(SYS_futex, arguments, &own, &fds));
    assert_false(syscall_fd_list(SYS_nanosleep, arguments, &own, &fds));
    assert_false(syscall_fd_list(-1, arguments, &own, &fds));
}

static void test_poll(void **state)
{
    const struct pollfd array[3] = {
        {.fd = 5, .events = POLLIN | POLLOUT}, {.fd = -1, .events = POLLIN}, {.fd = 6, .events = POLLOUT}};
    const uint64_t arguments[6] = {address_of(array), 3};
    struct syscall_fds fds;

    (void)state;
    assert_true(syscall_fd_list(SYS_ppoll, arguments, &own, &fds));
    assert_int_equal(fds.use, FD_USE_POLL);
    assert_int_equal(fds.count, 2);
    assert_int_equal(fds.items[0].fd, 5);
    assert_false(fds.items[0].write);
    assert_int_equal(fds.items[1].fd, 6);
    assert_true(fds.items[1].write);
    assert_true(syscall_fd_list(SYS_ppoll, arguments, &none, &fds));
    assert_true(fds.unreadable && fds.count == 0);
    assert_true(syscall_fd_list(SYS_ppoll, (const uint64_t[6]){0, 0}, &none, &fds));
    assert_true(!fds.unreadable && fds.count == 0);
}

/* Only the first 64 are looked at, whatever the target says. */
static void test_poll_is_bounded(void **state)
{
    struct pollfd array[SYSCALL_FD_LIMIT] = {{0}};
    const uint64_t arguments[6] = {address_of(array), UINT64_MAX};
    struct syscall_fds fds;

    (void)state;
    for (int i = 0; i < SYSCALL_FD_LIMIT; i++)
        array[i] = (struct pollfd){.fd = i, .events = POLLIN};
    assert_true(syscall_fd_list(SYS_ppoll, arguments, &own, &fds));
    assert_int_equal(fds.count, SYSCALL_FD_LIMIT);
}

static void test_select(void **state)
{
    fd_set read_set;
    fd_set write_set;
    uint64_t arguments[6] = {0};
    struct syscall_fds fds;

    (void)state;
    FD_ZERO(&read_set);
    FD_ZERO(&write_set);
    FD_SET(3, &read_set);
    FD_SET(70, &read_set);
    FD_SET(4, &write_set);
    FD_SET(90, &read_set); /* beyond the number that is given */
    arguments[0] = 80;
    arguments[1] = address_of(&read_set);
    arguments[2] = address_of(&write_set);
    assert_true(syscall_fd_list(SYS_pselect6, arguments, &own, &fds));
    assert_int_equal(fds.count, 3);
    assert_true(fds.items[0].fd == 3 && !fds.items[0].write);
    assert_true(fds.items[1].fd == 4 && fds.items[1].write);
    assert_true(fds.items[2].fd == 70 && !fds.items[2].write);
    arguments[0] = UINT64_MAX; /* no more is read than a set can hold */
    arguments[1] = 0;
    assert_true(syscall_fd_list(SYS_pselect6, arguments, &own, &fds));
    assert_int_equal(fds.count, 1);
    assert_true(syscall_fd_list(SYS_pselect6, arguments, &none, &fds));
    assert_true(fds.unreadable);
}

static void test_connect_tells_its_target(void **state)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(5432), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const uint64_t arguments[6] = {4, address_of(&in), sizeof in};
    struct syscall_fds fds;

    (void)state;
    assert_true(syscall_fd_list(SYS_connect, arguments, &own, &fds));
    assert_int_equal(fds.items[0].fd, 4);
    assert_int_equal(fds.target.family, AF_INET);
    assert_int_equal(fds.target.port, 5432);
    assert_true(syscall_fd_list(SYS_connect, (const uint64_t[6]){4, address_of(&in), 3}, &own, &fds));
    assert_int_equal(fds.target.family, AF_UNSPEC);
    assert_true(syscall_fd_list(SYS_connect, arguments, &none, &fds));
    assert_int_equal(fds.target.family, AF_UNSPEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_descriptors),
        cmocka_unit_test(test_other_calls_have_none),
        cmocka_unit_test(test_poll),
        cmocka_unit_test(test_poll_is_bounded),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_connect_tells_its_target),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
