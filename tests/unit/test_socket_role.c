#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "profiler/wait/socket_role.h"

static struct socket_address at(uint8_t last, uint16_t port)
{
    const uint8_t ip[4] = {10, 0, 0, last};
    struct socket_address address;

    socket_address_from_ip(ip, sizeof ip, port, &address);
    return address;
}

static struct socket_address named(const char *path)
{
    struct socket_address address = {.family = path[0] != '\0' ? AF_UNIX : AF_UNSPEC};

    strncpy(address.path, path, sizeof address.path - 1);
    return address;
}

static const struct socket_address none = {.family = AF_UNSPEC};

static void expect_tcp(enum wait_role role, struct socket_address local, struct socket_address remote)
{
    struct listener items[] = {{.inode = 1}, {.inode = 2}};
    const struct listener_list list = {.items = items, .count = 2};
    const struct socket_info info = {
        .domain = AF_INET, .type = SOCK_STREAM, .protocol = IPPROTO_TCP, .local = local, .remote = remote};

    items[0].address = at(1, 8080);
    socket_address_from_ip((const uint8_t[4]){0}, 4, 40000, &items[1].address);
    assert_int_equal(socket_role(&info, &list), role);
}

static void test_tcp(void **state)
{
    (void)state;
    expect_tcp(WAIT_ROLE_CLIENT, at(1, 8080), at(9, 55555));
    expect_tcp(WAIT_ROLE_CLIENT, at(1, 40000), at(9, 55555)); /* listens on a port of the kernel's choice */
    expect_tcp(WAIT_ROLE_OUTBOUND, at(2, 8080), at(9, 8081)); /* somebody else's address */
    expect_tcp(WAIT_ROLE_OUTBOUND, at(1, 45678), at(5, 5432));
    expect_tcp(WAIT_ROLE_OUTBOUND, at(1, 45678), at(1, 8080));  /* to ourselves */
    expect_tcp(WAIT_ROLE_OUTBOUND, at(1, 45678), at(5, 45679)); /* two ports that tell nothing */
    expect_tcp(WAIT_ROLE_CLIENT, at(1, 9999), at(5, 45679));    /* the listening socket was closed */
    expect_tcp(WAIT_ROLE_OUTBOUND, at(1, 9999), at(1, 40000));  /* bound, and yet outgoing */
    expect_tcp(WAIT_ROLE_OUTBOUND, at(1, 9999), at(5, 5432));
}

static void test_states(void **state)
{
    const struct listener_list list = {0};
    const struct socket_info listening = {.domain = AF_INET6, .type = SOCK_STREAM, .listening = true};
    const struct socket_info connecting = {.domain = AF_INET, .type = SOCK_STREAM, .connecting = true};

    (void)state;
    assert_int_equal(socket_role(&listening, &list), WAIT_ROLE_ACCEPT);
    assert_int_equal(socket_role(&connecting, &list), WAIT_ROLE_OUTBOUND);
}

static void expect_other(enum wait_role role, int domain, int type, struct socket_address local,
                         struct socket_address remote)
{
    const struct listener_list list = {0};
    const struct socket_info info = {.domain = domain, .type = type, .local = local, .remote = remote};

    assert_int_equal(socket_role(&info, &list), role);
}

static void test_unix_and_datagrams(void **state)
{
    (void)state;
    expect_other(WAIT_ROLE_OUTBOUND, AF_UNIX, SOCK_STREAM, none, named("/run/db"));
    expect_other(WAIT_ROLE_OUTBOUND, AF_UNIX, SOCK_STREAM, named("@own"), named("/run/db"));
    expect_other(WAIT_ROLE_CLIENT, AF_UNIX, SOCK_STREAM, named("/run/srv"), none);
    expect_other(WAIT_ROLE_QUEUE, AF_UNIX, SOCK_STREAM, none, none);
    expect_other(WAIT_ROLE_OUTBOUND, AF_INET, SOCK_DGRAM, at(1, 53), at(2, 53));
    expect_other(WAIT_ROLE_CLIENT, AF_INET, SOCK_DGRAM, at(1, 53), none);
    expect_other(WAIT_ROLE_OUTBOUND, AF_INET, SOCK_DGRAM, at(1, 45000), none);
    expect_other(WAIT_ROLE_QUEUE, AF_NETLINK, SOCK_RAW, none, none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_unix_and_datagrams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
