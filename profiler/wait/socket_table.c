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
#include "profiler/wait/proc_net.h"

/* About 3,500 sockets, 4 ms: without the rights to copy a descriptor, that much and no more. */
enum { TABLE_LIMIT_BYTES = 512 * 1024, MPTCP = 262 };

struct search {
    uint64_t inode;
    struct proc_net_socket found;
};

static int option(int fd, int name)
{
    socklen_t size = sizeof(int);
    int value = 0;

    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : 0;
}

static int find_inode(void *context, const struct proc_net_socket *socket)
{
    struct search *search = context;

    if (socket->inode != search->inode)
        return 0;
    search->found = *socket;
    return 1;
}

static bool search_table(int proc_fd, const char *table, uint64_t inode, struct proc_net_socket *ret_socket)
{
    struct search search = {.inode = inode};

    if (proc_net_walk(proc_fd, table, TABLE_LIMIT_BYTES, find_inode, &search) != 1)
        return false;
    *ret_socket = search.found;
    return true;
}

/* getpeername(2) tells nothing of a connection that is not made yet; the tables do. */
static void find_connecting(int copy, int proc_fd, uint64_t inode, struct socket_info *info)
{
    struct tcp_info state = {0};
    socklen_t size = sizeof state;
    struct proc_net_socket found;

    if (getsockopt(copy, IPPROTO_TCP, TCP_INFO, &state, &size) < 0 || state.tcpi_state != TCP_SYN_SENT)
        return;
    info->connecting = true;
    if (search_table(proc_fd, info->domain == AF_INET6 ? "tcp6" : "tcp", inode, &found))
        info->remote = found.remote;
}

static pid_t peer_pid(int copy)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;

    return getsockopt(copy, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0 ? peer.pid : 0;
}

static int ask_copy(int copy, int proc_fd, uint64_t inode, struct socket_info *ret_info)
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
        find_connecting(copy, proc_fd, inode, &info);
    if (info.domain == AF_UNIX)
        info.peer_pid = peer_pid(copy);
    *ret_info = info;
    return 0;
}

static int ask_tables(int proc_fd, uint64_t inode, struct socket_info *ret_info)
{
    static const struct {
        const char *name;
        struct socket_info info;
    } tables[] = {
        {"tcp", {.domain = AF_INET, .type = SOCK_STREAM, .protocol = IPPROTO_TCP}},
        {"tcp6", {.domain = AF_INET6, .type = SOCK_STREAM, .protocol = IPPROTO_TCP}},
        {"udp", {.domain = AF_INET, .type = SOCK_DGRAM, .protocol = IPPROTO_UDP}},
        {"udp6", {.domain = AF_INET6, .type = SOCK_DGRAM, .protocol = IPPROTO_UDP}},
    };

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct proc_net_socket found;

        if (!search_table(proc_fd, tables[i].name, inode, &found))
            continue;
        *ret_info = tables[i].info;
        ret_info->local = found.local;
        if (found.remote.port != 0)
            ret_info->remote = found.remote;
        if (tables[i].info.protocol == IPPROTO_TCP) {
            ret_info->listening = found.state == PROC_NET_LISTEN;
            ret_info->connecting = found.state == PROC_NET_SYN_SENT;
        }
        return 0;
    }
    return -ENOENT;
}

int socket_table_find(int proc_fd, int pid_fd, int fd, uint64_t inode, struct socket_info *ret_info)
{
    AUTO_CLOSE int copy = -1;

    if (pid_fd >= 0)
        copy = (int)syscall(SYS_pidfd_getfd, pid_fd, fd, 0);
    if (copy >= 0)
        return ask_copy(copy, proc_fd, inode, ret_info);
    return ask_tables(proc_fd, inode, ret_info);
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
