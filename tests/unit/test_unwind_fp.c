#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profiler/unwind/unwind_chain.h"
#include "profiler/unwind/unwinder.h"

enum { CODE = 0x1000, CODE_END = 0x9000 };

static struct address_space space;
static struct unwound_stack stack;

static int set_up(void **state)
{
    struct mapping mapping = {.start = CODE, .end = CODE_END};

    (void)state;
    address_space_insert(&space, &mapping);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    address_space_finish(&space);
    return 0;
}

static void walk(const struct raw_sample *sample)
{
    struct unwind_request request = {.sample = sample, .space = &space};
    struct unwinder *unwinder = unwind_fp.create(NULL);

    unwind_fp.walk(unwinder, &request, &stack);
    unwind_fp.destroy(unwinder);
}

static void test_backends(void **state)
{
    (void)state;
    assert_ptr_equal(unwinder_find("fp"), &unwind_fp);
    assert_ptr_equal(unwinder_find("dwarf"), &unwind_libunwind);
    assert_null(unwinder_find("auto"));
    assert_int_equal(unwind_fp.needs, UNWIND_NEEDS_USER_CHAIN);
    unwind_fp.destroy(NULL);
    unwind_libunwind.destroy(NULL);
}

static void test_callers_are_looked_up_before_their_return(void **state)
{
    static const uint64_t chain[] = {0x1000, 0x2000, 0x3000};
    struct raw_sample sample = {.user_chain = chain, .user_chain_count = 3};

    (void)state;
    walk(&sample);
    assert_int_equal(stack.end, UNWIND_REACHED_START);
    assert_int_equal(stack.count, 3);
    assert_int_equal(stack.addresses[0], 0x1000);
    assert_int_equal(stack.addresses[1], 0x1fff);
    assert_int_equal(stack.addresses[2], 0x2fff);
}

static void test_no_chain(void **state)
{
    struct raw_sample sample = {0};

    (void)state;
    walk(&sample);
    assert_int_equal(stack.end, UNWIND_NO_REGISTERS);
    assert_int_equal(stack.count, 0);
}

static void test_stops_outside_of_code(void **state)
{
    static const uint64_t chain[] = {0, 0x2000, 0xffff0000, 0x3000};
    struct raw_sample sample = {.user_chain = chain, .user_chain_count = 4};

    (void)state;
    walk(&sample); /* the leaf may be anywhere: a call through a bad pointer */
    assert_int_equal(stack.end, UNWIND_BAD_STACK);
    assert_int_equal(stack.count, 2);
}

static void test_the_kernels_limit_is_not_the_start(void **state)
{
    static uint64_t chain[UNWIND_MAX_FRAMES + 10];
    static const uint64_t kernel_chain[20];
    struct raw_sample sample = {.user_chain = chain, .user_chain_count = 107, .kernel_chain = kernel_chain};

    (void)state;
    for (size_t i = 0; i < sizeof chain / sizeof *chain; i++)
        chain[i] = CODE + 1 + i;
    walk(&sample);
    assert_int_equal(stack.end, UNWIND_REACHED_START);
    sample.kernel_chain_count = 20;
    walk(&sample);
    assert_int_equal(stack.end, UNWIND_TOO_DEEP);
    assert_int_equal(stack.count, 107);
    sample.user_chain_count = sizeof chain / sizeof *chain;
    walk(&sample);
    assert_int_equal(stack.end, UNWIND_TOO_DEEP);
    assert_int_equal(stack.count, UNWIND_MAX_FRAMES);
}

static size_t next_of(const uint64_t *chain, size_t chain_count, const uint64_t *frames, size_t count)
{
    struct raw_sample sample = {.user_chain = chain, .user_chain_count = chain_count};

    memcpy(stack.addresses, frames, count * sizeof *frames);
    stack.count = count;
    return unwind_chain_find_next(&sample, &stack);
}

static void test_where_the_chain_goes_on(void **state)
{
    /* leaf, (one that has no frame,) a recursion of three, the rest */
    static const uint64_t chain[] = {10, 30, 30, 30, 40, 50};
    static const uint64_t unwound[] = {10, 19, 29, 29, 29, 39};

    (void)state;
    assert_int_equal(next_of(chain, 6, unwound, 1), 1);
    assert_int_equal(next_of(chain, 6, unwound, 2), 0); /* 20 is not in the chain */
    assert_int_equal(next_of(chain, 6, unwound, 3), 2);
    assert_int_equal(next_of(chain, 6, unwound, 4), 3);
    assert_int_equal(next_of(chain, 6, unwound, 5), 4);
    assert_int_equal(next_of(chain, 6, unwound, 6), 5);
    assert_int_equal(next_of(chain, 0, unwound, 6), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backends),
        cmocka_unit_test(test_callers_are_looked_up_before_their_return),
        cmocka_unit_test(test_no_chain),
        cmocka_unit_test(test_stops_outside_of_code),
        cmocka_unit_test(test_the_kernels_limit_is_not_the_start),
        cmocka_unit_test(test_where_the_chain_goes_on),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
