#include "exporters/protobuf_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    VARINT_MAX_BYTES = 10, /* of 64 bits, 7 in each */
    PAYLOAD_BITS = 7,
    MORE_FOLLOWS = 0x80,
    WIRE_TYPE_BITS = 3,
    WIRE_VARINT = 0,
    WIRE_LENGTH = 2, /* a message, a string, packed numbers: the length, then the bytes */
};

static size_t encode_varint(uint64_t value, unsigned char bytes[VARINT_MAX_BYTES])
{
    size_t size = 0;

    while (value >= MORE_FOLLOWS) {
        bytes[size++] = (unsigned char)(value | MORE_FOLLOWS);
        value >>= PAYLOAD_BITS;
    }
    bytes[size++] = (unsigned char)value;
    return size;
}

static void put_bytes(struct protobuf_writer *proto, const void *bytes, size_t size_bytes)
{
    if (size_bytes == 0)
        return;
    VEC_RESERVE(&proto->field, proto->field.count + size_bytes);
    memcpy(proto->field.items + proto->field.count, bytes, size_bytes);
    proto->field.count += size_bytes;
}

static void put_varint(struct protobuf_writer *proto, uint64_t value)
{
    unsigned char bytes[VARINT_MAX_BYTES];

    put_bytes(proto, bytes, encode_varint(value, bytes));
}

static void put_tag(struct protobuf_writer *proto, uint32_t field, unsigned wire_type)
{
    put_varint(proto, (uint64_t)field << WIRE_TYPE_BITS | wire_type);
}

/* A field is whole: at the top level it can go out. */
static void end_field(struct protobuf_writer *proto)
{
    if (proto->depth > 0)
        return;
    fwrite(proto->field.items, 1, proto->field.count, proto->out);
    proto->field.count = 0;
}

/* Opens a body, whose length close_body puts before it. */
static void open_body(struct protobuf_writer *proto, uint32_t field)
{
    put_tag(proto, field, WIRE_LENGTH);
    assert(proto->depth < PROTOBUF_MAX_DEPTH);
    proto->starts[proto->depth++] = proto->field.count;
}

static void close_body(struct protobuf_writer *proto)
{
    unsigned char bytes[VARINT_MAX_BYTES];

    assert(proto->depth > 0);
    size_t start = proto->starts[--proto->depth];
    size_t size = proto->field.count - start;
    size_t length_size = encode_varint(size, bytes);

    VEC_RESERVE(&proto->field, proto->field.count + length_size);
    memmove(proto->field.items + start + length_size, proto->field.items + start, size);
    memcpy(proto->field.items + start, bytes, length_size);
    proto->field.count += length_size;
    end_field(proto);
}

void protobuf_finish(struct protobuf_writer *proto)
{
    assert(proto->depth == 0);
    free(proto->field.items);
    *proto = (struct protobuf_writer){0};
}

void protobuf_begin(struct protobuf_writer *proto, uint32_t field)
{
    open_body(proto, field);
}

void protobuf_end(struct protobuf_writer *proto)
{
    close_body(proto);
}

void protobuf_uint(struct protobuf_writer *proto, uint32_t field, uint64_t value)
{
    if (value == 0)
        return;
    put_tag(proto, field, WIRE_VARINT);
    put_varint(proto, value);
    end_field(proto);
}

/* int64 is two's complement, so that -1 takes ten bytes; only sint64 is zigzag. */
void protobuf_int(struct protobuf_writer *proto, uint32_t field, int64_t value)
{
    protobuf_uint(proto, field, (uint64_t)value);
}

void protobuf_bool(struct protobuf_writer *proto, uint32_t field, bool value)
{
    protobuf_uint(proto, field, value ? 1 : 0);
}

void protobuf_packed(struct protobuf_writer *proto, uint32_t field, const uint64_t *values, size_t count)
{
    if (count == 0)
        return;
    open_body(proto, field);
    for (size_t i = 0; i < count; i++)
        put_varint(proto, values[i]);
    close_body(proto);
}

void protobuf_string(struct protobuf_writer *proto, uint32_t field, const char *text)
{
    open_body(proto, field);
    put_bytes(proto, text, strlen(text));
    close_body(proto);
}
