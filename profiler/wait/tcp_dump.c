#include "profiler/wait/tcp_dump.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* As include/net/tcp_states.h counts them; <netinet/tcp.h> cannot be had beside <linux/tcp.h>. */
enum { STATE_ESTABLISHED = 1, STATE_CLOSE_WAIT = 8, STATE_LISTENING = 10 };

enum { REPLY_BYTES = 32768, MAX_SOCKETS = 1000000 };

/* Both times are in jiffies, so an answer within one looks like a request after an answer. A connection that has been
 * quiet for longer than this awaits nothing, then. */
enum { SAME_JIFFY_MS = 200 };

struct question {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
};

static bool awaits_answer(const uint8_t *attributes, size_t size)
{
    while (size >= sizeof(struct rtattr)) {
        struct rtattr attribute;
        size_t length;

        memcpy(&attribute, attributes, sizeof attribute);
        if (attribute.rta_len < sizeof attribute || attribute.rta_len > size)
            return false;
        if (attribute.rta_type == INET_DIAG_INFO) {
            struct tcp_info info = {0};
            size_t had = attribute.rta_len - sizeof attribute;

            if (had < offsetof(struct tcp_info, tcpi_last_ack_recv))
                return false;
            memcpy(&info, attributes + sizeof attribute, had < sizeof info ? had : sizeof info);
            return info.tcpi_last_data_sent < info.tcpi_last_data_recv ||
                   (info.tcpi_last_data_sent == info.tcpi_last_data_recv &&
                    info.tcpi_last_data_sent < SAME_JIFFY_MS);
        }
        length = RTA_ALIGN(attribute.rta_len);
        if (length > size)
            return false;
        attributes += length;
        size -= length;
    }
    return false;
}

static int tell(const uint8_t *payload, size_t size, tcp_dump_visit *visit, void *context)
{
    struct inet_diag_msg message;
    struct tcp_dump_socket socket = {0};
    size_t ip_bytes;

    if (size < sizeof message)
        return -EBADMSG;
    memcpy(&message, payload, sizeof message);
    ip_bytes = message.idiag_family == AF_INET6 ? 16 : 4;
    socket_address_from_ip(message.id.idiag_src, ip_bytes, ntohs(message.id.idiag_sport), &socket.local);
    socket_address_from_ip(message.id.idiag_dst, ip_bytes, ntohs(message.id.idiag_dport), &socket.remote);
    socket.inode = message.idiag_inode;
    socket.listening = message.idiag_state == STATE_LISTENING;
    socket.receive_queue = message.idiag_rqueue;
    socket.send_queue = message.idiag_wqueue;
    socket.awaits_answer =
        !socket.listening &&
        awaits_answer(payload + NLMSG_ALIGN(sizeof message),
                      size > NLMSG_ALIGN(sizeof message) ? size - NLMSG_ALIGN(sizeof message) : 0);
    return visit(context, &socket);
}

int tcp_dump_parse(const uint8_t *bytes, size_t size, tcp_dump_visit *visit, void *context)
{
    while (size >= sizeof(struct nlmsghdr)) {
        struct nlmsghdr header;
        size_t step;
        int r = 0;

        memcpy(&header, bytes, sizeof header);
        if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > size)
            return -EBADMSG;
        if (header.nlmsg_type == NLMSG_DONE)
            return 0;
        if (header.nlmsg_type == NLMSG_ERROR) {
            int32_t code = 0;

            if (header.nlmsg_len >= NLMSG_HDRLEN + sizeof code)
                memcpy(&code, bytes + NLMSG_HDRLEN, sizeof code);
            return code < 0 ? code : -EBADMSG;
        }
        if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY)
            r = tell(bytes + NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN, visit, context);
        if (r != 0)
            return r;
        step = NLMSG_ALIGN(header.nlmsg_len);
        if (step > size)
            break;
        bytes += step;
        size -= step;
    }
    return 1;
}

/* What an earlier dump left unread must not pass for this one's. */
static void drop_unread(int netlink_fd)
{
    char bytes[64];

    for (int i = 0; i < MAX_SOCKETS && recv(netlink_fd, bytes, sizeof bytes, MSG_DONTWAIT) >= 0; i++)
        continue;
}

int tcp_dump(int netlink_fd, int family, tcp_dump_visit *visit, void *context)
{
    _Alignas(struct nlmsghdr) uint8_t reply[REPLY_BYTES];
    struct question question = {
        .header = {.nlmsg_len = sizeof question,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .request = {.sdiag_family = (uint8_t)family,
                    .sdiag_protocol = IPPROTO_TCP,
                    .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                    .idiag_states = 1U << STATE_LISTENING | 1U << STATE_ESTABLISHED | 1U << STATE_CLOSE_WAIT},
    };
    int r = 1;

    drop_unread(netlink_fd);
    if (send(netlink_fd, &question, sizeof question, 0) < 0)
        return -errno;
    for (int i = 0; i < MAX_SOCKETS && r == 1; i++) {
        ssize_t got = recv(netlink_fd, reply, sizeof reply, 0);

        if (got < 0)
            return -errno;
        r = got == 0 ? -EBADMSG : tcp_dump_parse(reply, (size_t)got, visit, context);
    }
    return r;
}
