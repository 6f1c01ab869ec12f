#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "profiler/unwind/stack_rest.h"

enum {
    PAGE = 4096,
    KIB = 1024,
    SP = 0x10000 + 0x128,
    COPY = 16 * KIB,
    BEGIN = 0x14000, /* the page that the copy ends in */
    END = 0x10000 + 1024 * KIB,
    MAX_FETCHES = 64,
};

/* A stack whose every word is its own address, and what was fetched of it. */
struct target {
    uint64_t words[1024 * KIB / 8];
    uint64_t hole; /* nothing can be had from there on; 0 = no hole */
    uint64_t addresses[MAX_FETCHES];
    size_t sizes[MAX_FETCHES];
    size_t count;
};

static struct target target;
static const struct raw_sample sample = {.stack_address = SP, .stack_size_bytes = COPY};

static ssize_t fetch(void *context, uint64_t address, size_t size_bytes, const uint8_t **ret_bytes)
{
    struct target *of = context;

    assert_in_range(of->count, 0, MAX_FETCHES - 1);
    of->addresses[of->count] = address;
    of->sizes[of->count++] = size_bytes;
    if (of->hole != 0 && address >= of->hole)
        return -EFAULT;
    if (of->hole != 0 && size_bytes > of->hole - address)
        size_bytes = of->hole - address;
    *ret_bytes = (const uint8_t *)of->words + (address - 0x10000);
    return (ssize_t)size_bytes;
}

static struct stack_rest begin(void)
{
    struct stack_rest rest = {.fetch = fetch, .context = &target, .end = END};

    memset(&target, 0, sizeof target);
    for (size_t i = 0; i < sizeof target.words / sizeof target.words[0]; i++)
        target.words[i] = 0x10000 + i * 8;
    stack_rest_begin(&rest, &sample);
    return rest;
}

static int read_word(struct stack_rest *rest, uint64_t address)
{
    uint64_t word = 0;
    int r = stack_rest_read(rest, address, &word, sizeof word);

    if (r == 0)
        assert_int_equal(word, address);
    return r;
}

static void test_nothing_is_fetched_unless_it_is_asked_for(void **state)
{
    struct stack_rest rest = begin();
    uint8_t page[PAGE];

    (void)state;
    assert_int_equal(target.count, 0);
    /* Below the copy's end, at and above the mapping's, across it, anywhere else. */
    assert_int_equal(read_word(&rest, SP), -EFAULT);
    assert_int_equal(read_word(&rest, BEGIN - 8), -EFAULT);
    assert_int_equal(read_word(&rest, END), -EFAULT);
    assert_int_equal(stack_rest_read(&rest, END - 8, page, 16), -EFAULT);
    assert_int_equal(read_word(&rest, UINT64_MAX - 7), -EFAULT);
    assert_int_equal(read_word(&rest, 0), -EFAULT);
    assert_int_equal(target.count, 0);
    assert_int_equal(rest.fetched_bytes, 0);
}

static void test_windows_double_where_a_walk_goes_on(void **state)
{
    static const size_t sizes[] = {16 * KIB, 32 * KIB, 64 * KIB, 64 * KIB, 64 * KIB, 16 * KIB};
    struct stack_rest rest = begin();
    uint64_t at = BEGIN;
    uint8_t page[PAGE];

    (void)state;
    while (stack_rest_read(&rest, at, page, sizeof page) == 0) {
        assert_memory_equal(page, (const uint8_t *)target.words + (at - 0x10000), sizeof page);
        at += PAGE;
    }
    assert_int_equal(at, BEGIN + STACK_REST_MAX_BYTES);
    assert_int_equal(rest.fetched_bytes, STACK_REST_MAX_BYTES);
    assert_int_equal(target.count, sizeof sizes / sizeof sizes[0]);
    assert_memory_equal(target.sizes, sizes, sizeof sizes);
    for (size_t i = 1; i < target.count; i++)
        assert_int_equal(target.addresses[i], target.addresses[i - 1] + target.sizes[i - 1]);
}

/* Frames with large buffers: what lies between is not read. */
static void test_large_frames_are_skipped(void **state)
{
    struct stack_rest rest = begin();

    (void)state;
    for (uint64_t at = BEGIN + 0x7f8; at < BEGIN + 600 * KIB; at += 100 * KIB)
        assert_int_equal(read_word(&rest, at), 0);
    assert_int_equal(target.count, 6);
    assert_int_equal(rest.fetched_bytes, 6 * STACK_REST_FIRST_BYTES);
    for (size_t i = 0; i < target.count; i++)
        assert_int_equal(target.addresses[i] % PAGE, 0);
}

static void test_a_window_is_read_many_times(void **state)
{
    struct stack_rest rest = begin();

    (void)state;
    for (uint64_t at = BEGIN + STACK_REST_FIRST_BYTES; at > BEGIN; at -= 8)
        assert_int_equal(read_word(&rest, at - 8), 0);
    assert_in_range(target.count, 1, 4);
    assert_in_range(rest.fetched_bytes, STACK_REST_FIRST_BYTES, 16 * STACK_REST_FIRST_BYTES);
}

static void test_the_mapping_is_never_left(void **state)
{
    struct stack_rest rest = begin();

    (void)state;
    assert_int_equal(read_word(&rest, END - 8), 0);
    assert_int_equal(target.count, 1);
    assert_int_equal(target.addresses[0] + target.sizes[0], END);
    rest.end = BEGIN; /* the copy has all of it */
    stack_rest_begin(&rest, &sample);
    assert_int_equal(read_word(&rest, BEGIN), -EFAULT);
    assert_int_equal(target.count, 1);
}

/* One that hung must not be asked a second time. */
static void test_a_failure_is_the_last_fetch(void **state)
{
    struct stack_rest rest = begin();

    (void)state;
    target.hole = BEGIN + 2 * PAGE;
    assert_int_equal(read_word(&rest, BEGIN), 0);
    assert_int_equal(rest.fetched_bytes, 2 * PAGE);
    assert_int_equal(read_word(&rest, BEGIN + 2 * PAGE), -EFAULT);
    assert_int_equal(target.count, 2);
    assert_int_equal(read_word(&rest, BEGIN + 2 * PAGE), -EFAULT);
    assert_int_equal(read_word(&rest, BEGIN + 40 * PAGE), -EFAULT);
    assert_int_equal(target.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_fetched_unless_it_is_asked_for),
        cmocka_unit_test(test_windows_double_where_a_walk_goes_on),
        cmocka_unit_test(test_large_frames_are_skipped),
        cmocka_unit_test(test_a_window_is_read_many_times),
        cmocka_unit_test(test_the_mapping_is_never_left),
        cmocka_unit_test(test_a_failure_is_the_last_fetch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
