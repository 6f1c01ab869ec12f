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

/* Frames of three words in a copied stack: link, return address, something. */
enum { STACK = 0x20000, FRAME_WORDS = 3, FRAMES = 8, WORDS = FRAMES * FRAME_WORDS };

static uint64_t words[WORDS];

/* The last link is rbp of who called the first function: 0 as the psABI wants it, or whatever libc has there. */
static struct raw_sample linked_sample(uint64_t last_link)
{
    struct raw_sample sample = {
        .stack = (const uint8_t *)words, .stack_size_bytes = sizeof words, .stack_address = STACK};

    for (uint64_t i = 0; i < FRAMES; i++) {
        uint64_t *frame = words + i * FRAME_WORDS;

        frame[0] = i + 1 < FRAMES ? STACK + (i + 1) * FRAME_WORDS * 8 : last_link;
        frame[1] = CODE + 0x100 * (i + 1);
        frame[2] = 0x41;
    }
    registers_set(&sample.registers, REGISTER_IP, CODE);
    registers_set(&sample.registers, REGISTER_RSP, STACK);
    registers_set(&sample.registers, REGISTER_RBP, STACK);
    return sample;
}

static void check_linked(enum unwind_end end, size_t frames)
{
    assert_int_equal(stack.end, end);
    assert_int_equal(stack.count, frames);
    assert_int_equal(stack.addresses[0], CODE);
    for (size_t i = 1; i < frames; i++)
        assert_int_equal(stack.addresses[i], CODE + 0x100 * i - 1);
}

/* Of a thread that does not run the kernel walks no chain. */
static void test_the_copy_is_walked_where_there_is_no_chain(void **state)
{
    static const uint64_t last_links[] = {1, STACK + 8 * FRAME_WORDS, 0x41};
    struct raw_sample sample;

    (void)state;
    for (size_t i = 0; i < sizeof last_links / sizeof last_links[0]; i++) {
        sample = linked_sample(last_links[i]);
        walk(&sample);
        check_linked(UNWIND_REACHED_START, FRAMES + 1);
    }
}

static void test_links_beyond_the_copy(void **state)
{
    struct raw_sample sample = linked_sample(1);

    (void)state;
    sample.stack_size_bytes = (FRAME_WORDS + 1) * 8; /* the second frame's return address is cut off */
    walk(&sample);
    check_linked(UNWIND_COPY_ENDED, 2);
    sample.stack_size_bytes += 8;
    walk(&sample);
    check_linked(UNWIND_COPY_ENDED, 3);
}

static int read_words(void *context, uint64_t address, void *bytes, size_t size_bytes)
{
    uint8_t *to = bytes;

    (void)context;
    if (address + size_bytes <= STACK || address >= STACK + sizeof words)
        return -1;
    for (uint64_t at = address; at < address + size_bytes; at++)
        to[at - address] =
            at >= STACK && at < STACK + sizeof words ? ((const uint8_t *)words)[at - STACK] : 0;
    return 0;
}

static void test_more_memory_than_the_copy(void **state)
{
    struct raw_sample sample = linked_sample(1);
    const struct unwind_request request = {.sample = &sample, .space = &space, .read_memory = read_words};
    struct unwinder *unwinder = unwind_fp.create(NULL);

    (void)state;
    sample.stack_size_bytes = 8;
    unwind_fp.walk(unwinder, &request, &stack);
    check_linked(UNWIND_REACHED_START, FRAMES + 1);
    unwind_fp.destroy(unwinder);
}

/* As /proc tells them. */
static void test_no_frame_pointer(void **state)
{
    struct raw_sample sample = linked_sample(1);

    (void)state;
    sample.registers.known &= ~(UINT32_C(1) << REGISTER_RBP);
    walk(&sample);
    check_linked(UNWIND_NO_RULE, 1);
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
        cmocka_unit_test(test_the_copy_is_walked_where_there_is_no_chain),
        cmocka_unit_test(test_links_beyond_the_copy),
        cmocka_unit_test(test_more_memory_than_the_copy),
        cmocka_unit_test(test_no_frame_pointer),
        cmocka_unit_test(test_where_the_chain_goes_on),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
