#include "profiler/wait/socket_table.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"

enum { MPTCP = 262 };

static int option(int fd, int name)
{
    socklen_t size = sizeof(int);
    int value = 0;

    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : 0;
}

static int ask_snapshot(struct socket_snapshot *snapshot, int proc_fd, uint64_t inode,
                        struct socket_info *ret_info)
{
    const struct socket_snapshot_entry *entry =
        snapshot != NULL ? socket_snapshot_find(snapshot, proc_fd, inode) : NULL;

    if (entry == NULL)
        return -ENOENT;
    *ret_info = (struct socket_info){
        .domain = entry->is_ipv6 ? AF_INET6 : AF_INET,
        .type = entry->is_udp ? SOCK_DGRAM : SOCK_STREAM,
        .protocol = entry->is_udp ? IPPROTO_UDP : IPPROTO_TCP,
        .listening = !entry->is_udp && entry->socket.state == PROC_NET_LISTEN,
        .connecting = !entry->is_udp && entry->socket.state == PROC_NET_SYN_SENT,
        .local = entry->socket.local,
    };
    if (entry->socket.remote.port != 0)
        ret_info->remote = entry->socket.remote;
    return 0;
}

/* getpeername(2) tells nothing of a connection that is not made yet; the tables do. */
static void find_connecting(int copy, struct socket_snapshot *snapshot, int proc_fd, uint64_t inode,
                            struct socket_info *info)
{
    struct tcp_info state = {0};
    socklen_t size = sizeof state;
    struct socket_info found;

    if (getsockopt(copy, IPPROTO_TCP, TCP_INFO, &state, &size) < 0 || state.tcpi_state != TCP_SYN_SENT)
        return;
    info->connecting = true;
    if (ask_snapshot(snapshot, proc_fd, inode, &found) == 0)
        info->remote = found.remote;
}

static pid_t peer_pid(int copy)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;

    return getsockopt(copy, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0 ? peer.pid : 0;
}

static int ask_copy(int copy, struct socket_snapshot *snapshot, int proc_fd, uint64_t inode,
                    struct socket_info *ret_info)
{
    struct socket_info info = {0};
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    struct stat st;

    if (fstat(copy, &st) < 0)
        return -errno;
    if (!S_ISSOCK(st.st_mode) || st.st_ino != inode)
        return -ESTALE;
    info.domain = option(copy, SO_DOMAIN);
    info.type = option(copy, SO_TYPE);
    info.protocol = option(copy, SO_PROTOCOL);
    info.listening = option(copy, SO_ACCEPTCONN) != 0;
    if (getsockname(copy, (struct sockaddr *)&address, &size) == 0)
        socket_address_from(&address, size, &info.local);
    size = sizeof address;
    if (getpeername(copy, (struct sockaddr *)&address, &size) == 0)
        socket_address_from(&address, size, &info.remote);
    else if (info.protocol == IPPROTO_TCP && !info.listening)
        find_connecting(copy, snapshot, proc_fd, inode, &info);
    if (info.domain == AF_UNIX)
        info.peer_pid = peer_pid(copy);
    *ret_info = info;
    return 0;
}

int socket_table_find(struct socket_snapshot *snapshot, int proc_fd, int pid_fd, int fd, uint64_t inode,
                      struct socket_info *ret_info)
{
    AUTO_CLOSE int copy = -1;

    if (pid_fd >= 0)
        copy = (int)syscall(SYS_pidfd_getfd, pid_fd, fd, 0);
    if (copy >= 0)
        return ask_copy(copy, snapshot, proc_fd, inode, ret_info);
    return ask_snapshot(snapshot, proc_fd, inode, ret_info);
}

const char *socket_protocol_name(const struct socket_info *info)
{
    if (info->domain == AF_UNIX)
        return "unix";
    if (info->domain == AF_NETLINK)
        return "netlink";
    if (info->domain == AF_PACKET)
        return "packet";
    if (info->domain == AF_VSOCK)
        return "vsock";
    if (info->domain != AF_INET && info->domain != AF_INET6)
        return "socket";
    if (info->protocol == IPPROTO_TCP || info->protocol == MPTCP)
        return "tcp";
    if (info->protocol == IPPROTO_UDP)
        return "udp";
    return info->protocol == IPPROTO_SCTP ? "sctp" : "socket";
}
