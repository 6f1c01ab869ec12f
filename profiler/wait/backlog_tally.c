#include "profiler/wait/backlog_tally.h"

#include <string.h>
#include <sys/socket.h>

void backlog_tally_finish(struct backlog_tally *tally)
{
    id_map_finish(&tally->inodes);
}

void backlog_tally_begin_look(struct backlog_tally *tally)
{
    memset(tally->listener_now, 0, sizeof tally->listener_now);
    memset(tally->peer_now, 0, sizeof tally->peer_now);
}

/* Several sockets may share an address (SO_REUSEPORT). */
static void add_listener(struct backlog_tally *tally, const struct tcp_dump_socket *socket)
{
    size_t i = 0;

    while (i < tally->listener_count && !socket_address_equal(&tally->listeners[i].address, &socket->local))
        i++;
    if (i == BACKLOG_MAX_LISTENERS)
        return;
    if (i == tally->listener_count)
        tally->listeners[tally->listener_count++] = (struct backlog_listener){.address = socket->local};
    tally->listener_now[i].seen = true;
    tally->listener_now[i].queue += socket->receive_queue;
    tally->listener_now[i].backlog += socket->send_queue;
}

/* A socket that is bound to :: takes IPv4 connections too, as a rule. */
static bool takes(const struct socket_address *listening, const struct socket_address *local)
{
    return listening->port == local->port &&
           (socket_address_equal(listening, local) ||
            (socket_address_is_any(listening) &&
             (listening->family == local->family || listening->family == AF_INET6)));
}

static bool add_client(struct backlog_tally *tally, const struct tcp_dump_socket *socket)
{
    for (size_t i = 0; i < tally->listener_count; i++) {
        if (!takes(&tally->listeners[i].address, &socket->local))
            continue;
        if (socket->inode != 0) { /* else it is in the listening socket's queue, and counted there */
            tally->listener_now[i].connections++;
            tally->listener_now[i].unread += socket->receive_queue > 0;
        }
        return true;
    }
    return false;
}

static void add_peer(struct backlog_tally *tally, const struct tcp_dump_socket *socket)
{
    size_t i = 0;

    while (i < tally->peer_count && !socket_address_equal(&tally->peers[i].address, &socket->remote))
        i++;
    if (i == BACKLOG_MAX_PEERS)
        return;
    if (i == tally->peer_count)
        tally->peers[tally->peer_count++] = (struct backlog_peer){.address = socket->remote};
    tally->peer_now[i].connections++;
    tally->peer_now[i].in_flight += socket->awaits_answer;
}

int backlog_tally_add(void *context, const struct tcp_dump_socket *socket)
{
    struct backlog_tally *tally = context;
    uint32_t unused;
    bool is_ours = id_map_get(&tally->inodes, socket->inode, &unused);

    if (socket->listening) {
        if (is_ours)
            add_listener(tally, socket);
        return 0;
    }
    if (!add_client(tally, socket) && is_ours)
        add_peer(tally, socket);
    return 0;
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void backlog_tally_end_look(struct backlog_tally *tally)
{
    for (size_t i = 0; i < tally->listener_count; i++) {
        struct backlog_listener *listener = &tally->listeners[i];
        const struct backlog_counts *now = &tally->listener_now[i];

        if (!now->seen)
            continue;
        listener->looks++;
        listener->queued_looks += now->queue > 0;
        listener->backlog = greater(listener->backlog, now->backlog);
        listener->queue_max = greater(listener->queue_max, now->queue);
        listener->connections_max = greater(listener->connections_max, now->connections);
        listener->unread_max = greater(listener->unread_max, now->unread);
        listener->queue_sum += now->queue;
        listener->connections_sum += now->connections;
        listener->unread_sum += now->unread;
    }
    for (size_t i = 0; i < tally->peer_count; i++) {
        struct backlog_peer *peer = &tally->peers[i];

        peer->looks++;
        peer->in_flight_max = greater(peer->in_flight_max, tally->peer_now[i].in_flight);
        peer->connections_max = greater(peer->connections_max, tally->peer_now[i].connections);
        peer->in_flight_sum += tally->peer_now[i].in_flight;
        peer->connections_sum += tally->peer_now[i].connections;
    }
}
