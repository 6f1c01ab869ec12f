#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "profiler/model/span_list.h"

enum { PLAIN = 1, OTHER = 2, MARK = 100 };

static uint32_t marked(void *context, uint32_t stack)
{
    (void)context;
    return stack == SPAN_NO_STACK ? MARK : stack >= MARK ? stack : stack + MARK;
}

static struct span_change change(uint64_t since_ns, uint64_t until_ns, uint64_t limit_ns)
{
    return (struct span_change){.since_ns = since_ns,
                                .until_ns = until_ns,
                                .limit_ns = limit_ns,
                                .state = STATE_RUNNABLE,
                                .stack = marked};
}

static void expect_span(const struct span_list *list, size_t index, uint64_t start_ns, uint64_t end_ns,
                        uint32_t stack)
{
    assert_true(index < list->count);
    assert_int_equal(list->spans[index].start_ns, start_ns);
    assert_int_equal(list->spans[index].start_ns + list->spans[index].duration_ns, end_ns);
    assert_int_equal(list->spans[index].stack, stack);
}

static void the_latest_is_changed_up_to_the_limit(void **state)
{
    struct span_list list = {0};
    const struct span_change forty = change(0, 1000, 40);

    (void)state;
    span_list_add(&list, 100, 200, STATE_RUNNABLE, PLAIN);
    span_list_add(&list, 200, 210, STATE_ON_CPU, OTHER);
    span_list_add(&list, 210, 230, STATE_RUNNABLE, SPAN_NO_STACK);
    span_list_change(&list, &forty);
    assert_int_equal(list.count, 4);
    expect_span(&list, 0, 100, 180, PLAIN);
    expect_span(&list, 1, 180, 200, PLAIN + MARK);
    expect_span(&list, 2, 200, 210, OTHER);
    expect_span(&list, 3, 210, 230, MARK);
    span_list_finish(&list);
}

static void time_outside_the_range_stays(void **state)
{
    struct span_list list = {0};
    const struct span_change inner = change(130, 170, 1000);
    const struct span_change before = change(0, 100, 1000);
    const struct span_change after = change(200, 300, 1000);

    (void)state;
    span_list_add(&list, 100, 200, STATE_RUNNABLE, PLAIN);
    span_list_change(&list, &before);
    span_list_change(&list, &after);
    assert_int_equal(list.count, 1);
    span_list_change(&list, &inner);
    assert_int_equal(list.count, 3);
    expect_span(&list, 0, 100, 130, PLAIN);
    expect_span(&list, 1, 130, 170, PLAIN + MARK);
    expect_span(&list, 2, 170, 200, PLAIN);
    span_list_finish(&list);
}

static void what_is_changed_already_counts(void **state)
{
    struct span_list list = {0};
    const struct span_change thirty = change(0, 1000, 30);

    (void)state;
    span_list_add(&list, 100, 200, STATE_RUNNABLE, PLAIN);
    span_list_change(&list, &thirty);
    span_list_change(&list, &thirty);
    assert_int_equal(list.count, 2);
    expect_span(&list, 1, 170, 200, PLAIN + MARK);
    span_list_finish(&list);
}

/* Spans that were settled stay so, though others are put in before them. */
static void resolving_goes_on_where_it_was(void **state)
{
    struct span_list list = {0};
    const struct span_change half = change(100, 150, 1000);

    (void)state;
    span_list_add(&list, 100, 200, STATE_RUNNABLE, PLAIN);
    span_list_add(&list, 200, 300, STATE_ON_CPU, SPAN_NO_STACK);
    span_list_resolve(&list, STATE_ON_CPU, 5000000000, OTHER); /* too late for it */
    span_list_change(&list, &half);
    span_list_add(&list, 300, 310, STATE_BLOCKED, PLAIN);
    span_list_add(&list, 310, 400, STATE_ON_CPU, SPAN_NO_STACK);
    span_list_resolve(&list, STATE_ON_CPU, 400, OTHER);
    assert_int_equal(list.count, 5);
    expect_span(&list, 4, 310, 400, OTHER);
    expect_span(&list, 2, 200, 300, SPAN_NO_STACK);
    span_list_finish(&list);
}

static void random_changes_keep_all_time(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct span_list list = {0};
        uint64_t at_ns = 0;
        uint64_t runnable_ns[2] = {0};
        uint64_t marked_ns = 0;

        srand(seed);
        for (int i = 0; i < 60; i++) {
            uint64_t length_ns = 1 + (uint64_t)rand() % 50;
            enum thread_state kind = rand() % 2 == 0 ? STATE_RUNNABLE : STATE_BLOCKED;

            span_list_add(&list, at_ns, at_ns + length_ns, kind, (uint32_t)(rand() % 3));
            runnable_ns[0] += kind == STATE_RUNNABLE ? length_ns : 0;
            at_ns += length_ns;
        }
        for (int i = 0; i < 5; i++) {
            uint64_t since_ns = (uint64_t)rand() % at_ns;
            const struct span_change random =
                change(since_ns, since_ns + (uint64_t)rand() % 300, (uint64_t)rand() % 200);

            span_list_change(&list, &random);
        }
        for (size_t i = 0; i < list.count; i++) {
            assert_true(list.spans[i].duration_ns > 0);
            assert_int_equal(list.spans[i].start_ns,
                             i > 0 ? list.spans[i - 1].start_ns + list.spans[i - 1].duration_ns : 0);
            runnable_ns[1] += list.spans[i].state == STATE_RUNNABLE ? list.spans[i].duration_ns : 0;
            assert_true(list.spans[i].stack < MARK || list.spans[i].state == STATE_RUNNABLE);
            marked_ns += list.spans[i].stack >= MARK ? list.spans[i].duration_ns : 0;
        }
        assert_int_equal(runnable_ns[0], runnable_ns[1]);
        assert_true(marked_ns <= 5 * 200);
        span_list_finish(&list);
    }
}

static void a_wait_that_is_not_seen_again_is_like_the_one_before(void **state)
{
    struct span_list list = {0};
    const uint64_t s = 1000000000;

    (void)state;
    span_list_add(&list, 0, s, STATE_BLOCKED, SPAN_NO_STACK); /* there is none before */
    span_list_add(&list, s, 2 * s, STATE_BLOCKED, PLAIN);
    span_list_add(&list, 2 * s, 3 * s, STATE_ON_CPU, SPAN_NO_STACK);
    span_list_add(&list, 3 * s, 4 * s, STATE_BLOCKED, SPAN_NO_STACK);
    span_list_add(&list, 4 * s, 5 * s + 1, STATE_ON_CPU, OTHER);
    span_list_add(&list, 5 * s + 1, 6 * s, STATE_BLOCKED, SPAN_NO_STACK); /* too late after it */
    span_list_resolve_back(&list, STATE_BLOCKED);
    expect_span(&list, 0, 0, s, SPAN_NO_STACK);
    expect_span(&list, 2, 2 * s, 3 * s, SPAN_NO_STACK);
    expect_span(&list, 3, 3 * s, 4 * s, PLAIN);
    expect_span(&list, 5, 5 * s + 1, 6 * s, SPAN_NO_STACK);
    span_list_finish(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latest_is_changed_up_to_the_limit),
        cmocka_unit_test(time_outside_the_range_stays),
        cmocka_unit_test(what_is_changed_already_counts),
        cmocka_unit_test(resolving_goes_on_where_it_was),
        cmocka_unit_test(random_changes_keep_all_time),
        cmocka_unit_test(a_wait_that_is_not_seen_again_is_like_the_one_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
