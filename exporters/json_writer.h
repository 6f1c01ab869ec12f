/* JSON written straight to a stream, nothing kept in memory. Commas are the writer's business.
 *
 *   struct json_writer json = {.out = file};
 *   json_begin_object(&json);
 *   json_key(&json, "weights");
 *   json_begin_array(&json);
 *   json_uint(&json, 5);
 *   json_end_array(&json);
 *   json_end_object(&json);                                     // {"weights":[5]}
 *
 * Errors are those of the stream: look at ferror() once, at the end. */
#ifndef STALLGRAPH_EXPORTERS_JSON_WRITER_H
#define STALLGRAPH_EXPORTERS_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_MAX_DEPTH = 63 }; /* of nested objects and arrays; deeper is a programmer's mistake */

struct json_writer {
    FILE *out;
    unsigned depth;
    uint64_t has_items; /* bit d: something was written at depth d, so a comma comes next */
    bool after_key;
};

void json_begin_object(struct json_writer *json);
void json_end_object(struct json_writer *json);
void json_begin_array(struct json_writer *json);
void json_end_array(struct json_writer *json);

/* A line break before the next item, so that files can be compared and searched by line. */
void json_line(struct json_writer *json);

void json_key(struct json_writer *json, const char *key);
/* Any bytes up to the NUL: what is not UTF-8 becomes U+FFFD, control characters \u00XX. */
void json_string(struct json_writer *json, const char *text);
void json_uint(struct json_writer *json, uint64_t value);
void json_int(struct json_writer *json, int64_t value);
void json_double(struct json_writer *json, double value); /* null where it is not finite */
void json_bool(struct json_writer *json, bool value);

/* A key with its value. */
void json_key_string(struct json_writer *json, const char *key, const char *text);
void json_key_uint(struct json_writer *json, const char *key, uint64_t value);

#endif
