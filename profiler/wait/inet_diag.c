#include "profiler/wait/inet_diag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { REPLY_BYTES = 4096, TIMEOUT_S = 1 };

struct question {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
};

int inet_diag_open(void)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    return fd;
}

/* family is the socket's own: a server that listens on :: has IPv4 clients at mapped addresses. */
static void set_ip(const struct socket_address *address, int family, __be32 *ret_words)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (family == AF_INET6 && address->family == AF_INET) {
        memcpy(ret_words, mapped, sizeof mapped);
        memcpy(&ret_words[3], address->ip, 4);
    } else {
        memcpy(ret_words, address->ip, sizeof address->ip);
    }
}

static int read_reply(int netlink_fd, uint64_t *ret_inode)
{
    _Alignas(struct nlmsghdr) uint8_t reply[REPLY_BYTES];
    struct nlmsghdr header;
    struct nlmsgerr refusal;
    struct inet_diag_msg message;
    ssize_t got = recv(netlink_fd, reply, sizeof reply, 0);

    if (got < 0)
        return -errno;
    if ((size_t)got < sizeof header)
        return -EBADMSG;
    memcpy(&header, reply, sizeof header);
    if (header.nlmsg_type == NLMSG_ERROR && (size_t)got >= NLMSG_HDRLEN + sizeof refusal) {
        memcpy(&refusal, reply + NLMSG_HDRLEN, sizeof refusal);
        return refusal.error < 0 ? refusal.error : -ENOENT;
    }
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || (size_t)got < NLMSG_HDRLEN + sizeof message)
        return -EBADMSG;
    memcpy(&message, reply + NLMSG_HDRLEN, sizeof message);
    /* The kernel answers with a listening socket where no connection fits. */
    if (message.idiag_state == TCP_LISTEN)
        return -ENOENT;
    *ret_inode = message.idiag_inode;
    return 0;
}

static int ask(int netlink_fd, int family, const struct socket_address *local,
               const struct socket_address *remote, uint64_t *ret_inode)
{
    struct question question = {
        .header = {.nlmsg_len = sizeof question,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .request = {.sdiag_family = (uint8_t)family,
                    .sdiag_protocol = IPPROTO_TCP,
                    .idiag_states = UINT32_MAX,
                    .id = {.idiag_sport = htons(local->port),
                           .idiag_dport = htons(remote->port),
                           .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };

    set_ip(local, family, question.request.id.idiag_src);
    set_ip(remote, family, question.request.id.idiag_dst);
    if (send(netlink_fd, &question, sizeof question, 0) < 0)
        return -errno;
    return read_reply(netlink_fd, ret_inode);
}

int inet_diag_find(int netlink_fd, const struct socket_address *local, const struct socket_address *remote,
                   uint64_t *ret_inode)
{
    int r = ask(netlink_fd, local->family, local, remote, ret_inode);

    if (r == -ENOENT && local->family == AF_INET)
        r = ask(netlink_fd, AF_INET6, local, remote, ret_inode);
    return r;
}
