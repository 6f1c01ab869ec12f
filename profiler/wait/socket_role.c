#include "profiler/wait/socket_role.h"

#include <sys/socket.h>

/* Where the kernel takes the ports of outgoing connections from, by default (ip(7), ip_local_port_range). */
enum { EPHEMERAL_FIRST = 32768, EPHEMERAL_LAST = 60999 };

static bool is_ephemeral(uint16_t port)
{
    return port >= EPHEMERAL_FIRST && port <= EPHEMERAL_LAST;
}

static bool is_internet(const struct socket_info *info)
{
    return info->domain == AF_INET || info->domain == AF_INET6;
}

/* Accepted sockets bear the listening socket's name; those that connect have none, as a rule. */
static enum wait_role unix_role(const struct socket_info *info)
{
    if (info->remote.family == AF_UNIX)
        return WAIT_ROLE_OUTBOUND;
    if (info->local.family == AF_UNIX)
        return WAIT_ROLE_CLIENT;
    return WAIT_ROLE_QUEUE;
}

static enum wait_role datagram_role(const struct socket_info *info)
{
    if (info->remote.family != AF_UNSPEC)
        return WAIT_ROLE_OUTBOUND;
    return info->local.port != 0 && !is_ephemeral(info->local.port) ? WAIT_ROLE_CLIENT : WAIT_ROLE_OUTBOUND;
}

enum wait_role socket_role(const struct socket_info *info, const struct listener_list *listeners)
{
    if (info->listening)
        return WAIT_ROLE_ACCEPT;
    if (info->domain == AF_UNIX)
        return unix_role(info);
    if (info->domain == AF_VSOCK)
        return WAIT_ROLE_OUTBOUND;
    if (!is_internet(info))
        return WAIT_ROLE_QUEUE;
    if (info->type == SOCK_DGRAM || info->type == SOCK_RAW)
        return datagram_role(info);
    if (info->connecting || info->local.family == AF_UNSPEC)
        return WAIT_ROLE_OUTBOUND;
    if (listener_list_find(listeners, &info->local) != NULL)
        return WAIT_ROLE_CLIENT;
    /* The listening socket may be closed by now. */
    return info->remote.family != AF_UNSPEC && !is_ephemeral(info->local.port) &&
                   is_ephemeral(info->remote.port) && listener_list_find(listeners, &info->remote) == NULL
               ? WAIT_ROLE_CLIENT
               : WAIT_ROLE_OUTBOUND;
}
