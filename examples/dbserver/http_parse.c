#include "examples/dbserver/http_parse.h"

#include <string.h>
#include <strings.h>

/* A piece of the input; not terminated by a NUL. */
struct text {
    const char *start;
    size_t length;
};

/* Splits at the first occurrence of separator: returns what stands before it and moves *rest behind it.
 * Without a separator everything is returned and the rest is empty. */
static struct text text_cut(struct text *rest, char separator)
{
    struct text piece = *rest;
    const char *found = piece.length ? memchr(piece.start, separator, piece.length) : NULL;

    if (!found) {
        *rest = (struct text){piece.start + piece.length, 0};
        return piece;
    }
    piece.length = (size_t)(found - piece.start);
    *rest = (struct text){found + 1, rest->length - piece.length - 1};
    return piece;
}

static struct text text_trim(struct text text)
{
    while (text.length && strchr(" \t\r", text.start[0])) {
        text.start++;
        text.length--;
    }
    while (text.length && strchr(" \t\r", text.start[text.length - 1]))
        text.length--;
    return text;
}

static bool text_is(struct text text, const char *expected)
{
    return text.length == strlen(expected) && strncasecmp(text.start, expected, text.length) == 0;
}

/* GET /time?x=1 HTTP/1.1 */
static int parse_request_line(struct text line, struct http_head *head)
{
    struct text method = text_cut(&line, ' ');
    struct text target = text_cut(&line, ' ');
    struct text version = text_trim(line);
    struct text path = text_cut(&target, '?');

    if (!text_is(version, "HTTP/1.1") && !text_is(version, "HTTP/1.0"))
        return -400;
    head->keep_alive = text_is(version, "HTTP/1.1"); /* what either does when nothing is said */
    if (path.length == 0 || path.start[0] != '/')
        return -400;
    if (!text_is(method, "GET"))
        return -405;
    if (path.length >= sizeof(head->path))
        return -414;
    memcpy(head->path, path.start, path.length);
    head->path[path.length] = '\0';
    return 0;
}

/* Connection: close */
static int parse_field(struct text line, struct http_head *head)
{
    struct text name = text_cut(&line, ':');
    struct text value = text_trim(line);

    if (text_is(name, "Connection")) {
        if (text_is(value, "close"))
            head->keep_alive = false;
        else if (text_is(value, "keep-alive"))
            head->keep_alive = true;
    }
    /* A body would be taken for the next request: refuse it, and the caller closes the connection. */
    if (text_is(name, "Transfer-Encoding") || (text_is(name, "Content-Length") && !text_is(value, "0")))
        return -413;
    return 0;
}

ssize_t http_parse_head(const char *data, size_t size_bytes, struct http_head *ret_head)
{
    const char *end = size_bytes ? memmem(data, size_bytes, "\r\n\r\n", 4) : NULL;
    struct http_head head = {0};
    struct text rest;
    int status;

    if (!end)
        return 0;
    rest = (struct text){data, (size_t)(end - data)};
    status = parse_request_line(text_cut(&rest, '\n'), &head);
    while (status == 0 && rest.length)
        status = parse_field(text_cut(&rest, '\n'), &head);
    if (status < 0)
        return status;
    *ret_head = head;
    return end + 4 - data;
}
