#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/model/histogram.h"

static void test_nothing(void **state)
{
    const struct histogram empty = {0};

    (void)state;
    assert_int_equal(histogram_mean_ns(&empty), 0);
    assert_int_equal(histogram_percentile_ns(&empty, 0.99), 0);
}

static void test_percentile_lies_in_its_bin(void **state)
{
    /* 98 waits of about 1 ms, 2 of about 1 s. */
    struct histogram histogram = {.count = 100, .sum_ns = 98 * 1100000ull + 2 * 1100000000ull};
    uint64_t p50_ns;
    uint64_t p99_ns;

    (void)state;
    histogram.bins[20] = 98;
    histogram.bins[30] = 2;
    p50_ns = histogram_percentile_ns(&histogram, 0.5);
    p99_ns = histogram_percentile_ns(&histogram, 0.99);
    assert_in_range(p50_ns, 1u << 20, 1u << 21);
    assert_in_range(p99_ns, 1u << 30, 1u << 31);
    assert_int_equal(histogram_mean_ns(&histogram), 23078000);
}

static void test_adding(void **state)
{
    struct histogram a = {.count = 1, .sum_ns = 5};
    struct histogram b = {.count = 2, .sum_ns = 7};

    (void)state;
    a.bins[2] = 1;
    b.bins[1] = 1;
    b.bins[2] = 1;
    histogram_add(&a, &b);
    assert_int_equal(a.count, 3);
    assert_int_equal(a.sum_ns, 12);
    assert_int_equal(a.bins[2], 2);
    assert_int_equal(a.bins[1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_percentile_lies_in_its_bin),
        cmocka_unit_test(test_adding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
