#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "profiler/base/string_table.h"

static void test_empty_is_zero(void **state)
{
    struct string_table *table = string_table_create();

    (void)state;
    assert_int_equal(string_table_count(table), 1);
    assert_int_equal(string_table_intern(table, ""), 0);
    assert_int_equal(string_table_intern_length(table, "abc", 0), 0);
    assert_string_equal(string_table_get(table, 0), "");
    assert_int_equal(string_table_count(table), 1);
    string_table_destroy(table);
    string_table_destroy(NULL);
}

static void test_each_once(void **state)
{
    struct string_table *table = string_table_create();
    uint32_t abc = string_table_intern(table, "abc");

    (void)state;
    assert_int_equal(abc, 1);
    assert_int_equal(string_table_intern_length(table, "abcdef", 3), abc);
    assert_int_equal(string_table_intern_length(table, "abc\0def", 7), abc); /* a NUL ends it */
    assert_int_equal(string_table_intern(table, "abcd"), 2);
    assert_int_equal(string_table_intern(table, "\n;\xff"), 3);
    assert_string_equal(string_table_get(table, 3), "\n;\xff");
    assert_int_equal(string_table_count(table), 4);
    string_table_destroy(table);
}

static void test_ids_and_pointers_stay(void **state)
{
    enum { COUNT = 20000 };
    struct string_table *table = string_table_create();
    uint32_t first = string_table_intern(table, "first");
    const char *text = string_table_get(table, first);
    char name[32];

    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "name-%u", i);
        assert_int_equal(string_table_intern(table, name), first + 1 + i);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "name-%u", i);
        assert_string_equal(string_table_get(table, first + 1 + i), name);
        assert_int_equal(string_table_intern(table, name), first + 1 + i);
    }
    assert_ptr_equal(string_table_get(table, first), text);
    assert_string_equal(text, "first");
    string_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_is_zero),
        cmocka_unit_test(test_each_once),
        cmocka_unit_test(test_ids_and_pointers_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
