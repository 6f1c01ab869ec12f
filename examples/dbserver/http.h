/* The HTTP side: one thread, "acceptor", takes connections on 127.0.0.1 and reads and writes them all.
 *
 *   struct http_server *server = http_server_create(0, on_request, context, &port);
 *   http_server_start(server);
 *   ...                                 // on_request() runs in the acceptor; http_answer() may come from any
 * thread http_server_stop(server);           // no request is read from here on http_server_destroy(server);
 * // only when nobody holds a request any more
 */
#ifndef DBSERVER_HTTP_H
#define DBSERVER_HTTP_H

#include "examples/dbserver/request.h"

#include <stdint.h>

/* Must not block; it has http_answer() called for the request, now or later. */
typedef void http_on_request(void *context, struct request *request);

/* Binds and listens; port 0 means any, *ret_port is the one in use. Returns NULL with errno set on failure.
 */
struct http_server *http_server_create(uint16_t port, http_on_request *on_request, void *context,
                                       uint16_t *ret_port);
int http_server_start(struct http_server *server); /* 0 or -errno */
void http_server_stop(struct http_server *server);
void http_server_destroy(struct http_server *server); /* NULL is fine */

/* Sets the answer and hands the request back to the acceptor; the caller must not touch it afterwards.
 * A body longer than REQUEST_BODY_MAX_BYTES is cut. */
void http_answer(struct request *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
