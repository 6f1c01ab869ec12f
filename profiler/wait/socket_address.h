/* One end of a socket: an Internet address with a port, or the name of a unix socket. Pure.
 *
 *   socket_address_from(&storage, size, &address);
 *   socket_address_format(&address, text, sizeof text);      // "10.0.0.5:5432", "[::1]:5432", "/run/x",
 * "@name"
 *
 * IPv4 addresses in IPv6's form (::ffff:10.0.0.5) are made plain. unix(7), ipv6(7). */
#ifndef STALLGRAPH_WAIT_SOCKET_ADDRESS_H
#define STALLGRAPH_WAIT_SOCKET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOCKET_PATH_BYTES = 110, SOCKET_ADDRESS_TEXT_BYTES = 128 };

struct socket_address {
    int family;     /* AF_INET, AF_INET6, AF_UNIX; AF_UNSPEC = none, or unnamed */
    uint8_t ip[16]; /* network order; of AF_INET the first four */
    uint16_t port;
    char path[SOCKET_PATH_BYTES]; /* AF_UNIX: not empty; '@' stands for the NUL that an abstract name begins
                                     with */
};

/* From a struct sockaddr as the kernel gives it. -EAFNOSUPPORT for other families, -EINVAL for one that is
 * cut. */
int socket_address_from(const void *sockaddr, size_t size_bytes, struct socket_address *ret_address);
/* An Internet address by its bytes (4 or 16). */
void socket_address_from_ip(const void *ip, size_t size_bytes, uint16_t port,
                            struct socket_address *ret_address);

bool socket_address_equal(const struct socket_address *a, const struct socket_address *b);
bool socket_address_is_any(const struct socket_address *address); /* 0.0.0.0, :: */
bool socket_address_is_loopback(const struct socket_address *address);

/* Control bytes of a path become '?'. */
void socket_address_format(const struct socket_address *address, char *ret_text, size_t size);

#endif
