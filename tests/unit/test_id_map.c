#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "profiler/base/id_map.h"

static void test_zeroed_is_empty(void **state)
{
    struct id_map map = {0};
    uint32_t value = 7;

    (void)state;
    assert_false(id_map_get(&map, 0, &value));
    assert_false(id_map_remove(&map, 0));
    assert_int_equal(value, 7);
    id_map_clear(&map);
    id_map_finish(&map);
    id_map_finish(NULL);
}

static void test_extreme_keys_and_values(void **state)
{
    struct id_map map = {0};
    uint32_t value = 7;

    (void)state;
    id_map_put(&map, 0, UINT32_MAX);
    id_map_put(&map, UINT64_MAX, 0);
    assert_int_equal(map.count, 2);
    assert_true(id_map_get(&map, 0, &value));
    assert_int_equal(value, UINT32_MAX);
    assert_true(id_map_get(&map, UINT64_MAX, &value));
    assert_int_equal(value, 0);
    assert_false(id_map_get(&map, 1, &value));
    id_map_finish(&map);
}

static void test_put_replaces(void **state)
{
    struct id_map map = {0};
    uint32_t value = 0;

    (void)state;
    id_map_put(&map, 5, 1);
    id_map_put(&map, 5, 2);
    assert_int_equal(map.count, 1);
    assert_true(id_map_get(&map, 5, &value));
    assert_int_equal(value, 2);
    assert_true(id_map_remove(&map, 5));
    assert_false(id_map_get(&map, 5, &value));
    assert_false(id_map_remove(&map, 5));
    assert_int_equal(map.count, 0);
    id_map_put(&map, 5, 3);
    assert_true(id_map_get(&map, 5, &value));
    assert_int_equal(value, 3);
    id_map_finish(&map);
}

/* Against a plain array: random puts and removals over few keys, so that each key comes and goes often. */
static void test_against_an_array(void **state)
{
    enum { KEYS = 512, STEPS = 200000 };
    struct id_map map = {0};
    int64_t *truth = malloc(KEYS * sizeof *truth);
    uint64_t random = 1;
    size_t live = 0;

    (void)state;
    for (int i = 0; i < KEYS; i++)
        truth[i] = -1;
    for (uint32_t step = 0; step < STEPS; step++) {
        size_t key = (random = hash_mix(random, step)) % KEYS;
        uint64_t spread_key = (uint64_t)key << 52; /* keys that differ only in high bits */

        if (random >> 63) {
            live += truth[key] < 0;
            truth[key] = step;
            id_map_put(&map, spread_key, step);
        } else {
            assert_int_equal(id_map_remove(&map, spread_key), truth[key] >= 0);
            live -= truth[key] >= 0;
            truth[key] = -1;
        }
        assert_int_equal(map.count, live);
    }
    for (size_t key = 0; key < KEYS; key++) {
        uint32_t value = 0;

        assert_int_equal(id_map_get(&map, (uint64_t)key << 52, &value), truth[key] >= 0);
        if (truth[key] >= 0)
            assert_int_equal(value, truth[key]);
    }
    assert_true(map.capacity <= 4 * KEYS); /* removed entries do not make it grow for ever */
    free(truth);
    id_map_finish(&map);
}

static void test_hashes(void **state)
{
    static const char text[] = "0123456789abcdefg";

    (void)state;
    assert_int_equal(hash_bytes(text, 17), hash_bytes(text, 17));
    for (size_t length = 0; length < 17; length++)
        assert_int_not_equal(hash_bytes(text, length), hash_bytes(text, length + 1));
    assert_int_not_equal(hash_bytes("\0", 1), hash_bytes("\0\0", 2));
    assert_int_not_equal(hash_mix(1, 2), hash_mix(2, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed_is_empty), cmocka_unit_test(test_extreme_keys_and_values),
        cmocka_unit_test(test_put_replaces),    cmocka_unit_test(test_against_an_array),
        cmocka_unit_test(test_hashes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
