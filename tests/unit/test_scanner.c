#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "profiler/base/scanner.h"

static struct scanner scan(const char *text)
{
    return (struct scanner){.at = text, .end = text + strlen(text)};
}

static void test_takes_in_order(void **state)
{
    struct scanner in = scan("7fFe-10 \t x");
    uint64_t value = 0;

    (void)state;
    assert_true(scanner_take_hex(&in, &value));
    assert_int_equal(value, 0x7ffe);
    assert_true(scanner_take_char(&in, '-'));
    assert_true(scanner_take_decimal(&in, &value));
    assert_int_equal(value, 10);
    scanner_skip_spaces(&in);
    assert_false(scanner_take_text(&in, "xy"));
    assert_true(scanner_take_text(&in, "x"));
    assert_ptr_equal(in.at, in.end);
    assert_false(scanner_take_char(&in, 'x'));
    assert_false(scanner_take_decimal(&in, &value));
    scanner_skip_spaces(&in);
}

static void test_limits_of_numbers(void **state)
{
    struct scanner in = scan("18446744073709551615 18446744073709551616");
    struct scanner refused;
    uint64_t value = 0;

    (void)state;
    assert_true(scanner_take_decimal(&in, &value));
    assert_int_equal(value, UINT64_MAX);
    assert_true(scanner_take_char(&in, ' '));
    refused = in;
    assert_false(scanner_take_decimal(&in, &value));
    assert_ptr_equal(in.at, refused.at); /* nothing taken, the value as it was */
    assert_int_equal(value, UINT64_MAX);

    in = scan("ffffffffffffffff");
    assert_true(scanner_take_hex(&in, &value));
    assert_int_equal(value, UINT64_MAX);
    in = scan("10000000000000000");
    assert_false(scanner_take_hex(&in, &value));
    in = scan("000000000000000000001");
    assert_true(scanner_take_hex(&in, &value));
    assert_int_equal(value, 1);
}

static void test_signed_numbers(void **state)
{
    struct scanner in = scan("-9223372036854775807");
    int64_t value = 0;

    (void)state;
    assert_true(scanner_take_signed(&in, &value));
    assert_int_equal(value, -INT64_MAX);
    in = scan("9223372036854775808");
    assert_false(scanner_take_signed(&in, &value));
    in = scan("-");
    assert_false(scanner_take_signed(&in, &value));
    assert_true(scanner_take_char(&in, '-')); /* not taken by the failure */
    in = scan("+1");
    assert_false(scanner_take_signed(&in, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes_in_order),
        cmocka_unit_test(test_limits_of_numbers),
        cmocka_unit_test(test_signed_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
