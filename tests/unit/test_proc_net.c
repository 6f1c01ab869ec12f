#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/wait/listener_list.h"
#include "profiler/wait/proc_net.h"

static int parse(const char *line, struct proc_net_socket *socket)
{
    return proc_net_parse_line(line, strlen(line), socket);
}

static void expect_text(const struct socket_address *address, const char *wanted)
{
    char text[SOCKET_ADDRESS_TEXT_BYTES];

    socket_address_format(address, text, sizeof text);
    assert_string_equal(text, wanted);
}

static void test_parses_lines(void **state)
{
    struct proc_net_socket socket;

    (void)state;
    assert_int_equal(
        parse("   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   107        "
              "0 35823 1 0000000000000000 100 0 0 10 0",
              &socket),
        0);
    expect_text(&socket.local, "127.0.0.1:5432");
    assert_int_equal(socket.state, PROC_NET_LISTEN);
    assert_int_equal(socket.inode, 35823);
    assert_int_equal(
        parse("  12: 00000000000000000000000001000000:1538 0000000000000000FFFF00000500000A:D431 01 "
              "00000000:00000000 02:000A 00000000     0        0 7 2 x",
              &socket),
        0);
    expect_text(&socket.local, "[::1]:5432");
    expect_text(&socket.remote, "10.0.0.5:54321");
    assert_int_equal(socket.state, 1);
}

static void test_refuses_other_lines(void **state)
{
    static const char *const lines[] = {
        "",
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
        "0: 0100007F:1538",
        "0: 0100007F1538 00000000:0000 0A 0 0 0 0 0 1",
        "0: 0100007F:1538 00000000:0000 0A 0 0 0 0 0",
        "0: 0100007F:15388 00000000:0000 0A 0 0 0 0 0 1",
        "0: 0100007F0100007F:1538 00000000:0000 0A 0 0 0 0 0 1",
        "0: 0100007F:1538 00000000:0000 0A1F2 0 0 0 0 0 1",
    };
    struct proc_net_socket socket = {.inode = 1};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_int_equal(parse(lines[i], &socket), -EBADMSG);
    assert_int_equal(socket.inode, 1);
}

static int listening_socket(uint16_t *ret_port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &size), 0);
    *ret_port = ntohs(in.sin_port);
    return fd;
}

static void test_lists_listening_sockets(void **state)
{
    uint16_t port;
    int fd = listening_socket(&port);
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct listener_list list = {0};
    struct socket_address address;
    const struct listener *found;
    struct stat st;

    (void)state;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(listener_list_read(&list, proc_fd), 0);
    socket_address_from_ip((const uint8_t[]){127, 0, 0, 1}, 4, port, &address);
    found = listener_list_find(&list, &address);
    assert_non_null(found);
    assert_int_equal(found->inode, st.st_ino);
    socket_address_from_ip((const uint8_t[]){127, 0, 0, 2}, 4, port, &address);
    assert_null(listener_list_find(&list, &address));
    close(fd);
    assert_int_equal(listener_list_read(&list, proc_fd), 0);
    socket_address_from_ip((const uint8_t[]){127, 0, 0, 1}, 4, port, &address);
    assert_null(listener_list_find(&list, &address));
    listener_list_finish(&list);
    close(proc_fd);
}

static void test_any_address_takes_all(void **state)
{
    struct listener items[2] = {{.inode = 1}, {.inode = 2}};
    const struct listener_list list = {.items = items, .count = 2};
    struct socket_address address;

    (void)state;
    socket_address_from_ip((const uint8_t[16]){0}, 16, 80, &items[0].address);
    socket_address_from_ip((const uint8_t[4]){0}, 4, 81, &items[1].address);
    socket_address_from_ip((const uint8_t[]){10, 0, 0, 5}, 4, 80, &address);
    assert_int_equal(listener_list_find(&list, &address)->inode, 1);
    address.port = 81;
    assert_int_equal(listener_list_find(&list, &address)->inode, 2);
    socket_address_from_ip((const uint8_t[16]){[15] = 1}, 16, 81, &address);
    assert_null(listener_list_find(&list, &address));
}

static int count_all(void *context, const struct proc_net_socket *socket)
{
    (void)socket;
    (*(int *)context)++;
    return 0;
}

static int stop_at_once(void *context, const struct proc_net_socket *socket)
{
    count_all(context, socket);
    return 42;
}

static void test_walks_end_where_they_are_told(void **state)
{
    uint16_t port;
    int fd = listening_socket(&port);
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int count = 0;

    (void)state;
    assert_int_equal(proc_net_walk(proc_fd, "tcp", 1 << 20, stop_at_once, &count), 42);
    assert_int_equal(count, 1);
    assert_int_equal(proc_net_walk(proc_fd, "tcp", 1 << 20, count_all, &count), 0);
    assert_true(count >= 2);
    assert_int_equal(proc_net_walk(proc_fd, "none", 1 << 20, count_all, &count), -ENOENT);
    close(proc_fd);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parses_lines),
        cmocka_unit_test(test_refuses_other_lines),
        cmocka_unit_test(test_lists_listening_sockets),
        cmocka_unit_test(test_any_address_takes_all),
        cmocka_unit_test(test_walks_end_where_they_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
