#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/base/clock.h"
#include "profiler/model/timeline.h"

enum { THREAD = 3, STACK_A = 11, STACK_B = 12, STACK_C = 13 };

static const uint64_t start_ns = 1000;

static void expect_spans(const struct timeline *timeline, const struct span *expected, size_t count)
{
    size_t got = 0;
    const struct span *spans = timeline_spans(timeline, THREAD, &got);

    for (size_t i = 0; i < got && i < count; i++) {
        assert_int_equal(spans[i].start_ns, expected[i].start_ns);
        assert_int_equal(spans[i].duration_ns, expected[i].duration_ns);
        assert_int_equal(spans[i].state, expected[i].state);
        assert_int_equal(spans[i].stack, expected[i].stack);
    }
    assert_int_equal(got, count);
}

#define EXPECT(timeline, ...)                                                                                \
    expect_spans(timeline, (const struct span[]){__VA_ARGS__},                                               \
                 sizeof((const struct span[]){__VA_ARGS__}) / sizeof(struct span))

static struct timeline *begin(enum thread_state likely, bool born)
{
    struct timeline *timeline = timeline_create(start_ns, true);

    timeline_begin(timeline, THREAD, start_ns, likely, born);
    return timeline;
}

static void test_one_round_of_waiting(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_switch_out(timeline, THREAD, 1100, STATE_BLOCKED);
    timeline_off_cpu_stack(timeline, THREAD, 1101, STACK_A);
    timeline_wakeup(timeline, THREAD, 1500);
    timeline_switch_in(timeline, THREAD, 1600);
    timeline_on_cpu_stack(timeline, THREAD, 1650, STACK_B);
    timeline_finish(timeline, 1700);
    EXPECT(timeline, {1000, 100, STACK_B, STATE_ON_CPU}, {1100, 400, STACK_A, STATE_BLOCKED},
           {1500, 100, STACK_A, STATE_RUNNABLE}, {1600, 100, STACK_B, STATE_ON_CPU});
    timeline_destroy(timeline);
}

static void test_first_event_says_what_was_before(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_wakeup(timeline, THREAD, 1300); /* so it was blocked, whatever it seemed */
    timeline_switch_in(timeline, THREAD, 1400);
    timeline_finish(timeline, 1400);
    EXPECT(timeline, {1000, 300, SPAN_NO_STACK, STATE_BLOCKED}, {1300, 100, SPAN_NO_STACK, STATE_RUNNABLE});
    timeline_destroy(timeline);

    timeline = begin(STATE_BLOCKED, false);
    timeline_switch_in(timeline, THREAD, 1300); /* without a wake-up: it was in the run queue */
    timeline_finish(timeline, 1300);
    EXPECT(timeline, {1000, 300, SPAN_NO_STACK, STATE_RUNNABLE});
    timeline_destroy(timeline);

    timeline = begin(STATE_BLOCKED, false);
    timeline_switch_out(timeline, THREAD, 1300, STATE_RUNNABLE);
    timeline_finish(timeline, 1300);
    EXPECT(timeline, {1000, 300, SPAN_NO_STACK, STATE_ON_CPU});
    timeline_destroy(timeline);
}

static void test_asleep_all_the_time(void **state)
{
    struct timeline *timeline = begin(STATE_BLOCKED, false);

    (void)state;
    timeline_initial_stack(timeline, THREAD, 1050, STACK_C);
    timeline_finish(timeline, 6000);
    EXPECT(timeline, {1000, 5000, STACK_C, STATE_BLOCKED});
    timeline_destroy(timeline);
}

static void test_initial_stack_of_a_later_wait_is_not_taken(void **state)
{
    struct timeline *timeline = begin(STATE_BLOCKED, false);

    (void)state;
    timeline_initial_stack(timeline, THREAD, 1500, STACK_C);
    timeline_wakeup(timeline, THREAD, 1200); /* before the stack was read: it belongs to some other wait */
    timeline_finish(timeline, 1300);
    EXPECT(timeline, {1000, 200, SPAN_NO_STACK, STATE_BLOCKED}, {1200, 100, SPAN_NO_STACK, STATE_RUNNABLE});
    timeline_destroy(timeline);
}

static void test_preempted_is_runnable(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_switch_out(timeline, THREAD, 1100, STATE_RUNNABLE);
    timeline_off_cpu_stack(timeline, THREAD, 1101, STACK_A);
    timeline_wakeup(timeline, THREAD, 1150); /* changes nothing: it does not sleep */
    timeline_switch_in(timeline, THREAD, 1400);
    timeline_finish(timeline, 1400);
    EXPECT(timeline, {1000, 100, SPAN_NO_STACK, STATE_ON_CPU}, {1100, 300, STACK_A, STATE_RUNNABLE});
    timeline_destroy(timeline);
}

static void test_stopped_and_continued(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_switch_out(timeline, THREAD, 1100, STATE_STOPPED);
    timeline_off_cpu_stack(timeline, THREAD, 1101, STACK_A);
    timeline_wakeup(timeline, THREAD, 2100);
    timeline_switch_in(timeline, THREAD, 2200);
    timeline_finish(timeline, 2200);
    EXPECT(timeline, {1000, 100, SPAN_NO_STACK, STATE_ON_CPU}, {1100, 1000, STACK_A, STATE_STOPPED},
           {2100, 100, STACK_A, STATE_RUNNABLE});
    timeline_destroy(timeline);
}

static void test_on_cpu_time_waits_a_second_for_a_sample(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_switch_out(timeline, THREAD, 1100, STATE_RUNNABLE);
    timeline_switch_in(timeline, THREAD, 1100 + NS_PER_S + 50);
    timeline_on_cpu_stack(timeline, THREAD, 1100 + NS_PER_S + 60, STACK_B); /* too late for the first spell */
    timeline_finish(timeline, 1100 + NS_PER_S + 100);
    EXPECT(timeline, {1000, 100, SPAN_NO_STACK, STATE_ON_CPU},
           {1100, NS_PER_S + 50, SPAN_NO_STACK, STATE_RUNNABLE},
           {1100 + NS_PER_S + 50, 50, STACK_B, STATE_ON_CPU});
    timeline_destroy(timeline);
}

static void test_several_samples_share_a_spell(void **state)
{
    struct timeline *timeline = begin(STATE_RUNNABLE, true);

    (void)state;
    timeline_switch_in(timeline, THREAD, 1100);
    timeline_on_cpu_stack(timeline, THREAD, 1200, STACK_A);
    timeline_on_cpu_stack(timeline, THREAD, 1500, STACK_B);
    timeline_switch_out(timeline, THREAD, 1600, STATE_BLOCKED);
    timeline_finish(timeline, 1600);
    EXPECT(timeline, {1000, 100, SPAN_NO_STACK, STATE_RUNNABLE}, {1100, 100, STACK_A, STATE_ON_CPU},
           {1200, 400, STACK_B, STATE_ON_CPU});
    timeline_destroy(timeline);
}

static void test_stack_that_comes_after_the_wakeup(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_switch_out(timeline, THREAD, 1100, STATE_BLOCKED);
    timeline_wakeup(timeline, THREAD, 1102);
    timeline_off_cpu_stack(timeline, THREAD, 1103, STACK_A);
    timeline_switch_in(timeline, THREAD, 1200);
    timeline_finish(timeline, 1200);
    EXPECT(timeline, {1000, 100, SPAN_NO_STACK, STATE_ON_CPU}, {1100, 2, STACK_A, STATE_BLOCKED},
           {1102, 98, STACK_A, STATE_RUNNABLE});
    timeline_destroy(timeline);
}

static void test_doubt_lasts_until_the_next_event(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_switch_out(timeline, THREAD, 1100, STATE_BLOCKED);
    timeline_off_cpu_stack(timeline, THREAD, 1101, STACK_A);
    timeline_doubt(timeline, THREAD, 1300);
    timeline_switch_in(timeline, THREAD, 4000);
    timeline_switch_out(timeline, THREAD, 4100, STATE_BLOCKED);
    timeline_finish(timeline, 4200);
    EXPECT(timeline, {1000, 100, SPAN_NO_STACK, STATE_ON_CPU}, {1100, 200, STACK_A, STATE_BLOCKED},
           {1300, 2700, SPAN_NO_STACK, STATE_UNKNOWN}, {4000, 100, SPAN_NO_STACK, STATE_ON_CPU},
           {4100, 100, SPAN_NO_STACK, STATE_BLOCKED});
    timeline_destroy(timeline);
}

static void test_doubt_that_is_told_late_takes_back_what_was_said(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_on_cpu_stack(timeline, THREAD, 1200, STACK_A);
    timeline_on_cpu_stack(timeline, THREAD, 2000, STACK_B);
    timeline_on_cpu_stack(timeline, THREAD, 3000, STACK_A);
    timeline_doubt(timeline, THREAD,
                   1500); /* from there on it may have been off the CPU any number of times */
    timeline_switch_out(timeline, THREAD, 3500, STATE_BLOCKED);
    timeline_finish(timeline, 3600);
    EXPECT(timeline, {1000, 200, STACK_A, STATE_ON_CPU}, {1200, 300, STACK_B, STATE_ON_CPU},
           {1500, 2000, SPAN_NO_STACK, STATE_UNKNOWN}, {3500, 100, SPAN_NO_STACK, STATE_BLOCKED});
    timeline_destroy(timeline);
}

static void test_events_after_the_end_do_not_count(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_switch_out(timeline, THREAD, 1100, STATE_BLOCKED);
    timeline_wakeup(timeline, THREAD, 1250);
    timeline_switch_in(timeline, THREAD, 1300);
    timeline_finish(timeline, 1200);
    EXPECT(timeline, {1000, 100, SPAN_NO_STACK, STATE_ON_CPU}, {1100, 100, SPAN_NO_STACK, STATE_BLOCKED});
    timeline_destroy(timeline);
}

static void test_missed_event_makes_no_time_up(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_switch_out(timeline, THREAD, 1100, STATE_BLOCKED);
    timeline_switch_out(timeline, THREAD, 1500, STATE_BLOCKED); /* it must have run in between */
    timeline_finish(timeline, 1600);
    EXPECT(timeline, {1000, 100, SPAN_NO_STACK, STATE_ON_CPU}, {1100, 400, SPAN_NO_STACK, STATE_UNKNOWN},
           {1500, 100, SPAN_NO_STACK, STATE_BLOCKED});
    timeline_destroy(timeline);
}

static void test_without_wakeups_blocked_lasts_until_switched_in(void **state)
{
    struct timeline *timeline = timeline_create(start_ns, false);

    (void)state;
    timeline_begin(timeline, THREAD, start_ns, STATE_BLOCKED, false);
    timeline_switch_in(timeline, THREAD, 1300);
    timeline_switch_out(timeline, THREAD, 1400, STATE_BLOCKED);
    timeline_switch_in(timeline, THREAD, 1500);
    timeline_finish(timeline, 1600);
    EXPECT(timeline, {1000, 300, SPAN_NO_STACK, STATE_BLOCKED}, {1300, 100, SPAN_NO_STACK, STATE_ON_CPU},
           {1400, 100, SPAN_NO_STACK, STATE_BLOCKED}, {1500, 100, SPAN_NO_STACK, STATE_ON_CPU});
    timeline_destroy(timeline);
}

static void test_late_event_never_turns_time_back(void **state)
{
    struct timeline *timeline = begin(STATE_ON_CPU, false);

    (void)state;
    timeline_switch_out(timeline, THREAD, 1100, STATE_BLOCKED);
    timeline_wakeup(timeline, THREAD, 1090);
    timeline_switch_in(timeline, THREAD, 1200);
    timeline_finish(timeline, 1250);
    EXPECT(timeline, {1000, 100, SPAN_NO_STACK, STATE_ON_CPU}, {1100, 100, SPAN_NO_STACK, STATE_RUNNABLE},
           {1200, 50, SPAN_NO_STACK, STATE_ON_CPU});
    timeline_destroy(timeline);
}

static void test_nothing_after_the_end(void **state)
{
    struct timeline *timeline = begin(STATE_RUNNABLE, true);

    (void)state;
    timeline_switch_in(timeline, THREAD, 1100);
    timeline_end(timeline, THREAD, 1200);
    timeline_switch_out(timeline, THREAD, 1210, STATE_BLOCKED);
    timeline_on_cpu_stack(timeline, THREAD, 1220, STACK_A);
    timeline_finish(timeline, 9000);
    EXPECT(timeline, {1000, 100, SPAN_NO_STACK, STATE_RUNNABLE}, {1100, 100, SPAN_NO_STACK, STATE_ON_CPU});
    timeline_destroy(timeline);
}

static void test_events_before_the_window_are_followed_but_clipped(void **state)
{
    struct timeline *timeline = begin(STATE_BLOCKED, false);

    (void)state;
    timeline_switch_in(timeline, THREAD, 900);
    timeline_switch_out(timeline, THREAD, 950, STATE_BLOCKED);
    timeline_off_cpu_stack(timeline, THREAD, 951, STACK_A);
    timeline_finish(timeline, 1200);
    EXPECT(timeline, {1000, 200, STACK_A, STATE_BLOCKED});
    timeline_destroy(timeline);
}

static void test_unknown_thread_is_ignored(void **state)
{
    struct timeline *timeline = timeline_create(start_ns, true);
    size_t count = 1;

    (void)state;
    timeline_switch_in(timeline, THREAD, 1100);
    timeline_wakeup(timeline, 77, 1100);
    timeline_finish(timeline, 1200);
    timeline_spans(timeline, THREAD, &count);
    assert_int_equal(count, 0);
    assert_int_equal(timeline_switches_in(timeline, THREAD), 0);
    timeline_destroy(timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_round_of_waiting),
        cmocka_unit_test(test_first_event_says_what_was_before),
        cmocka_unit_test(test_asleep_all_the_time),
        cmocka_unit_test(test_initial_stack_of_a_later_wait_is_not_taken),
        cmocka_unit_test(test_preempted_is_runnable),
        cmocka_unit_test(test_stopped_and_continued),
        cmocka_unit_test(test_on_cpu_time_waits_a_second_for_a_sample),
        cmocka_unit_test(test_several_samples_share_a_spell),
        cmocka_unit_test(test_stack_that_comes_after_the_wakeup),
        cmocka_unit_test(test_doubt_lasts_until_the_next_event),
        cmocka_unit_test(test_doubt_that_is_told_late_takes_back_what_was_said),
        cmocka_unit_test(test_events_after_the_end_do_not_count),
        cmocka_unit_test(test_missed_event_makes_no_time_up),
        cmocka_unit_test(test_without_wakeups_blocked_lasts_until_switched_in),
        cmocka_unit_test(test_late_event_never_turns_time_back),
        cmocka_unit_test(test_nothing_after_the_end),
        cmocka_unit_test(test_events_before_the_window_are_followed_but_clipped),
        cmocka_unit_test(test_unknown_thread_is_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
