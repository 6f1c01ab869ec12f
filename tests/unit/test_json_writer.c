#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporters/json_writer.h"

/* A writer into memory: start, write, and take what came out (to be freed). */
struct memory_json {
    struct json_writer json;
    char *bytes;
    size_t size;
};

static struct json_writer *start(struct memory_json *memory)
{
    *memory = (struct memory_json){0};
    memory->json.out = open_memstream(&memory->bytes, &memory->size);
    assert_non_null(memory->json.out);
    return &memory->json;
}

static void expect(struct memory_json *memory, const char *expected)
{
    assert_int_equal(fclose(memory->json.out), 0);
    assert_string_equal(memory->bytes, expected);
    free(memory->bytes);
}

static void test_nesting(void **state)
{
    (void)state;
    struct memory_json memory;
    struct json_writer *json = start(&memory);

    json_begin_object(json);
    json_key(json, "a");
    json_begin_array(json);
    json_begin_array(json);
    json_end_array(json);
    json_begin_array(json);
    json_uint(json, 1);
    json_uint(json, 2);
    json_end_array(json);
    json_begin_object(json);
    json_end_object(json);
    json_end_array(json);
    json_key_string(json, "b", "x");
    json_key_uint(json, "c", 3);
    json_end_object(json);
    expect(&memory, "{\"a\":[[],[1,2],{}],\"b\":\"x\",\"c\":3}");
}

static void test_numbers(void **state)
{
    (void)state;
    struct memory_json memory;
    struct json_writer *json = start(&memory);

    json_begin_array(json);
    json_uint(json, 0);
    json_uint(json, UINT64_MAX);
    json_int(json, INT64_MIN);
    json_double(json, 99);
    json_double(json, 0.5);
    json_double(json, NAN);
    json_double(json, INFINITY);
    json_bool(json, true);
    json_bool(json, false);
    json_end_array(json);
    expect(&memory, "[0,18446744073709551615,-9223372036854775808,99,0.5,null,null,true,false]");
}

static void expect_quoted(const char *text, const char *expected)
{
    struct memory_json memory;

    json_string(start(&memory), text);
    expect(&memory, expected);
}

static void test_strings(void **state)
{
    (void)state;
    expect_quoted("", "\"\"");
    expect_quoted("a;b<c>\"&\n\\", "\"a;b<c>\\\"&\\u000a\\\\\"");
    expect_quoted("\x01\x1b\x7f", "\"\\u0001\\u001b\x7f\"");
    expect_quoted("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    expect_quoted("\xff d\xc3", "\"\xef\xbf\xbd d\xef\xbf\xbd\"");
}

static void test_lines(void **state)
{
    (void)state;
    struct memory_json memory;
    struct json_writer *json = start(&memory);

    json_begin_object(json);
    json_line(json);
    json_key(json, "a");
    json_begin_array(json);
    json_line(json);
    json_uint(json, 1);
    json_line(json);
    json_uint(json, 2);
    json_end_array(json);
    json_line(json);
    json_key_uint(json, "b", 3);
    json_end_object(json);
    expect(&memory, "{\n\"a\":[\n1,\n2],\n\"b\":3}");
}

static void test_deepest(void **state)
{
    (void)state;
    struct memory_json memory;
    struct json_writer *json = start(&memory);
    char expected[4 * JSON_MAX_DEPTH + 1];
    size_t size = 0;

    for (int i = 0; i < JSON_MAX_DEPTH; i++) {
        json_begin_array(json);
        expected[size++] = '[';
    }
    for (int i = 0; i < JSON_MAX_DEPTH; i++) {
        json_end_array(json);
        expected[size++] = ']';
    }
    expected[size] = '\0';
    expect(&memory, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesting), cmocka_unit_test(test_numbers), cmocka_unit_test(test_strings),
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_deepest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
