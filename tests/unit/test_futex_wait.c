#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/futex.h>

#include "profiler/wait/futex_wait.h"

enum { BASE = 0x10000 };

static uint32_t memory_words[16]; /* of the target, from BASE on */

static int read_words(void *context, uint64_t address, void *ret_bytes, size_t size_bytes)
{
    (void)context;
    if (address < BASE || address + size_bytes > BASE + sizeof memory_words)
        return -EFAULT;
    memcpy(ret_bytes, (const char *)memory_words + (address - BASE), size_bytes);
    return 0;
}

static const struct target_memory memory = {.read = read_words};

static struct futex_wait waits(uint64_t address, uint64_t operation, uint64_t value)
{
    const uint64_t arguments[6] = {address, operation, value};
    struct futex_wait wait;

    futex_wait_read(arguments, &memory, &wait);
    return wait;
}

static void set_words(const uint32_t *words, size_t count)
{
    memset(memory_words, 0, sizeof memory_words);
    memcpy(memory_words, words, count * sizeof words[0]);
}

/* lock, count, owner, nusers, kind */
static void test_mutexes_tell_their_owner(void **state)
{
    const uint32_t normal[] = {2, 0, 4711, 1, 0};
    const uint32_t recursive[] = {2, 3, 4711, 1, 1};

    (void)state;
    set_words(normal, 5);
    assert_int_equal(waits(BASE, 0x80, 2).kind, FUTEX_WAIT_LOCK);
    assert_int_equal(waits(BASE, 0x80, 2).owner, 4711);
    assert_int_equal(waits(BASE, 0x189, 2).owner, 4711); /* timed */
    assert_int_equal(waits(BASE, 0x80, 2).lock_address, BASE);
    set_words(recursive, 5);
    assert_int_equal(waits(BASE, 0x80, 2).owner, 4711);
}

/* Of another library's, or a word that happens to be 2, no owner is said. */
static void test_other_layouts_have_no_owner(void **state)
{
    const uint32_t no_kind[] = {2, 0, 4711, 1, 0xdeadbeef};
    const uint32_t no_tid[] = {2, 0, 0x7fffffff, 1, 0};
    const uint32_t free_now[] = {0, 0, 4711, 1, 0};

    (void)state;
    set_words(no_kind, 5);
    assert_int_equal(waits(BASE, 0x80, 2).owner, 0);
    set_words(no_tid, 5);
    assert_int_equal(waits(BASE, 0x80, 2).owner, 0);
    set_words(free_now, 5);
    assert_int_equal(waits(BASE, 0x80, 2).owner, 0);
    assert_int_equal(waits(0x99999, 0x80, 2).owner, 0); /* not readable */
    assert_int_equal(waits(0x99999, 0x80, 2).kind, FUTEX_WAIT_LOCK);
}

static void test_owner_in_the_word(void **state)
{
    const uint32_t inheriting[] = {4711 | FUTEX_WAITERS};

    (void)state;
    set_words(inheriting, 1);
    assert_int_equal(waits(BASE, 0x86, 0).owner, 4711);
    assert_int_equal(waits(BASE, 0x86, 0).kind, FUTEX_WAIT_LOCK);
    assert_int_equal(waits(BASE, 0, 4712 | FUTEX_WAITERS).owner, 4712); /* robust */
}

static void test_read_write_locks(void **state)
{
    const uint32_t lock[] = {0, 0, 3, 3, 0, 0, 4711};

    (void)state;
    set_words(lock, 7);
    assert_int_equal(waits(BASE + 8, 0x189, 3).lock_address, BASE);
    assert_int_equal(waits(BASE + 8, 0x189, 3).owner, 4711);
    assert_int_equal(waits(BASE + 12, 0x189, 3).lock_address, BASE);
    assert_int_equal(waits(BASE + 12, 0x189, 3).owner, 4711);
}

static void test_conditions_and_joins(void **state)
{
    (void)state;
    assert_int_equal(waits(BASE, 0x189, 0).kind, FUTEX_WAIT_CONDITION);
    assert_int_equal(waits(BASE, 0x80, 0).kind, FUTEX_WAIT_CONDITION);
    assert_int_equal(waits(BASE, 0x109, 4711).kind, FUTEX_WAIT_JOIN);
    assert_int_equal(waits(BASE, 0x189, 4711).kind, FUTEX_WAIT_LOCK); /* private: of no thread's end */
    assert_int_equal(waits(BASE, 0x189, 0).owner, 0);
}

static void test_without_memory(void **state)
{
    const uint64_t arguments[6] = {BASE, 0x80, 2};
    struct futex_wait wait;

    (void)state;
    futex_wait_read(arguments, NULL, &wait);
    assert_int_equal(wait.kind, FUTEX_WAIT_LOCK);
    assert_int_equal(wait.owner, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutexes_tell_their_owner), cmocka_unit_test(test_other_layouts_have_no_owner),
        cmocka_unit_test(test_owner_in_the_word),        cmocka_unit_test(test_read_write_locks),
        cmocka_unit_test(test_conditions_and_joins),     cmocka_unit_test(test_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
