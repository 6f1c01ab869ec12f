/* dbserver: a small HTTP server with a fixed pool of threads in front of a PostgreSQL database. Under load it
 * shows what synchronous calls do to such a pool (/time), and what asynchronous ones do for it (/async-time).
 *
 *   dbserver --db 'host=127.0.0.1 user=me dbname=postgres' --port 8080 --workers 16
 */
#include "examples/dbserver/handlers.h"
#include "examples/dbserver/http.h"
#include "examples/dbserver/pg_events.h"
#include "examples/dbserver/pool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    size_t workers;
    size_t async_connections;
    uint16_t port;
    const char *conninfo;
};

struct dbserver {
    struct http_server *http;
    struct pool *pool;
    struct pg_events *pg_events;
    uint64_t requests; /* counted and read by the acceptor alone */
};

static const char usage[] =
    "usage: dbserver --db CONNINFO [--workers N] [--port P] [--async-connections N]\n"
    "  --db CONNINFO            how to reach PostgreSQL, as libpq wants it\n"
    "  --workers N              threads of the pool, 1 to 1000 (16)\n"
    "  --port P                 port on 127.0.0.1, 0 = any free one (0)\n"
    "  --async-connections N    database connections of /async-time, 1 to 1000 (100)\n"
    "paths: /time /async-time /mixed /sleep /cpu /lock /stats\n";

static bool parse_number(const char *text, unsigned long min, unsigned long max, unsigned long *ret_number)
{
    char *end;
    unsigned long number;

    errno = 0;
    number = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || number < min || number > max)
        return false;
    *ret_number = number;
    return true;
}

static bool parse_options(int argc, char **argv, struct options *ret_options)
{
    static const struct option names[] = {
        {"workers", required_argument, NULL, 'w'}, {"port", required_argument, NULL, 'p'},
        {"db", required_argument, NULL, 'd'},      {"async-connections", required_argument, NULL, 'a'},
        {"help", no_argument, NULL, 'h'},          {0},
    };
    struct options options = {.workers = 16, .async_connections = 100};
    unsigned long number = 0;
    bool good = true;
    int option;

    while ((option = getopt_long(argc, argv, "h", names, NULL)) != -1) {
        switch (option) {
        case 'w':
            good = good && parse_number(optarg, 1, 1000, &number);
            options.workers = number;
            break;
        case 'p':
            good = good && parse_number(optarg, 0, UINT16_MAX, &number);
            options.port = (uint16_t)number;
            break;
        case 'd':
            options.conninfo = optarg;
            break;
        case 'a':
            good = good && parse_number(optarg, 1, 1000, &number);
            options.async_connections = number;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            good = false;
        }
    }
    *ret_options = options;
    return good && optind == argc && options.conninfo;
}

/* Answered by the acceptor itself, so that it is there when no worker is free. */
static void answer_stats(struct dbserver *dbserver, struct request *request)
{
    struct pool_counters pool;
    struct pg_events_counters async;

    pool_read_counters(dbserver->pool, &pool);
    pg_events_read_counters(dbserver->pg_events, &async);
    http_answer(request, 200,
                "requests %" PRIu64 "\nqueued %zu\nworkers %zu\nworkers_busy %zu\n"
                "async_queued %zu\nasync_connections %zu\nasync_busy %zu\n",
                dbserver->requests, pool.queued, pool.workers, pool.busy, async.queued, async.connections,
                async.busy);
}

static void on_request(void *context, struct request *request)
{
    struct dbserver *dbserver = context;

    dbserver->requests++;
    request->handle = handlers_find(request->path);
    if (request->handle)
        pool_submit(dbserver->pool, request);
    else if (strcmp(request->path, "/stats") == 0)
        answer_stats(dbserver, request);
    else
        http_answer(request, 404, "no such path\n");
}

static int dbserver_start(struct dbserver *dbserver, const struct options *options, uint16_t *ret_port)
{
    dbserver->http = http_server_create(options->port, on_request, dbserver, ret_port);
    if (!dbserver->http) {
        fprintf(stderr, "dbserver: listen on 127.0.0.1:%u: %s\n", options->port, strerror(errno));
        return -1;
    }
    dbserver->pg_events = pg_events_create(options->async_connections, options->conninfo);
    if (!dbserver->pg_events) {
        fputs("dbserver: cannot start the thread pg-events\n", stderr);
        return -1;
    }
    dbserver->pool = pool_create(options->workers, options->conninfo, dbserver->pg_events);
    if (!dbserver->pool)
        return -1;
    if (http_server_start(dbserver->http) < 0) {
        fputs("dbserver: cannot start the thread acceptor\n", stderr);
        return -1;
    }
    return 0;
}

/* From the source of requests downwards: whoever still holds one may give its answer until nobody does. */
static void dbserver_stop(struct dbserver *dbserver)
{
    if (dbserver->http)
        http_server_stop(dbserver->http);
    pool_destroy(dbserver->pool);
    pg_events_destroy(dbserver->pg_events);
    http_server_destroy(dbserver->http);
}

int main(int argc, char **argv)
{
    struct dbserver dbserver = {0};
    struct options options;
    sigset_t end_signals;
    uint16_t port;
    int signal_number;
    int result;

    if (!parse_options(argc, argv, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    /* Blocked before any thread starts, so that they come to sigwait() below and nowhere else. */
    sigemptyset(&end_signals);
    sigaddset(&end_signals, SIGTERM);
    sigaddset(&end_signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &end_signals, NULL);

    result = dbserver_start(&dbserver, &options, &port);
    if (result == 0) {
        printf("listening on 127.0.0.1:%u\n", port);
        fflush(stdout);
        sigwait(&end_signals, &signal_number);
    }
    dbserver_stop(&dbserver);
    return result == 0 ? 0 : 1;
}
