#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "exporters/human.h"
#include "exporters/svg_label.h"
#include "profiler/base/cleanup.h"

#define DOTS "\xe2\x80\xa6"

static void expect(const char *name, size_t columns, const char *expected)
{
    AUTO_FREE char *label = svg_label_fit(name, columns);

    if (expected == NULL) {
        assert_null(label);
        return;
    }
    assert_string_equal(label, expected);
    assert_true(svg_label_columns(label) <= columns);
}

static void test_fits(void **state)
{
    (void)state;
    expect("main", 4, "main");
    expect("main", 3, "ma" DOTS);
    expect("main", 2, NULL);
    expect("main", 0, NULL);
}

static void test_cxx_names(void **state)
{
    (void)state;
    const char *push_back = "std::vector<std::pair<int, long>>::push_back(std::pair<int, long> const&) const";

    expect(push_back, 200, push_back);
    expect(push_back, 30, "std::vector<" DOTS ">::push_back(" DOTS ")");
    expect(push_back, 27, DOTS "::vector<" DOTS ">::push_back(" DOTS ")");
    expect(push_back, 24, DOTS "::push_back(" DOTS ")");
    expect(push_back, 8, "push_ba" DOTS);
    expect("<T as core::fmt::Display>::fmt", 12, "<" DOTS ">::fmt");
    expect("run()", 4, "run" DOTS);
    expect("a::operator<(b, c)", 10, "operator<" DOTS);
    expect("broken<name", 8, "broken<" DOTS);
    expect("broken>name", 8, "broken>" DOTS);
}

static void test_paths(void **state)
{
    (void)state;
    expect("github.com/acme/srv/handler.ServeHTTP", 22, DOTS "/handler.ServeHTTP");
    expect("github.com/acme/srv/handler.ServeHTTP", 10, "handler.S" DOTS);
}

static void test_waits(void **state)
{
    (void)state;
    expect("[wait: tcp 10.0.0.5:5432 postgresql]", 36, "[wait: tcp 10.0.0.5:5432 postgresql]");
    expect("[wait: tcp 10.0.0.5:5432 postgresql]", 30, "tcp 10.0.0.5:5432 postgresql");
    expect("[wait: tcp 10.0.0.5:5432 postgresql]", 12, "tcp 10.0.0." DOTS);
    expect("[runnable]", 6, "[runn" DOTS);
}

static void test_wide_characters(void **state)
{
    (void)state;
    const char *name = "\xe6\x95\xb0\xe6\x8d\xae\xe5\xba\x93"; /* three of two columns each */

    expect(name, 6, name);
    expect(name, 5, "\xe6\x95\xb0\xe6\x8d\xae" DOTS);
    expect(name, 4, "\xe6\x95\xb0" DOTS);
}

static void test_numbers_for_people(void **state)
{
    (void)state;
    assert_string_equal(human_time_us(0).text, "0 \xc2\xb5s");
    assert_string_equal(human_time_us(999).text, "999 \xc2\xb5s");
    assert_string_equal(human_time_us(4049).text, "4.05 ms");
    assert_string_equal(human_time_us(63210000).text, "63.2 s");
    assert_string_equal(human_time_us(99998).text, "100 ms");
    assert_string_equal(human_time_us(9996).text, "10.0 ms");
    assert_string_equal(human_time_us(UINT64_C(2041000000)).text, "2,041 s");
    assert_string_equal(human_percent(621, 1000).text, "62.1 %");
    assert_string_equal(human_percent(1, 2000).text, "0.05 %");
    assert_string_equal(human_percent(1, 100000).text, "< 0.01 %");
    assert_string_equal(human_percent(0, 5).text, "0 %");
    assert_string_equal(human_percent(5, 0).text, "0 %");
    assert_string_equal(human_percent(UINT64_C(1) << 60, UINT64_C(1) << 60).text, "100.0 %");
    assert_string_equal(human_count(14212).text, "14,212");
    assert_string_equal(human_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
    assert_string_equal(human_ratio(793, 100).text, "7.93");
    assert_string_equal(human_ratio(1, 1000).text, "< 0.01");
    assert_string_equal(human_utc(INT64_C(1767225600123456789)).text, "2026-01-01 00:00:00 UTC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_cxx_names),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_wide_characters),
        cmocka_unit_test(test_numbers_for_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
