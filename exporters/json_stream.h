/* Reads JSON as it comes, whatever its size, by a grammar that says which containers matter and which values of an
 * object go where. All else is skipped. What is read is not trusted: depth, and the length of one value, have limits.
 *
 *   static const struct json_rule rules[] = {{PLACE_ROOT, PLACE_THREADS, "threads"}, {PLACE_THREADS, PLACE_THREAD, NULL}};
 *   static const struct json_field fields[] = {{PLACE_THREAD, JSON_INT, "tid", offsetof(struct record, tid)}};
 *   struct json_stream *stream = json_stream_create(&grammar, &record, strings);
 *   r = json_stream_feed(stream, bytes, size, &err);      // any number of times
 *   r = json_stream_end(stream, &err);
 *
 * json.org, RFC 8259; the parser below it is yajl. */
#ifndef STALLGRAPH_EXPORTERS_JSON_STREAM_H
#define STALLGRAPH_EXPORTERS_JSON_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/base/error.h"
#include "profiler/base/string_table.h"

/* Places are numbers of the grammar's own, from 1 on. */
enum { JSON_PLACE_TOP = 0, JSON_STREAM_MAX_DEPTH = 200 };

/* What is written at a field's offset. null leaves what is there. */
enum json_type {
    JSON_UINT,   /* uint64_t */
    JSON_INT,    /* int64_t */
    JSON_DOUBLE, /* double */
    JSON_BOOL,   /* bool */
    JSON_STRING, /* uint32_t: id in the string table; a NUL in a text becomes '?' */
};

/* An object or array within another. */
struct json_rule {
    int parent; /* JSON_PLACE_TOP: the whole document */
    int place;
    const char *key; /* NULL: an element of an array, or the document */
};

struct json_number {
    double value;
    uint64_t whole; /* exactly, where it is a whole number below 2^64; else 0 */
};

struct json_field {
    int place; /* an object */
    enum json_type type;
    const char *key;
    size_t offset; /* in the record */
};

struct json_grammar {
    const struct json_rule *rules;
    size_t rule_count;
    const struct json_field *fields;
    size_t field_count;
    /* Each returns 0, or -errno having said why; the place and the offset are added to the message. */
    int (*begin)(void *record, int place, struct error *err);
    int (*end)(void *record, int place, struct error *err);
    /* An element of an array that is a number, or a text. */
    int (*number)(void *record, int place, struct json_number number, struct error *err);
    int (*string)(void *record, int place, uint32_t text, struct error *err);
};

struct json_stream;

struct json_stream *json_stream_create(const struct json_grammar *grammar, void *record,
                                       struct string_table *strings);
void json_stream_destroy(struct json_stream *stream); /* NULL allowed */

/* 0, or -errno: -EBADMSG for what is no JSON or not as the grammar wants it. After an error there is no going on. */
int json_stream_feed(struct json_stream *stream, const void *bytes, size_t size, struct error *err);
int json_stream_end(struct json_stream *stream, struct error *err);

#endif
