/* Queries without a waiting thread: one thread, "pg-events", drives many database connections through libpq's
 * asynchronous calls, so that a worker which hands its query over is free at once. */
#ifndef DBSERVER_PG_EVENTS_H
#define DBSERVER_PG_EVENTS_H

#include "examples/dbserver/request.h"

struct pg_events;

struct pg_events_counters {
    size_t connections; /* opened so far, or being opened */
    size_t busy;
    size_t queued; /* requests that wait for a connection */
};

/* Starts the thread; connections are opened when first needed. conninfo is kept until destroy. NULL on
 * failure. */
struct pg_events *pg_events_create(size_t connections_max, const char *conninfo);

/* Runs sql (a constant) and answers the request when its result is there. Does not block. */
void pg_events_submit(struct pg_events *events, struct request *request, const char *sql);

void pg_events_read_counters(struct pg_events *events, struct pg_events_counters *ret_counters);
void pg_events_destroy(
    struct pg_events *events); /* requests that it still holds stay unanswered; NULL is fine */

#endif
