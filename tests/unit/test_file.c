/* file: what lies in a target's root may be a trap. Each test has a folder of its own, laid out as
 *   outside              a regular file
 *   root/plain           a regular file
 *   root/...             links, FIFOs and the like */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"
#include "profiler/base/memory.h"

struct fixture {
    char top[64];
    int top_fd;
    int root_fd; /* O_PATH */
};

static void write_at(int dir_fd, const char *name, const void *bytes, size_t size)
{
    AUTO_CLOSE int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
}

static int set_up(void **state)
{
    struct fixture *fixture = memory_zeroed(1, sizeof *fixture);

    snprintf(fixture->top, sizeof fixture->top, "/tmp/stallgraph-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->top));
    fixture->top_fd = open(fixture->top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(fixture->top_fd, "root", 0700), 0);
    fixture->root_fd = openat(fixture->top_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fixture->root_fd >= 0);
    write_at(fixture->top_fd, "outside", "outside", 7);
    write_at(fixture->root_fd, "plain", "plain", 5);
    *state = fixture;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st;
    (void)type;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    close(fixture->root_fd);
    close(fixture->top_fd);
    nftw(fixture->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(fixture);
    return 0;
}

static void test_read_limits(void **state)
{
    const struct fixture *fixture = *state;
    AUTO_FREE char *big = memory_zeroed(1, 100000);
    char *bytes = NULL;
    size_t size = 77;

    write_at(fixture->top_fd, "big", big, 100000);
    write_at(fixture->top_fd, "empty", "", 0);
    assert_int_equal(file_read(fixture->top_fd, "big", 99999, &bytes, &size), -EFBIG);
    assert_int_equal(file_read(fixture->top_fd, "none", 99999, &bytes, &size), -ENOENT);
    assert_int_equal(file_read(fixture->top_fd, "root", 99999, &bytes, &size), -EISDIR);
    assert_null(bytes);
    assert_int_equal(size, 77);
    assert_int_equal(file_read(fixture->top_fd, "big", 100000, &bytes, &size), 0);
    assert_int_equal(size, 100000);
    assert_int_equal(bytes[size], '\0');
    free(bytes);
    assert_int_equal(file_read(fixture->top_fd, "empty", 0, &bytes, &size), 0);
    assert_int_equal(size, 0);
    assert_string_equal(bytes, "");
    free(bytes);
}

static void test_read_of_proc(void **state)
{
    AUTO_FREE char *bytes = NULL;
    size_t size = 0;

    (void)state;
    assert_int_equal(file_read(AT_FDCWD, "/proc/self/maps", 1 << 24, &bytes, &size), 0);
    assert_true(size > 0);
    assert_int_equal(strlen(bytes), size);
}

static void test_read_at(void **state)
{
    const struct fixture *fixture = *state;
    AUTO_CLOSE int fd = openat(fixture->root_fd, "plain", O_RDONLY | O_CLOEXEC);
    char bytes[16] = "";

    assert_int_equal(file_read_at(fd, bytes, 3, 1), 3);
    assert_string_equal(bytes, "lai");
    assert_int_equal(file_read_at(fd, bytes, sizeof bytes, 2), 3);
    assert_int_equal(file_read_at(fd, bytes, sizeof bytes, 1000), 0);
    assert_int_equal(file_read_at(fd, bytes, sizeof bytes, -5), -EINVAL);
    assert_int_equal(file_read_at(fixture->root_fd, bytes, sizeof bytes, 0), -EBADF);
}

static void assert_opens(const struct fixture *fixture, const char *path, const char *content)
{
    char bytes[16] = "";
    AUTO_CLOSE int fd = file_open_in_root(fixture->root_fd, path);

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(file_read_at(fd, bytes, sizeof bytes, 0), strlen(content));
    assert_string_equal(bytes, content);
}

static void test_opens_what_is_inside(void **state)
{
    const struct fixture *fixture = *state;

    assert_int_equal(symlinkat("/plain", fixture->root_fd, "absolute"), 0);
    assert_int_equal(symlinkat("../../plain", fixture->root_fd, "climbing"), 0);
    assert_opens(fixture, "plain", "plain");
    assert_opens(fixture, "/plain", "plain");
    assert_opens(fixture, "/../../../plain", "plain"); /* as inside a chroot */
    assert_opens(fixture, "absolute", "plain");
    assert_opens(fixture, "climbing", "plain");
}

static void test_no_way_out(void **state)
{
    const struct fixture *fixture = *state;
    AUTO_FREE char *absolute = string_format("%s/outside", fixture->top);
    AUTO_FREE char *magic = string_format("/proc/self/fd/%d", fixture->top_fd);

    assert_int_equal(symlinkat(absolute, fixture->root_fd, "absolute"), 0);
    assert_int_equal(symlinkat("../outside", fixture->root_fd, "relative"), 0);
    assert_int_equal(symlinkat(magic, fixture->root_fd, "magic"), 0);
    assert_int_equal(symlinkat("loop", fixture->root_fd, "loop"), 0);
    assert_int_equal(file_open_in_root(fixture->root_fd, "absolute"), -ENOENT);
    assert_int_equal(file_open_in_root(fixture->root_fd, "relative"), -ENOENT);
    assert_int_equal(file_open_in_root(fixture->root_fd, "../outside"), -ENOENT);
    assert_int_equal(file_open_in_root(fixture->root_fd, absolute), -ENOENT);
    assert_int_equal(file_open_in_root(fixture->root_fd, "magic"), -ENOENT);
    assert_int_equal(file_open_in_root(fixture->root_fd, "loop"), -ELOOP);
    assert_int_equal(file_open_in_root(fixture->root_fd, ""), -ENOENT);
}

/* With the real root as root, /proc is there: its magic links are followed by nobody. */
static void test_magic_links_are_refused(void **state)
{
    AUTO_CLOSE int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_FREE char *path = string_format("/proc/%d/exe", getpid());

    (void)state;
    assert_int_equal(file_open_in_root(root_fd, path), -ELOOP);
}

static void test_refuses_what_is_no_regular_file(void **state)
{
    const struct fixture *fixture = *state;
    AUTO_CLOSE int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    AUTO_CLOSE int slash_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s/root/socket", fixture->top);
    assert_int_equal(bind(socket_fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(mkfifoat(fixture->root_fd, "fifo", 0600), 0);
    assert_int_equal(mkdirat(fixture->root_fd, "folder", 0700), 0);
    alarm(10); /* a FIFO that is opened for real would wait for a writer for ever */
    assert_int_equal(file_open_in_root(fixture->root_fd, "fifo"), -EINVAL);
    alarm(0);
    assert_int_equal(file_open_in_root(fixture->root_fd, "socket"), -EINVAL);
    assert_int_equal(file_open_in_root(fixture->root_fd, "folder"), -EINVAL);
    assert_int_equal(file_open_in_root(slash_fd, "/dev/zero"), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read_limits, set_up, tear_down),
        cmocka_unit_test(test_read_of_proc),
        cmocka_unit_test_setup_teardown(test_read_at, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_opens_what_is_inside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_way_out, set_up, tear_down),
        cmocka_unit_test(test_magic_links_are_refused),
        cmocka_unit_test_setup_teardown(test_refuses_what_is_no_regular_file, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
