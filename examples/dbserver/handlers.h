/* What the server does for each of its addresses. Every handler runs in a worker. */
#ifndef DBSERVER_HANDLERS_H
#define DBSERVER_HANDLERS_H

#include "examples/dbserver/request.h"

request_handler handle_time;       /* a query that takes the database 50 ms; the worker waits for it */
request_handler handle_async_time; /* the same query; the worker does not wait */
request_handler handle_mixed;      /* a short query awaited, 1 ms of CPU, then the 50 ms query not awaited */
request_handler handle_sleep;      /* blocks the worker for 50 ms, without a database */
request_handler handle_cpu;        /* 5 ms of computation */
request_handler handle_lock;       /* 2 ms of computation under a mutex that all workers want */

/* The handler of a path; NULL when there is none. */
request_handler *handlers_find(const char *path);

#endif
