#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/wait/fd_link.h"

static struct fd_link parsed(const char *text)
{
    struct fd_link link;

    fd_link_parse(text, strlen(text), &link);
    return link;
}

static void test_parses_links(void **state)
{
    (void)state;
    assert_int_equal(parsed("socket:[35823]").kind, FD_KIND_SOCKET);
    assert_int_equal(parsed("socket:[35823]").inode, 35823);
    assert_int_equal(parsed("pipe:[18446744073709551615]").inode, UINT64_MAX);
    assert_int_equal(parsed("pipe:[1]").kind, FD_KIND_PIPE);
    assert_int_equal(parsed("anon_inode:[eventpoll]").kind, FD_KIND_EPOLL);
    assert_int_equal(parsed("anon_inode:[eventfd]").kind, FD_KIND_EVENTFD);
    assert_int_equal(parsed("anon_inode:[timerfd]").kind, FD_KIND_TIMERFD);
    assert_int_equal(parsed("anon_inode:[signalfd]").kind, FD_KIND_SIGNALFD);
    assert_int_equal(parsed("anon_inode:inotify").kind, FD_KIND_INOTIFY);
    assert_int_equal(parsed("anon_inode:[io_uring]").kind, FD_KIND_IO_URING);
    assert_int_equal(parsed("anon_inode:[pidfd]").kind, FD_KIND_ANON);
    assert_string_equal(parsed("anon_inode:[pidfd]").path, "pidfd");
    assert_int_equal(parsed("/var/lib/db/1").kind, FD_KIND_PATH);
    assert_string_equal(parsed("/var/lib/db/1").path, "/var/lib/db/1");
}

static void test_what_is_none_is_unknown(void **state)
{
    (void)state;
    assert_int_equal(parsed("").kind, FD_KIND_UNKNOWN);
    assert_int_equal(parsed("socket:[]").kind, FD_KIND_UNKNOWN);
    assert_int_equal(parsed("socket:[12").kind, FD_KIND_UNKNOWN);
    assert_int_equal(parsed("socket:[12]x").kind, FD_KIND_UNKNOWN);
    assert_int_equal(parsed("socket:[99999999999999999999]").kind, FD_KIND_UNKNOWN);
    assert_int_equal(parsed("net:[4026531840]").kind, FD_KIND_UNKNOWN);
}

static void test_paths_are_cut_in_front_and_made_safe(void **state)
{
    char text[300];
    struct fd_link link;

    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "/begin", 6);
    memcpy(text + sizeof text - 5, "/e\nd\001", 5);
    fd_link_parse(text, sizeof text, &link);
    assert_int_equal(strlen(link.path), FD_LINK_PATH_BYTES - 1);
    assert_memory_equal(link.path, "...aaa", 6);
    assert_string_equal(link.path + strlen(link.path) - 5, "/e?d?");
}

static void expect_own(int proc_fd, int fd, enum fd_kind kind)
{
    struct fd_link link;
    struct stat st;

    assert_true(fd >= 0);
    assert_int_equal(fd_link_read(proc_fd, fd, &link), 0);
    assert_int_equal(link.kind, kind);
    if (kind == FD_KIND_SOCKET || kind == FD_KIND_PIPE) {
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(link.inode, st.st_ino);
    }
    close(fd);
}

static void test_reads_links_of_a_process(void **state)
{
    struct fd_link link;
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    expect_own(proc_fd, ends[0], FD_KIND_PIPE);
    expect_own(proc_fd, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), FD_KIND_SOCKET);
    expect_own(proc_fd, eventfd(0, EFD_CLOEXEC), FD_KIND_EVENTFD);
    expect_own(proc_fd, epoll_create1(EPOLL_CLOEXEC), FD_KIND_EPOLL);
    expect_own(proc_fd, open("/dev/null", O_RDONLY | O_CLOEXEC), FD_KIND_PATH);
    assert_int_equal(fd_link_read(proc_fd, 12345, &link), -ENOENT);
    close(ends[1]);
    close(proc_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parses_links),
        cmocka_unit_test(test_what_is_none_is_unknown),
        cmocka_unit_test(test_paths_are_cut_in_front_and_made_safe),
        cmocka_unit_test(test_reads_links_of_a_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
