/* A request on its way through the server. The acceptor reads it, a worker serves it (or hands it to
 * pg-events), and whoever has the answer calls http_answer(), which gives it back to the acceptor. At any
 * moment one thread owns it. */
#ifndef DBSERVER_REQUEST_H
#define DBSERVER_REQUEST_H

#include <stddef.h>

#define REQUEST_PATH_MAX_BYTES 64
#define REQUEST_BODY_MAX_BYTES 512

struct request;
struct http_server;
struct worker;

/* Serves a request in a worker: calls http_answer() once, or passes the request on to somebody who does. */
typedef void request_handler(struct worker *worker, struct request *request);

struct request {
    struct request *next; /* in whichever queue it stands */
    struct http_server *server;
    char path[REQUEST_PATH_MAX_BYTES];
    request_handler *handle;
    const char *sql; /* for pg-events: the query that answers this request */
    int status;
    char body[REQUEST_BODY_MAX_BYTES];
};

/* First in, first out; its lock is its owner's business. */
struct request_queue {
    struct request *head;
    struct request *tail;
    size_t length;
};

static inline void request_queue_push(struct request_queue *queue, struct request *request)
{
    request->next = NULL;
    if (queue->tail)
        queue->tail->next = request;
    else
        queue->head = request;
    queue->tail = request;
    queue->length++;
}

/* The oldest request, or NULL. */
static inline struct request *request_queue_pop(struct request_queue *queue)
{
    struct request *request = queue->head;

    if (!request)
        return NULL;
    queue->head = request->next;
    if (!queue->head)
        queue->tail = NULL;
    queue->length--;
    return request;
}

#endif
