#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/model/profile.h"

static void test_equal_frames_are_one(void **state)
{
    struct profile *profile = profile_create();
    uint32_t name = string_table_intern(profile->strings, "main");
    uint32_t module = string_table_intern(profile->strings, "srv");
    uint32_t a = profile_intern_frame(profile, &(struct frame){.name = name, .module = module});
    uint32_t b = profile_intern_frame(profile, &(struct frame){.name = name, .module = 0});

    (void)state;
    assert_int_not_equal(a, b);
    assert_int_equal(profile_intern_frame(profile, &(struct frame){.name = name, .module = module}), a);
    assert_int_equal(profile->frame_count, 2);
    profile_destroy(profile);
}

static void test_adjacent_equal_samples_are_one(void **state)
{
    struct profile *profile = profile_create();
    uint32_t process = profile_add_process(profile, 10, "srv");
    uint32_t thread = profile_add_thread(profile, process, 11, "worker-1", false);
    const struct profile_thread *t;

    (void)state;
    profile_add_sample(profile, thread, &(struct sample){.start_ns = 0, .weight_ns = 10, .stack = 5});
    profile_add_sample(profile, thread, &(struct sample){.start_ns = 10, .weight_ns = 0, .stack = 6});
    profile_add_sample(profile, thread, &(struct sample){.start_ns = 10, .weight_ns = 7, .stack = 5});
    profile_add_sample(profile, thread,
                       &(struct sample){.start_ns = 17, .weight_ns = 3, .stack = 5, .state = STATE_BLOCKED});
    profile_add_sample(profile, thread,
                       &(struct sample){.start_ns = 30, .weight_ns = 3, .stack = 5, .state = STATE_BLOCKED});
    t = &profile->threads[thread];
    assert_int_equal(t->sample_count, 3);
    assert_int_equal(t->samples[0].weight_ns, 17);
    assert_int_equal(t->ledger.time_ns[STATE_ON_CPU], 17);
    assert_int_equal(t->ledger.time_ns[STATE_BLOCKED], 6);
    profile_destroy(profile);
}

static void test_stacks_are_a_prefix_tree(void **state)
{
    struct stack_table *stacks = stack_table_create();
    uint32_t a = stack_table_push(stacks, STACK_EMPTY, 100);
    uint32_t ab = stack_table_push(stacks, a, 200);

    (void)state;
    assert_int_equal(stack_table_push(stacks, a, 200), ab);
    assert_int_not_equal(stack_table_push(stacks, STACK_EMPTY, 200), ab);
    assert_true(ab > a);
    assert_int_equal(stack_table_get(stacks, ab).parent, a);
    assert_int_equal(stack_table_get(stacks, ab).depth, 2);
    assert_int_equal(stack_table_get(stacks, STACK_EMPTY).depth, 0);
    stack_table_destroy(stacks);
}

static void test_names_of_states_and_kinds_read_back(void **state)
{
    (void)state;
    for (int i = 0; i < STATE_COUNT; i++) {
        enum thread_state got;

        assert_true(thread_state_parse(thread_state_name((enum thread_state)i), &got));
        assert_int_equal(got, i);
    }
    for (int i = 0; i < FRAME_KIND_COUNT; i++) {
        enum frame_kind got;

        assert_true(frame_kind_parse(frame_kind_name((enum frame_kind)i), &got));
        assert_int_equal(got, i);
    }
    for (int i = 0; i < WAIT_KIND_COUNT; i++) {
        enum wait_kind got;

        assert_true(wait_kind_parse(wait_kind_name((enum wait_kind)i), &got));
        assert_int_equal(got, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_frames_are_one),
        cmocka_unit_test(test_adjacent_equal_samples_are_one),
        cmocka_unit_test(test_stacks_are_a_prefix_tree),
        cmocka_unit_test(test_names_of_states_and_kinds_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
