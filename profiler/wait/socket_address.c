#include "profiler/wait/socket_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void socket_address_from_ip(const void *ip, size_t size_bytes, uint16_t port,
                            struct socket_address *ret_address)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    *ret_address = (struct socket_address){.family = size_bytes == 4 ? AF_INET : AF_INET6, .port = port};
    if (size_bytes == 16 && memcmp(ip, mapped, sizeof mapped) == 0) {
        ret_address->family = AF_INET;
        memcpy(ret_address->ip, (const uint8_t *)ip + sizeof mapped, 4);
    } else {
        memcpy(ret_address->ip, ip, size_bytes == 4 ? 4 : 16);
    }
}

/* A path need not end in NUL; an abstract name begins with one and may hold others. */
static void take_path(const struct sockaddr_un *un, size_t size_bytes, struct socket_address *ret_address)
{
    size_t length = size_bytes - offsetof(struct sockaddr_un, sun_path);

    if (length > sizeof un->sun_path)
        length = sizeof un->sun_path;
    if (length == 0 || (un->sun_path[0] == '\0' && length == 1))
        return;
    if (un->sun_path[0] != '\0')
        length = strnlen(un->sun_path, length);
    ret_address->family = AF_UNIX;
    for (size_t i = 0; i < length; i++)
        ret_address->path[i] = (char)(un->sun_path[i] != '\0' ? un->sun_path[i] : '@');
}

int socket_address_from(const void *sockaddr, size_t size_bytes, struct socket_address *ret_address)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;

    if (size_bytes < sizeof(sa_family_t))
        return -EINVAL;
    memcpy(&storage, sockaddr, size_bytes < sizeof storage ? size_bytes : sizeof storage);
    switch (storage.ss_family) {
    case AF_INET:
        if (size_bytes < sizeof in)
            return -EINVAL;
        memcpy(&in, &storage, sizeof in);
        socket_address_from_ip(&in.sin_addr, 4, ntohs(in.sin_port), ret_address);
        return 0;
    case AF_INET6:
        if (size_bytes < sizeof in6)
            return -EINVAL;
        memcpy(&in6, &storage, sizeof in6);
        socket_address_from_ip(&in6.sin6_addr, 16, ntohs(in6.sin6_port), ret_address);
        return 0;
    case AF_UNIX:
        memcpy(&un, &storage, sizeof un);
        *ret_address = (struct socket_address){.family = AF_UNSPEC};
        take_path(&un, size_bytes, ret_address);
        return 0;
    default:
        return -EAFNOSUPPORT;
    }
}

bool socket_address_equal(const struct socket_address *a, const struct socket_address *b)
{
    if (a->family != b->family)
        return false;
    if (a->family == AF_UNIX)
        return strcmp(a->path, b->path) == 0;
    return a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

bool socket_address_is_any(const struct socket_address *address)
{
    static const uint8_t zero[16];

    return (address->family == AF_INET || address->family == AF_INET6) &&
           memcmp(address->ip, zero, sizeof zero) == 0;
}

bool socket_address_is_loopback(const struct socket_address *address)
{
    static const uint8_t one[16] = {[15] = 1};

    if (address->family == AF_INET)
        return address->ip[0] == 127;
    return address->family == AF_INET6 && memcmp(address->ip, one, sizeof one) == 0;
}

void socket_address_format(const struct socket_address *address, char *ret_text, size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "";

    switch (address->family) {
    case AF_INET:
        inet_ntop(AF_INET, address->ip, ip, sizeof ip);
        snprintf(ret_text, size, "%s:%u", ip, address->port);
        break;
    case AF_INET6:
        inet_ntop(AF_INET6, address->ip, ip, sizeof ip);
        snprintf(ret_text, size, "[%s]:%u", ip, address->port);
        break;
    case AF_UNIX:
        snprintf(ret_text, size, "%s", address->path);
        for (char *at = ret_text; *at != '\0'; at++)
            if ((unsigned char)*at < ' ' || *at == 0x7f)
                *at = '?';
        break;
    default:
        snprintf(ret_text, size, "%s", "");
    }
}
