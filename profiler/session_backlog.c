#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/session_internal.h"
#include "profiler/wait/backlog_watch.h"

void session_backlog_add_process(struct session *session, pid_t pid)
{
    if (session->backlog == NULL)
        session->backlog = backlog_watch_create();
    backlog_watch_add(session->backlog, pid);
}

void session_backlog_start(struct session *session)
{
    if (session->backlog != NULL)
        backlog_watch_start(session->backlog); /* without it that evidence is missing, no more */
}

void session_backlog_close(struct session *session)
{
    backlog_watch_destroy(session->backlog);
    session->backlog = NULL;
}

static uint32_t intern_address(struct profile *profile, const struct socket_address *address)
{
    char text[SOCKET_ADDRESS_TEXT_BYTES];
    AUTO_FREE char *named = NULL;

    socket_address_format(address, text, sizeof text);
    named = string_format("tcp %s", text);
    return string_table_intern(profile->strings, named);
}

static void take_listeners(struct session *session)
{
    size_t count;
    const struct backlog_listener *listeners = backlog_watch_listeners(session->backlog, &count);

    for (size_t i = 0; i < count; i++)
        profile_add_listener(session->profile,
                             &(struct profile_listener){
                                 .address = intern_address(session->profile, &listeners[i].address),
                                 .looks = listeners[i].looks,
                                 .queued_looks = listeners[i].queued_looks,
                                 .backlog = listeners[i].backlog,
                                 .queue_max = listeners[i].queue_max,
                                 .queue_sum = listeners[i].queue_sum,
                                 .connections_max = listeners[i].connections_max,
                                 .connections_sum = listeners[i].connections_sum,
                                 .unread_max = listeners[i].unread_max,
                                 .unread_sum = listeners[i].unread_sum,
                             });
}

void session_backlog_take(struct session *session)
{
    const struct backlog_peer *peers;
    size_t count;

    if (session->backlog == NULL)
        return;
    backlog_watch_stop(session->backlog);
    take_listeners(session);
    peers = backlog_watch_peers(session->backlog, &count);
    for (size_t i = 0; i < count; i++)
        profile_add_peer(session->profile, &(struct profile_peer){
                                               .address = intern_address(session->profile, &peers[i].address),
                                               .looks = peers[i].looks,
                                               .in_flight_max = peers[i].in_flight_max,
                                               .in_flight_sum = peers[i].in_flight_sum,
                                               .connections_max = peers[i].connections_max,
                                               .connections_sum = peers[i].connections_sum,
                                           });
}
