/* A fixed pool of worker threads before one queue. As long as every worker sits in a call that blocks, the
 * queue grows and nothing else is served, however idle the CPUs are: thread-pool starvation. */
#ifndef DBSERVER_POOL_H
#define DBSERVER_POOL_H

#include "examples/dbserver/request.h"

#include <libpq-fe.h>

struct pg_events;
struct pool;

/* What a handler works with; each worker has its own, no lock needed. */
struct worker {
    struct pool *pool;
    size_t number; /* from 1 */
    PGconn *database;
    struct pg_events *pg_events; /* shared by all */
};

struct pool_counters {
    size_t workers;
    size_t busy;
    size_t queued;
};

/* Starts the workers, each with a database connection. Returns NULL after a line on stderr when one cannot be
 * had. */
struct pool *pool_create(size_t workers, const char *conninfo, struct pg_events *pg_events);
void pool_submit(struct pool *pool, struct request *request);
void pool_read_counters(struct pool *pool, struct pool_counters *ret_counters);
void pool_stop(struct pool *pool); /* waits for what the workers are at; queued requests stay unanswered */
void pool_destroy(struct pool *pool);

#endif
