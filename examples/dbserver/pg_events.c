#include "examples/dbserver/pg_events.h"

#include "examples/dbserver/http.h"

#include <errno.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define READY_MAX 64

enum link_state {
    LINK_CLOSED,
    LINK_CONNECTING,
    LINK_IDLE,
    LINK_BUSY,
};

/* One connection to the database. */
struct link {
    enum link_state state;
    PGconn *database;
    struct request *request; /* while connecting or busy: the one whose query it is for */
    bool failed;             /* the query had an error */
};

/* Links belong to the thread; what other threads touch is behind the lock, or atomic. */
struct pg_events {
    const char *conninfo;
    int epoll_fd;
    int wake_fd;
    pthread_t thread;
    bool started;
    atomic_bool stopping;
    pthread_mutex_t waiting_mu;
    struct request_queue waiting;
    atomic_size_t open_count;
    atomic_size_t busy_count;
    size_t link_count;
    struct link *links;
};

/* PQconnectPoll may close its socket and open another one: epoll forgets the first by itself. */
static void link_watch(struct pg_events *events, struct link *link, uint32_t what)
{
    struct epoll_event event = {.events = what, .data.ptr = link};
    int fd = PQsocket(link->database);

    if (epoll_ctl(events->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0 && errno == ENOENT)
        epoll_ctl(events->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Closes a link that is of no use any more. The request that it was for, if any, is answered. */
static void link_fail(struct pg_events *events, struct link *link)
{
    struct request *request = link->request;

    if (request) {
        atomic_fetch_sub(&events->busy_count, 1);
        http_answer(request, 503, "database: %s", PQerrorMessage(link->database));
    }
    PQfinish(link->database);
    *link = (struct link){.state = LINK_CLOSED};
    atomic_fetch_sub(&events->open_count, 1);
}

static void link_send_query(struct pg_events *events, struct link *link)
{
    int unsent;

    link->state = LINK_BUSY;
    link->failed = false;
    if (!PQsendQuery(link->database, link->request->sql) || (unsent = PQflush(link->database)) < 0) {
        link_fail(events, link);
        return;
    }
    link_watch(events, link, unsent ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void link_connect(struct pg_events *events, struct link *link)
{
    link->database = PQconnectStart(events->conninfo);
    atomic_fetch_add(&events->open_count, 1);
    if (PQstatus(link->database) == CONNECTION_BAD) {
        link_fail(events, link);
        return;
    }
    link->state = LINK_CONNECTING;
    link_watch(events, link, EPOLLOUT);
}

static void link_continue_connect(struct pg_events *events, struct link *link)
{
    switch (PQconnectPoll(link->database)) {
    case PGRES_POLLING_READING:
        link_watch(events, link, EPOLLIN);
        break;
    case PGRES_POLLING_WRITING:
    case PGRES_POLLING_ACTIVE:
        link_watch(events, link, EPOLLOUT);
        break;
    case PGRES_POLLING_OK:
        if (PQsetnonblocking(link->database, 1) < 0)
            link_fail(events, link);
        else
            link_send_query(events, link);
        break;
    case PGRES_POLLING_FAILED:
        link_fail(events, link);
        break;
    }
}

static void link_finish_query(struct pg_events *events, struct link *link)
{
    struct request *request = link->request;

    if (PQstatus(link->database) != CONNECTION_OK) { /* the server ended the connection with its error */
        link_fail(events, link);
        return;
    }
    link->request = NULL;
    link->state = LINK_IDLE;
    atomic_fetch_sub(&events->busy_count, 1);
    if (link->failed)
        http_answer(request, 503, "database: %s", PQerrorMessage(link->database));
    else
        http_answer(request, 200, "%s: answered by the database, no worker waited\n", request->path);
}

/* The socket can be read or written: takes in what there is, and the whole result once it is complete. */
static void link_continue_query(struct pg_events *events, struct link *link)
{
    int unsent = PQflush(link->database);

    if (unsent < 0 || !PQconsumeInput(link->database)) {
        link_fail(events, link);
        return;
    }
    if (!unsent)
        link_watch(events, link, EPOLLIN);
    while (link->state == LINK_BUSY && !PQisBusy(link->database)) {
        PGresult *result = PQgetResult(link->database);

        if (!result)
            link_finish_query(events, link);
        else if (PQresultStatus(result) != PGRES_TUPLES_OK)
            link->failed = true;
        PQclear(result);
    }
}

static void link_continue(struct pg_events *events, struct link *link)
{
    switch (link->state) {
    case LINK_CLOSED:
        break;
    case LINK_CONNECTING:
        link_continue_connect(events, link);
        break;
    case LINK_IDLE: /* nobody asked: a notice, or the server hangs up */
        if (!PQconsumeInput(link->database))
            link_fail(events, link);
        break;
    case LINK_BUSY:
        link_continue_query(events, link);
        break;
    }
}

/* An open link with nothing to do, else one that can be opened, else NULL. */
static struct link *find_free_link(struct pg_events *events)
{
    struct link *closed = NULL;

    for (size_t i = 0; i < events->link_count; i++) {
        struct link *link = &events->links[i];

        if (link->state == LINK_IDLE)
            return link;
        if (link->state == LINK_CLOSED && !closed)
            closed = link;
    }
    return closed;
}

static void start_waiting_queries(struct pg_events *events)
{
    struct link *link;

    while ((link = find_free_link(events))) {
        pthread_mutex_lock(&events->waiting_mu);
        link->request = request_queue_pop(&events->waiting);
        pthread_mutex_unlock(&events->waiting_mu);
        if (!link->request)
            return;
        atomic_fetch_add(&events->busy_count, 1);
        if (link->state == LINK_IDLE)
            link_send_query(events, link);
        else
            link_connect(events, link);
    }
}

static void *pg_events_main(void *argument)
{
    struct pg_events *events = argument;
    struct epoll_event ready[READY_MAX];

    pthread_setname_np(pthread_self(), "pg-events");
    while (!atomic_load(&events->stopping)) {
        int count = epoll_wait(events->epoll_fd, ready, READY_MAX, -1);

        for (int i = 0; i < count; i++) {
            eventfd_t ignored;

            if (ready[i].data.ptr == events)
                (void)eventfd_read(events->wake_fd, &ignored);
            else
                link_continue(events, ready[i].data.ptr);
        }
        start_waiting_queries(events);
    }
    return NULL;
}

static void wake(struct pg_events *events)
{
    (void)eventfd_write(events->wake_fd, 1); /* fails only when the counter is full: awake anyway */
}

struct pg_events *pg_events_create(size_t connections_max, const char *conninfo)
{
    struct pg_events *events = calloc(1, sizeof(*events));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = events};

    if (!events)
        return NULL;
    events->conninfo = conninfo;
    events->link_count = connections_max;
    events->links = calloc(connections_max, sizeof(*events->links));
    pthread_mutex_init(&events->waiting_mu, NULL);
    events->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    events->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (events->links && events->epoll_fd >= 0 && events->wake_fd >= 0 &&
        epoll_ctl(events->epoll_fd, EPOLL_CTL_ADD, events->wake_fd, &event) == 0)
        events->started = pthread_create(&events->thread, NULL, pg_events_main, events) == 0;
    if (!events->started) {
        pg_events_destroy(events);
        return NULL;
    }
    return events;
}

void pg_events_submit(struct pg_events *events, struct request *request, const char *sql)
{
    request->sql = sql;
    pthread_mutex_lock(&events->waiting_mu);
    request_queue_push(&events->waiting, request);
    pthread_mutex_unlock(&events->waiting_mu);
    wake(events);
}

void pg_events_read_counters(struct pg_events *events, struct pg_events_counters *ret_counters)
{
    pthread_mutex_lock(&events->waiting_mu);
    *ret_counters = (struct pg_events_counters){.connections = atomic_load(&events->open_count),
                                                .busy = atomic_load(&events->busy_count),
                                                .queued = events->waiting.length};
    pthread_mutex_unlock(&events->waiting_mu);
}

void pg_events_destroy(struct pg_events *events)
{
    if (!events)
        return;
    if (events->started) {
        atomic_store(&events->stopping, true);
        wake(events);
        pthread_join(events->thread, NULL);
    }
    for (size_t i = 0; events->links && i < events->link_count; i++)
        PQfinish(events->links[i].database); /* NULL is fine */
    if (events->wake_fd >= 0)
        close(events->wake_fd);
    if (events->epoll_fd >= 0)
        close(events->epoll_fd);
    pthread_mutex_destroy(&events->waiting_mu);
    free(events->links);
    free(events);
}
