#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/model/wait_length.h"

enum { US = 1000, MS = 1000000 };

static void test_mean_is_blocked_time_over_waits(void **state)
{
    const struct wait_length_point before = {
        .time_ns = 5 * MS, .on_cpu_ns = 7 * MS, .runnable_ns = 1 * MS, .voluntary_switches = 100};
    struct wait_length_point now = {
        .time_ns = 15 * MS, .on_cpu_ns = 8 * MS, .runnable_ns = 2 * MS, .voluntary_switches = 140};

    (void)state;
    assert_int_equal(wait_length_mean_ns(&before, &now), 200 * US);
    now.voluntary_switches = 101;
    assert_int_equal(wait_length_mean_ns(&before, &now), 8 * MS);
}

static void test_one_wait_all_the_time(void **state)
{
    const struct wait_length_point before = {.time_ns = 5 * MS, .voluntary_switches = 3};
    const struct wait_length_point now = {.time_ns = 905 * MS, .voluntary_switches = 3};

    (void)state;
    assert_int_equal(wait_length_mean_ns(&before, &now), 900 * MS);
}

/* The counters are not read at one moment: a little more may have run than time has passed. */
static void test_never_negative(void **state)
{
    const struct wait_length_point before = {.time_ns = 5 * MS, .on_cpu_ns = 7 * MS};
    const struct wait_length_point now = {.time_ns = 6 * MS, .on_cpu_ns = 9 * MS};

    (void)state;
    assert_int_equal(wait_length_mean_ns(&before, &now), 0);
    assert_int_equal(wait_length_mean_ns(&now, &before), 0);
}

static void test_classes(void **state)
{
    (void)state;
    assert_int_equal(wait_length_class(0), 0);
    for (size_t class = 0; class + 1 < WAIT_LENGTH_CLASSES; class ++) {
        uint64_t below_ns = wait_length_below_ns(class);

        assert_int_equal(wait_length_class(below_ns - 1), class);
        assert_int_equal(wait_length_class(below_ns), class + 1);
    }
    assert_int_equal(wait_length_class(UINT64_MAX), WAIT_LENGTH_CLASSES - 1);
    assert_true(wait_length_below_ns(WAIT_LENGTH_CLASSES - 1) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_is_blocked_time_over_waits),
        cmocka_unit_test(test_one_wait_all_the_time),
        cmocka_unit_test(test_never_negative),
        cmocka_unit_test(test_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
