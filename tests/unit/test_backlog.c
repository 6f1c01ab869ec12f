/* Signs of piled up work: the sums by made-up sockets, and all of it on sockets of this very process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/wait/backlog_tally.h"
#include "profiler/wait/backlog_watch.h"
#include "profiler/wait/inet_diag.h"
#include "profiler/wait/tcp_dump.h"

static struct socket_address address_of(const char *ip, uint16_t port)
{
    struct socket_address address;
    uint8_t bytes[16];
    bool is_ipv6 = strchr(ip, ':') != NULL;

    assert_int_equal(inet_pton(is_ipv6 ? AF_INET6 : AF_INET, ip, bytes), 1);
    socket_address_from_ip(bytes, is_ipv6 ? 16 : 4, port, &address);
    return address;
}

static void add(struct backlog_tally *tally, const char *local, uint16_t local_port, uint16_t remote_port,
                uint64_t inode, uint32_t receive_queue, bool awaits_answer)
{
    struct tcp_dump_socket socket = {
        .local = address_of(local, local_port),
        .remote = address_of("10.0.0.9", remote_port),
        .inode = inode,
        .listening = remote_port == 0,
        .receive_queue = receive_queue,
        .send_queue = 128,
        .awaits_answer = awaits_answer,
    };

    assert_int_equal(backlog_tally_add(tally, &socket), 0);
}

static void test_tally(void **state)
{
    struct backlog_tally *tally = memory_zeroed(1, sizeof *tally);

    (void)state;
    for (uint64_t inode = 1; inode <= 5; inode++)
        id_map_put(&tally->inodes, inode, 1);
    for (int look = 0; look < 2; look++) {
        backlog_tally_begin_look(tally);
        add(tally, "::", 80, 0, 1, (uint32_t)look * 4, false); /* takes IPv4 too */
        add(tally, "0.0.0.0", 81, 0, 77, 9, false);            /* somebody else's */
        add(tally, "10.0.0.1", 80, 40000, 2, 5, false);
        add(tally, "10.0.0.1", 80, 40001, 3, 0, true);
        add(tally, "10.0.0.1", 80, 40002, 0, 7, false); /* not accepted yet */
        add(tally, "10.0.0.1", 50000, 5432, 4, 0, look == 0);
        add(tally, "10.0.0.1", 50001, 5432, 5, 0, true);
        add(tally, "10.0.0.1", 50002, 5432, 78, 0, true); /* somebody else's */
        backlog_tally_end_look(tally);
    }
    assert_int_equal(tally->listener_count, 1);
    assert_int_equal(tally->listeners[0].looks, 2);
    assert_int_equal(tally->listeners[0].queued_looks, 1);
    assert_int_equal(tally->listeners[0].queue_sum, 4);
    assert_int_equal(tally->listeners[0].queue_max, 4);
    assert_int_equal(tally->listeners[0].backlog, 128);
    assert_int_equal(tally->listeners[0].connections_sum, 4);
    assert_int_equal(tally->listeners[0].unread_sum, 2);
    assert_int_equal(tally->peer_count, 1);
    assert_int_equal(tally->peers[0].address.port, 5432);
    assert_int_equal(tally->peers[0].connections_max, 2);
    assert_int_equal(tally->peers[0].in_flight_max, 2);
    assert_int_equal(tally->peers[0].in_flight_sum, 3);
    backlog_tally_finish(tally);
    free(tally);
}

/* More far ends than there is room for: the first ones count. */
static void test_tally_has_a_limit(void **state)
{
    struct backlog_tally *tally = memory_zeroed(1, sizeof *tally);

    (void)state;
    id_map_put(&tally->inodes, 1, 1);
    backlog_tally_begin_look(tally);
    for (uint16_t port = 1; port < 1000; port++)
        add(tally, "10.0.0.1", 50000, port, 1, 0, true);
    backlog_tally_end_look(tally);
    assert_int_equal(tally->peer_count, BACKLOG_MAX_PEERS);
    backlog_tally_finish(tally);
    free(tally);
}

static int count_socket(void *context, const struct tcp_dump_socket *socket)
{
    (void)socket;
    ++*(int *)context;
    return 0;
}

static void test_messages_that_are_cut(void **state)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_msg message;
        uint8_t more[32];
    } datagram = {
        .header = {.nlmsg_len = sizeof datagram, .nlmsg_type = SOCK_DIAG_BY_FAMILY},
        .message = {.idiag_family = AF_INET, .idiag_state = 1},
    };
    uint8_t bytes[sizeof datagram];
    int count = 0;

    (void)state;
    memcpy(bytes, &datagram, sizeof bytes);
    assert_int_equal(tcp_dump_parse(bytes, sizeof bytes, count_socket, &count), 1);
    assert_int_equal(count, 1);
    for (size_t size = NLMSG_HDRLEN; size < sizeof bytes; size++)
        assert_int_equal(tcp_dump_parse(bytes, size, count_socket, &count), -EBADMSG);
    assert_int_equal(count, 1);
    datagram.header.nlmsg_len = NLMSG_HDRLEN + 4; /* shorter than what it should hold */
    memcpy(bytes, &datagram, sizeof bytes);
    assert_int_equal(tcp_dump_parse(bytes, sizeof bytes, count_socket, &count), -EBADMSG);
    datagram.header.nlmsg_len = 0;
    memcpy(bytes, &datagram, sizeof bytes);
    assert_int_equal(tcp_dump_parse(bytes, sizeof bytes, count_socket, &count), -EBADMSG);
    datagram.header = (struct nlmsghdr){.nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = NLMSG_DONE};
    memcpy(bytes, &datagram, sizeof bytes);
    assert_int_equal(tcp_dump_parse(bytes, sizeof bytes, count_socket, &count), 0);
}

static uint16_t listen_on_loopback(int *ret_fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;

    *ret_fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(*ret_fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(*ret_fd, 50), 0);
    assert_int_equal(getsockname(*ret_fd, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

enum { CLIENTS = 5, ACCEPTED = 3, TALKING = 2 };

static void look_at_self(struct backlog_watch *watch)
{
    size_t count = 0;

    backlog_watch_add(watch, getpid());
    assert_int_equal(backlog_watch_start(watch), 0);
    poll(NULL, 0, 300);
    backlog_watch_listeners(watch, &count);
    assert_int_equal(count, 0); /* not before it was stopped */
    backlog_watch_stop(watch);
}

static void test_own_sockets(void **state)
{
    struct backlog_watch *watch = backlog_watch_create();
    const struct backlog_listener *listeners;
    const struct backlog_peer *peers;
    int fds[1 + CLIENTS + ACCEPTED];
    uint16_t port = listen_on_loopback(&fds[0]);
    size_t count = 0;
    int netlink_fd = inet_diag_open();

    (void)state;
    if (netlink_fd < 0) {
        print_message("skipped: sock_diag is not to be had: %s\n", strerror(-netlink_fd));
        skip();
    }
    close(netlink_fd);
    for (int i = 0; i < CLIENTS; i++)
        fds[1 + i] = connect_to(port);
    for (int i = 0; i < ACCEPTED; i++)
        fds[1 + CLIENTS + i] = accept(fds[0], NULL, NULL);
    poll(NULL, 0, 20);
    for (int i = 0; i < TALKING; i++)
        assert_int_equal(write(fds[1 + i], "GET", 3), 3);
    look_at_self(watch);
    listeners = backlog_watch_listeners(watch, &count);
    assert_int_equal(count, 1);
    assert_true(listeners[0].looks >= 1);
    assert_int_equal(listeners[0].address.port, port);
    assert_int_equal(listeners[0].queue_max, CLIENTS - ACCEPTED);
    assert_int_equal(listeners[0].backlog, 50);
    assert_int_equal(listeners[0].connections_max, ACCEPTED);
    assert_int_equal(listeners[0].unread_max, TALKING);
    peers = backlog_watch_peers(watch, &count);
    assert_int_equal(count, 1);
    assert_int_equal(peers[0].address.port, port);
    assert_int_equal(peers[0].connections_max, CLIENTS);
    assert_in_range(peers[0].in_flight_max, TALKING, CLIENTS);
    backlog_watch_destroy(watch);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        close(fds[i]);
}

/* It was there when it was added, and is gone by the first look; and a watch that never began. */
static void test_nobody(void **state)
{
    struct backlog_watch *watch = backlog_watch_create();
    size_t count = 1;

    (void)state;
    backlog_watch_add(watch, 0x7ffffff0);
    backlog_watch_listeners(watch, &count);
    assert_int_equal(count, 0);
    assert_int_equal(backlog_watch_start(watch), 0);
    backlog_watch_stop(watch);
    backlog_watch_peers(watch, &count);
    assert_int_equal(count, 0);
    backlog_watch_destroy(watch);
    backlog_watch_destroy(backlog_watch_create());
    backlog_watch_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tally),
        cmocka_unit_test(test_tally_has_a_limit),
        cmocka_unit_test(test_messages_that_are_cut),
        cmocka_unit_test(test_own_sockets),
        cmocka_unit_test(test_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
