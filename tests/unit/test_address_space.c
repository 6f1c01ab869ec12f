#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "profiler/model/address_space.h"

static void insert(struct address_space *space, uint64_t start, uint64_t end, uint64_t file_offset,
                   uint32_t binary)
{
    struct mapping mapping = {.start = start, .end = end, .file_offset = file_offset, .binary = binary};

    address_space_insert(space, &mapping);
}

static void check(const struct address_space *space, size_t index, uint64_t start, uint64_t end,
                  uint64_t file_offset, uint32_t binary)
{
    assert_in_range(index + 1, 1, space->count);
    assert_int_equal(space->mappings[index].start, start);
    assert_int_equal(space->mappings[index].end, end);
    assert_int_equal(space->mappings[index].file_offset, file_offset);
    assert_int_equal(space->mappings[index].binary, binary);
}

static void test_finds_by_address(void **state)
{
    struct address_space space = {0};

    (void)state;
    assert_null(address_space_find(&space, 0));
    insert(&space, 0x3000, 0x4000, 0, 3);
    insert(&space, 0x1000, 0x2000, 0, 1);
    insert(&space, UINT64_MAX - 0xfff, UINT64_MAX, 0, 9);
    assert_null(address_space_find(&space, 0xfff));
    assert_int_equal(address_space_find(&space, 0x1000)->binary, 1);
    assert_int_equal(address_space_find(&space, 0x1fff)->binary, 1);
    assert_null(address_space_find(&space, 0x2000));
    assert_int_equal(address_space_find(&space, 0x3000)->binary, 3);
    assert_null(address_space_find(&space, 0x4000));
    assert_int_equal(address_space_find(&space, UINT64_MAX - 1)->binary, 9);
    assert_null(address_space_find(&space, UINT64_MAX));
    address_space_finish(&space);
}

static void test_cuts_what_it_covers(void **state)
{
    struct address_space space = {0};

    (void)state;
    insert(&space, 0x1000, 0x9000, 0x100, 1);
    insert(&space, 0x3000, 0x5000, 0, 2); /* in the middle: both ends stay */
    assert_int_equal(space.count, 3);
    check(&space, 0, 0x1000, 0x3000, 0x100, 1);
    check(&space, 1, 0x3000, 0x5000, 0, 2);
    check(&space, 2, 0x5000, 0x9000, 0x4100, 1);

    insert(&space, 0x2000, 0x6000, 0x7000, 3); /* over all of one and parts of its neighbours */
    assert_int_equal(space.count, 3);
    check(&space, 0, 0x1000, 0x2000, 0x100, 1);
    check(&space, 1, 0x2000, 0x6000, 0x7000, 3);
    check(&space, 2, 0x6000, 0x9000, 0x5100, 1);

    insert(&space, 0x2000, 0x6000, 0, 4); /* exactly */
    assert_int_equal(space.count, 3);
    check(&space, 1, 0x2000, 0x6000, 0, 4);

    insert(&space, 0, UINT64_MAX, 0, 5); /* everything */
    assert_int_equal(space.count, 1);
    check(&space, 0, 0, UINT64_MAX, 0, 5);
    address_space_finish(&space);
}

static void test_ignores_empty_ranges(void **state)
{
    struct address_space space = {0};

    (void)state;
    insert(&space, 0x1000, 0x1000, 0, 1);
    insert(&space, 0x2000, 0x1000, 0, 1);
    assert_int_equal(space.count, 0);
    address_space_finish(&space);
}

static void test_inserts_one_of_its_own(void **state)
{
    struct address_space space = {0};

    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        insert(&space, i * 0x1000, (i + 1) * 0x1000, 0, (uint32_t)i);
        address_space_insert(&space, &space.mappings[0]);
    }
    assert_int_equal(space.count, 100);
    check(&space, 0, 0, 0x1000, 0, 0);
    address_space_finish(&space);
}

static void test_fork_and_exec(void **state)
{
    struct address_space parent = {0};
    struct address_space fork = {0};

    (void)state;
    insert(&parent, 0x1000, 0x2000, 7, 1);
    insert(&fork, 0x8000, 0x9000, 0, 2);
    address_space_copy(&fork, &parent);
    address_space_clear(&parent);
    assert_null(address_space_find(&parent, 0x1000));
    assert_int_equal(fork.count, 1);
    check(&fork, 0, 0x1000, 0x2000, 7, 1);
    address_space_copy(&fork, &fork);
    assert_int_equal(fork.count, 1);
    address_space_copy(&fork, &parent);
    assert_int_equal(fork.count, 0);
    address_space_finish(&fork);
    address_space_finish(&parent);
    address_space_finish(NULL);
}

/* Against a plain array of pages. */
static void test_like_an_array_of_pages(void **state)
{
    enum { PAGES = 200, ROUNDS = 3000 };
    static struct {
        uint32_t binary;
        uint64_t offset;
    } pages[PAGES];
    struct address_space space = {0};

    (void)state;
    srand(1);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint64_t first = (uint64_t)(rand() % PAGES);
        uint64_t last = first + (uint64_t)(rand() % 20);

        if (last >= PAGES)
            last = PAGES - 1;
        insert(&space, first * 4096, (last + 1) * 4096, round * UINT64_C(1000000), round);
        for (uint64_t i = first; i <= last; i++) {
            pages[i].binary = round;
            pages[i].offset = round * UINT64_C(1000000) + (i - first) * 4096;
        }
        for (uint64_t i = 0; i < PAGES; i++) {
            const struct mapping *mapping = address_space_find(&space, i * 4096 + 17);

            if (pages[i].binary == 0) {
                assert_null(mapping);
                continue;
            }
            assert_non_null(mapping);
            assert_int_equal(mapping->binary, pages[i].binary);
            assert_int_equal(i * 4096 - mapping->start + mapping->file_offset, pages[i].offset);
        }
    }
    address_space_finish(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_by_address),     cmocka_unit_test(test_cuts_what_it_covers),
        cmocka_unit_test(test_ignores_empty_ranges), cmocka_unit_test(test_inserts_one_of_its_own),
        cmocka_unit_test(test_fork_and_exec),        cmocka_unit_test(test_like_an_array_of_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
