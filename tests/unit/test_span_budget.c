#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "profiler/base/clock.h"
#include "profiler/model/span_budget.h"

enum { STACKS = 5, SPANS = 20000 };

static struct span_list lists[2];

static struct span_list *list_at(void *owner, size_t index)
{
    (void)owner;
    return &lists[index];
}

static void fill(struct span_list *list, unsigned seed)
{
    uint64_t at_ns = 1000;

    srand(seed);
    for (int i = 0; i < SPANS; i++) {
        uint64_t length_ns = 1 + (uint64_t)rand() % (2 * NS_PER_MS);

        span_list_add(list, at_ns, at_ns + length_ns, rand() % 2 == 0 ? STATE_ON_CPU : STATE_BLOCKED,
                      (uint32_t)(rand() % STACKS));
        at_ns += length_ns;
    }
}

static void sum(const struct span_list *list, uint64_t totals[STATE_COUNT][STACKS])
{
    for (size_t i = 0; i < list->count; i++)
        totals[list->spans[i].state][list->spans[i].stack] += list->spans[i].duration_ns;
}

static void check_gapless(const struct span_list *list)
{
    for (size_t i = 1; i < list->count; i++)
        assert_int_equal(list->spans[i].start_ns,
                         list->spans[i - 1].start_ns + list->spans[i - 1].duration_ns);
}

static void test_amounts_stay_and_spans_get_fewer(void **state)
{
    struct span_budget budget = {.max_spans = 4000};
    uint64_t before[2][STATE_COUNT][STACKS] = {0};
    uint64_t after[2][STATE_COUNT][STACKS] = {0};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        fill(&lists[i], i + 1);
        sum(&lists[i], before[i]);
    }
    span_budget_keep(&budget, list_at, NULL, 2);
    assert_true(budget.slice_ns > 0);
    for (int i = 0; i < 2; i++) {
        sum(&lists[i], after[i]);
        assert_memory_equal(before[i], after[i], sizeof before[i]);
        check_gapless(&lists[i]);
        assert_int_equal(lists[i].spans[0].start_ns, 1000);
        assert_true(lists[i].count < SPANS / 2);
        span_list_finish(&lists[i]);
    }
}

static void test_within_budget_nothing_changes(void **state)
{
    struct span_budget budget = {.max_spans = 2 * SPANS};

    (void)state;
    fill(&lists[0], 7);
    size_t count = lists[0].count;
    span_budget_keep(&budget, list_at, NULL, 1);
    assert_int_equal(budget.slice_ns, 0);
    assert_int_equal(lists[0].count, count);
    span_list_finish(&lists[0]);
}

static void test_last_seconds_can_still_get_a_stack(void **state)
{
    struct span_list *list = &lists[0];

    (void)state;
    fill(list, 3);
    uint64_t end_ns = list->spans[list->count - 1].start_ns + list->spans[list->count - 1].duration_ns;
    span_list_resolve(list, STATE_ON_CPU, end_ns, 1);
    span_list_add(list, end_ns, end_ns + 500, STATE_ON_CPU, SPAN_NO_STACK);
    span_list_coarsen(list, 50 * NS_PER_MS);
    span_list_resolve(list, STATE_ON_CPU, end_ns + 600, 4);
    assert_int_equal(list->spans[list->count - 1].stack, 4);
    span_list_finish(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amounts_stay_and_spans_get_fewer),
        cmocka_unit_test(test_within_budget_nothing_changes),
        cmocka_unit_test(test_last_seconds_can_still_get_a_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
