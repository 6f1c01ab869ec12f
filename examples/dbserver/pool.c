#include "examples/dbserver/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct pool {
    pthread_mutex_t queue_mu; /* guards queue, busy and stopping */
    pthread_cond_t queue_changed;
    struct request_queue queue;
    size_t busy;
    bool stopping;
    size_t worker_count;
    size_t thread_count; /* of which a thread runs */
    struct worker *workers;
    pthread_t *threads;
};

/* Waits for the next request; NULL when the pool stops. */
static struct request *take_request(struct pool *pool)
{
    struct request *request = NULL;

    pthread_mutex_lock(&pool->queue_mu);
    while (!pool->stopping && pool->queue.length == 0)
        pthread_cond_wait(&pool->queue_changed, &pool->queue_mu);
    if (!pool->stopping) {
        request = request_queue_pop(&pool->queue);
        pool->busy++;
    }
    pthread_mutex_unlock(&pool->queue_mu);
    return request;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct pool *pool = worker->pool;
    struct request *request;
    char name[16];

    snprintf(name, sizeof(name), "worker-%zu", worker->number);
    pthread_setname_np(pthread_self(), name);
    while ((request = take_request(pool))) {
        request->handle(worker, request);
        pthread_mutex_lock(&pool->queue_mu);
        pool->busy--;
        pthread_mutex_unlock(&pool->queue_mu);
    }
    return NULL;
}

static bool start_worker(struct pool *pool, size_t index, const char *conninfo, struct pg_events *pg_events)
{
    struct worker *worker = &pool->workers[index];
    int error;

    *worker = (struct worker){
        .pool = pool, .number = index + 1, .database = PQconnectdb(conninfo), .pg_events = pg_events};
    if (PQstatus(worker->database) != CONNECTION_OK) {
        fprintf(stderr, "dbserver: database: %s", PQerrorMessage(worker->database));
        return false;
    }
    error = pthread_create(&pool->threads[index], NULL, worker_main, worker);
    if (error) {
        fprintf(stderr, "dbserver: cannot start worker %zu of %zu\n", index + 1, pool->worker_count);
        return false;
    }
    pool->thread_count = index + 1;
    return true;
}

struct pool *pool_create(size_t workers, const char *conninfo, struct pg_events *pg_events)
{
    struct pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->queue_mu, NULL);
    pthread_cond_init(&pool->queue_changed, NULL);
    pool->worker_count = workers;
    pool->workers = calloc(workers, sizeof(*pool->workers));
    pool->threads = calloc(workers, sizeof(*pool->threads));
    for (size_t i = 0; i < workers; i++) {
        if (!pool->workers || !pool->threads || !start_worker(pool, i, conninfo, pg_events)) {
            pool_destroy(pool);
            return NULL;
        }
    }
    return pool;
}

void pool_submit(struct pool *pool, struct request *request)
{
    pthread_mutex_lock(&pool->queue_mu);
    request_queue_push(&pool->queue, request);
    pthread_mutex_unlock(&pool->queue_mu);
    pthread_cond_signal(&pool->queue_changed);
}

void pool_read_counters(struct pool *pool, struct pool_counters *ret_counters)
{
    pthread_mutex_lock(&pool->queue_mu);
    *ret_counters = (struct pool_counters){
        .workers = pool->worker_count, .busy = pool->busy, .queued = pool->queue.length};
    pthread_mutex_unlock(&pool->queue_mu);
}

void pool_stop(struct pool *pool)
{
    pthread_mutex_lock(&pool->queue_mu);
    pool->stopping = true;
    pthread_mutex_unlock(&pool->queue_mu);
    pthread_cond_broadcast(&pool->queue_changed);
    for (size_t i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pool->thread_count = 0;
}

void pool_destroy(struct pool *pool)
{
    if (!pool)
        return;
    pool_stop(pool);
    for (size_t i = 0; pool->workers && i < pool->worker_count; i++)
        PQfinish(pool->workers[i].database); /* NULL is fine */
    free(pool->workers);
    free(pool->threads);
    pthread_cond_destroy(&pool->queue_changed);
    pthread_mutex_destroy(&pool->queue_mu);
    free(pool);
}
