#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "profiler/wait/socket_address.h"

static void expect(const void *sockaddr, size_t size, const char *wanted)
{
    struct socket_address address;
    char text[SOCKET_ADDRESS_TEXT_BYTES];

    assert_int_equal(socket_address_from(sockaddr, size, &address), 0);
    socket_address_format(&address, text, sizeof text);
    assert_string_equal(text, wanted);
}

static void expect_ip(int family, const char *ip, uint16_t port, const char *wanted)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    inet_pton(family, ip, family == AF_INET ? (void *)&in.sin_addr : (void *)&in6.sin6_addr);
    expect(family == AF_INET ? (void *)&in : (void *)&in6, family == AF_INET ? sizeof in : sizeof in6,
           wanted);
}

static void test_formats_internet_addresses(void **state)
{
    (void)state;
    expect_ip(AF_INET, "10.0.0.5", 5432, "10.0.0.5:5432");
    expect_ip(AF_INET6, "::1", 5432, "[::1]:5432");
    expect_ip(AF_INET6, "2001:db8::7", 80, "[2001:db8::7]:80");
    expect_ip(AF_INET6, "::ffff:10.0.0.5", 80, "10.0.0.5:80");
}

static void expect_path(const char *path, size_t length, const char *wanted)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    memcpy(un.sun_path, path, length);
    expect(&un, offsetof(struct sockaddr_un, sun_path) + length, wanted);
}

static void test_formats_unix_names(void **state)
{
    char longest[108];

    (void)state;
    expect_path("/run/x", 7, "/run/x");
    expect_path("/run/x", 6, "/run/x");
    expect_path("\0name", 5, "@name");
    expect_path("", 0, "");
    expect_path("/a\n]\033b", 7, "/a?]?b");
    memset(longest, 'a', sizeof longest);
    longest[0] = '/';
    expect_path(longest, sizeof longest,
                "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

static void test_refuses_what_is_cut_or_foreign(void **state)
{
    struct socket_address address = {.family = 99};
    const struct sockaddr_in in = {.sin_family = AF_INET};
    const struct sockaddr other = {.sa_family = AF_NETLINK};

    (void)state;
    assert_int_equal(socket_address_from(&in, 1, &address), -EINVAL);
    assert_int_equal(socket_address_from(&in, 7, &address), -EINVAL);
    assert_int_equal(socket_address_from(&other, sizeof other, &address), -EAFNOSUPPORT);
    assert_int_equal(address.family, 99);
}

static void test_tells_any_and_loopback(void **state)
{
    static const uint8_t any[16] = {0};
    static const uint8_t one[16] = {[15] = 1};
    static const uint8_t home[4] = {127, 0, 0, 53};
    static const uint8_t far[4] = {10, 0, 0, 1};
    struct socket_address address;

    (void)state;
    socket_address_from_ip(any, 16, 1, &address);
    assert_true(socket_address_is_any(&address));
    assert_false(socket_address_is_loopback(&address));
    socket_address_from_ip(one, 16, 1, &address);
    assert_true(socket_address_is_loopback(&address));
    socket_address_from_ip(home, 4, 1, &address);
    assert_true(socket_address_is_loopback(&address));
    socket_address_from_ip(far, 4, 1, &address);
    assert_false(socket_address_is_loopback(&address) || socket_address_is_any(&address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats_internet_addresses),
        cmocka_unit_test(test_formats_unix_names),
        cmocka_unit_test(test_refuses_what_is_cut_or_foreign),
        cmocka_unit_test(test_tells_any_and_loopback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
