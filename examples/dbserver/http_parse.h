/* Reads the head of an HTTP/1.x request. Pure: bytes in, a struct out. */
#ifndef DBSERVER_HTTP_PARSE_H
#define DBSERVER_HTTP_PARSE_H

#include "examples/dbserver/request.h"

#include <stdbool.h>
#include <sys/types.h>

struct http_head {
    char path[REQUEST_PATH_MAX_BYTES]; /* without the part from '?' on */
    bool keep_alive;
};

/* Returns the length of the head with its empty line, 0 when more bytes are needed, or the HTTP status of the
 * refusal as a negative number. Only GET without a body is served. */
ssize_t http_parse_head(const char *data, size_t size_bytes, struct http_head *ret_head);

#endif
