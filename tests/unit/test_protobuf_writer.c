#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporters/protobuf_writer.h"

/* A writer into memory: start, write, and take what came out. */
struct memory_proto {
    struct protobuf_writer proto;
    FILE *out;
    char *bytes;
    size_t size;
};

static struct protobuf_writer *start(struct memory_proto *memory)
{
    *memory = (struct memory_proto){0};
    memory->out = open_memstream(&memory->bytes, &memory->size);
    assert_non_null(memory->out);
    memory->proto.out = memory->out;
    return &memory->proto;
}

static void expect(struct memory_proto *memory, const char *bytes, size_t size)
{
    protobuf_finish(&memory->proto);
    assert_int_equal(fclose(memory->out), 0);
    assert_int_equal(memory->size, size);
    assert_memory_equal(memory->bytes, bytes, size);
    free(memory->bytes);
}

/* The examples of the format's own documentation: 150 is 96 01, "testing", and a message that holds 150. */
static void test_documented_examples(void **state)
{
    (void)state;
    struct memory_proto memory;
    struct protobuf_writer *proto = start(&memory);

    protobuf_uint(proto, 1, 150);
    protobuf_string(proto, 2, "testing");
    protobuf_begin(proto, 3);
    protobuf_uint(proto, 1, 150);
    protobuf_end(proto);
    protobuf_packed(proto, 6, (const uint64_t[]){3, 270, 86942}, 3);
    expect(&memory, "\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01\x32\x06\x03\x8e\x02\x9e\xa7\x05", 25);
}

static void test_numbers(void **state)
{
    (void)state;
    struct memory_proto memory;
    struct protobuf_writer *proto = start(&memory);

    protobuf_uint(proto, 1, 127);
    protobuf_uint(proto, 1, 128);
    protobuf_uint(proto, 16, UINT64_MAX); /* the first field whose tag takes two bytes */
    protobuf_int(proto, 1, -2);
    protobuf_bool(proto, 2, true);
    expect(&memory,
           "\x08\x7f"
           "\x08\x80\x01"
           "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
           "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
           "\x10\x01",
           30);
}

static void test_defaults_are_left_out(void **state)
{
    (void)state;
    struct memory_proto memory;
    struct protobuf_writer *proto = start(&memory);

    protobuf_uint(proto, 1, 0);
    protobuf_int(proto, 1, 0);
    protobuf_bool(proto, 1, false);
    protobuf_packed(proto, 1, NULL, 0);
    protobuf_packed(proto, 1, (const uint64_t[]){0, 0}, 2); /* not these: their place tells them apart */
    protobuf_string(proto, 1, "");                          /* nor an empty item */
    protobuf_begin(proto, 1);
    protobuf_end(proto);
    expect(&memory, "\x0a\x02\x00\x00\x0a\x00\x0a\x00", 8);
}

/* Lengths that take two bytes, at two levels: what is behind them has moved by the right number. */
static void test_long_messages(void **state)
{
    (void)state;
    char text[201];
    char expected[9 + 200 + 2 + 1]; /* three tags with lengths, the text, a number, NUL */
    struct memory_proto memory;
    struct protobuf_writer *proto = start(&memory);
    int head;

    for (size_t i = 0; i < 200; i++)
        text[i] = 'x';
    text[200] = '\0';
    protobuf_begin(proto, 1);
    protobuf_begin(proto, 2);
    protobuf_string(proto, 3, text);
    protobuf_end(proto);
    protobuf_uint(proto, 4, 5);
    protobuf_end(proto);
    /* 203 = CB 01, 206 + 2 = D0 01, 200 = C8 01 */
    head = snprintf(expected, sizeof expected, "\x0a\xd0\x01\x12\xcb\x01\x1a\xc8\x01%s\x20\x05", text);
    expect(&memory, expected, (size_t)head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documented_examples),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_defaults_are_left_out),
        cmocka_unit_test(test_long_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
