#include "examples/dbserver/handlers.h"

#include "examples/dbserver/http.h"
#include "examples/dbserver/pg_events.h"
#include "examples/dbserver/pool.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS INT64_C(1000000)
#define LONG_QUERY "SELECT pg_sleep(0.05)"
#define SHORT_QUERY "SELECT pg_sleep(0.01)"

/* A global on purpose: a profiler can give a lock the name of the variable that it is. */
static pthread_mutex_t cache_mu = PTHREAD_MUTEX_INITIALIZER;
static uint64_t cache_checksum; /* guarded by cache_mu */

static int64_t thread_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

/* Some 20 us of work. */
__attribute__((noinline)) static uint64_t hash_block(uint64_t seed)
{
    for (int i = 0; i < 8192; i++)
        seed = (seed ^ (seed >> 29)) * UINT64_C(0xbf58476d1ce4e5b9) + 1;
    return seed;
}

/* Computes until the thread has used so much CPU time, so that it is the same work on a busy machine. */
__attribute__((noinline)) static uint64_t compute_checksum(int duration_ms)
{
    int64_t end_ns = thread_cpu_ns() + duration_ms * NS_PER_MS;
    uint64_t checksum = 1;

    while (thread_cpu_ns() < end_ns)
        checksum = hash_block(checksum);
    return checksum;
}

/* Runs a query and waits for its result. On an error the request is answered and false returned. */
__attribute__((noinline)) static bool query_database(struct worker *worker, struct request *request,
                                                     const char *sql)
{
    PGresult *result;
    bool good;

    if (PQstatus(worker->database) != CONNECTION_OK)
        PQreset(worker->database);
    result = PQexec(worker->database, sql);
    good = PQresultStatus(result) == PGRES_TUPLES_OK;
    PQclear(result);
    if (!good)
        http_answer(request, 503, "database: %s", PQerrorMessage(worker->database));
    return good;
}

void handle_time(struct worker *worker, struct request *request)
{
    if (query_database(worker, request, LONG_QUERY))
        http_answer(request, 200, "%s: answered by the database, worker %zu waited\n", request->path,
                    worker->number);
}

void handle_async_time(struct worker *worker, struct request *request)
{
    pg_events_submit(worker->pg_events, request, LONG_QUERY);
}

void handle_mixed(struct worker *worker, struct request *request)
{
    if (!query_database(worker, request, SHORT_QUERY))
        return;
    compute_checksum(1);
    pg_events_submit(worker->pg_events, request, LONG_QUERY);
}

void handle_sleep(struct worker *worker, struct request *request)
{
    struct timespec duration = {.tv_nsec = 50 * NS_PER_MS};

    nanosleep(&duration, NULL);
    http_answer(request, 200, "%s: worker %zu slept\n", request->path, worker->number);
}

void handle_cpu(struct worker *worker, struct request *request)
{
    (void)worker;
    http_answer(request, 200, "%s: checksum %016" PRIx64 "\n", request->path, compute_checksum(5));
}

void handle_lock(struct worker *worker, struct request *request)
{
    uint64_t checksum;

    (void)worker;
    pthread_mutex_lock(&cache_mu);
    cache_checksum ^= compute_checksum(2);
    checksum = cache_checksum;
    pthread_mutex_unlock(&cache_mu);
    http_answer(request, 200, "%s: cache %016" PRIx64 "\n", request->path, checksum);
}

request_handler *handlers_find(const char *path)
{
    static const struct {
        const char *path;
        request_handler *handle;
    } handlers[] = {
        {"/time", handle_time},   {"/async-time", handle_async_time},
        {"/mixed", handle_mixed}, {"/sleep", handle_sleep},
        {"/cpu", handle_cpu},     {"/lock", handle_lock},
    };

    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        if (strcmp(handlers[i].path, path) == 0)
            return handlers[i].handle;
    }
    return NULL;
}
