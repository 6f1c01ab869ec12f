/* Protocol buffers' wire format, written straight to a stream. Only the top-level field that is being written is
 * kept in memory, for the length of a message stands before it.
 *
 *   struct protobuf_writer proto = {.out = file};
 *   protobuf_begin(&proto, 4);                 // message Profile { repeated Location location = 4; }
 *   protobuf_uint(&proto, 1, 7);               // message Location { uint64 id = 1; }
 *   protobuf_end(&proto);                      // 22 02 08 07
 *   protobuf_finish(&proto);
 *
 * Format: "Encoding" of the Protocol Buffers documentation. Errors are those of the stream: look at ferror() once,
 * at the end. */
#ifndef STALLGRAPH_EXPORTERS_PROTOBUF_WRITER_H
#define STALLGRAPH_EXPORTERS_PROTOBUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profiler/base/vec.h"

enum { PROTOBUF_MAX_DEPTH = 8 }; /* of nested messages; deeper is a programmer's mistake */

struct protobuf_writer {
    FILE *out;
    VEC_OF(unsigned char) field;       /* private: what the outermost open message holds so far */
    size_t starts[PROTOBUF_MAX_DEPTH]; /* private: where the bodies of the open messages start in it */
    unsigned depth;
};

/* Frees what the writer holds, not the stream. All messages must have ended. */
void protobuf_finish(struct protobuf_writer *proto);

void protobuf_begin(struct protobuf_writer *proto, uint32_t field);
void protobuf_end(struct protobuf_writer *proto);

/* 0 and false are what a reader takes a missing field for, and are left out. Field types uint64, int64, bool. */
void protobuf_uint(struct protobuf_writer *proto, uint32_t field, uint64_t value);
void protobuf_int(struct protobuf_writer *proto, uint32_t field, int64_t value);
void protobuf_bool(struct protobuf_writer *proto, uint32_t field, bool value);

/* A repeated number, packed. Zeros are kept; none at all is left out. */
void protobuf_packed(struct protobuf_writer *proto, uint32_t field, const uint64_t *values, size_t count);

/* An item of a repeated string, so the empty one is written too. The text must be UTF-8. */
void protobuf_string(struct protobuf_writer *proto, uint32_t field, const char *text);

#endif
