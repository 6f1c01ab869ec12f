/* Adds up what looks at the TCP sockets of a namespace find of those that belong to the target: its listening sockets
 * with their clients' connections, and its own connections by far end. Pure.
 *
 *   backlog_tally_begin_look(&tally);
 *   tcp_dump(fd, AF_INET, backlog_tally_add, &tally);
 *   backlog_tally_end_look(&tally);
 */
#ifndef STALLGRAPH_WAIT_BACKLOG_TALLY_H
#define STALLGRAPH_WAIT_BACKLOG_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/base/id_map.h"
#include "profiler/wait/tcp_dump.h"

enum { BACKLOG_MAX_LISTENERS = 64, BACKLOG_MAX_PEERS = 256 };

struct backlog_listener {
    struct socket_address address;
    uint32_t looks;
    uint32_t queued_looks; /* with connections to be accepted */
    uint32_t backlog;      /* the most that may wait */
    uint32_t queue_max, connections_max, unread_max;
    uint64_t queue_sum, connections_sum, unread_sum; /* over the looks */
};

struct backlog_peer {
    struct socket_address address;
    uint32_t looks; /* since it was first seen */
    uint32_t in_flight_max, connections_max;
    uint64_t in_flight_sum, connections_sum;
};

/* What one look has found so far. */
struct backlog_counts {
    bool seen;
    uint32_t queue, backlog, connections, unread, in_flight;
};

/* Zeroed is empty. */
struct backlog_tally {
    struct id_map inodes; /* of the target's sockets; whoever looks fills it */
    struct backlog_listener listeners[BACKLOG_MAX_LISTENERS];
    struct backlog_counts listener_now[BACKLOG_MAX_LISTENERS];
    size_t listener_count;
    struct backlog_peer peers[BACKLOG_MAX_PEERS];
    struct backlog_counts peer_now[BACKLOG_MAX_PEERS];
    size_t peer_count;
};

void backlog_tally_finish(struct backlog_tally *tally);
void backlog_tally_begin_look(struct backlog_tally *tally);
int backlog_tally_add(void *tally, const struct tcp_dump_socket *socket); /* a tcp_dump_visit; returns 0 */
void backlog_tally_end_look(struct backlog_tally *tally);

#endif
