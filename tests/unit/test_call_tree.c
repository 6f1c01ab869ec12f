#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/model/call_tree.h"
#include "tests/golden/fixtures.h"

static struct call_tree *build(const struct profile *profile, enum idle_mode idle,
                               enum thread_grouping threads)
{
    const struct call_tree_options options = {idle, threads};

    return call_tree_build(profile, &options);
}

static const char *name_of(const struct call_tree *tree, uint32_t node)
{
    return string_table_get(tree->strings, tree->nodes[node].name);
}

/* The child of that name; fails the test when there is none. */
static uint32_t child_of(const struct call_tree *tree, uint32_t parent, const char *name)
{
    for (uint32_t c = tree->nodes[parent].first_child; c != 0; c = tree->nodes[c].next_sibling) {
        if (strcmp(name_of(tree, c), name) == 0)
            return c;
    }
    fail_msg("%s has no child %s", name_of(tree, parent), name);
    return 0;
}

static uint64_t sum(const uint64_t values[STATE_COUNT])
{
    uint64_t total = 0;

    for (int i = 0; i < STATE_COUNT; i++)
        total += values[i];
    return total;
}

/* What holds for every tree. */
static void check_sums(const struct call_tree *tree)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct call_node *node = &tree->nodes[i];
        uint64_t below_us = 0;
        uint64_t below_ns = 0;
        uint32_t before = 0;

        for (uint32_t c = node->first_child; c != 0; c = tree->nodes[c].next_sibling) {
            assert_true(c > i);
            assert_int_equal(tree->nodes[c].parent, i);
            assert_int_equal(tree->nodes[c].depth, node->depth + 1);
            if (before != 0)
                assert_true(strcmp(name_of(tree, before), name_of(tree, c)) <= 0);
            below_us += tree->nodes[c].total_us;
            below_ns += sum(tree->nodes[c].total_ns);
            before = c;
        }
        assert_int_equal(node->total_us, node->self_us + below_us);
        assert_int_equal(sum(node->total_ns), sum(node->self_ns) + below_ns);
    }
    assert_int_equal(tree->nodes[0].total_us, (sum(tree->nodes[0].total_ns) + 500) / 1000);
}

static void test_groups(void **state)
{
    (void)state;
    struct profile *profile = fixture_hostile();
    struct call_tree *pool = build(profile, IDLE_SEPARATE, THREADS_POOL);
    uint32_t process = child_of(pool, 0, "srv<&>\x1b;x");
    uint32_t idle = child_of(pool, 0, "[idle]");

    check_sums(pool);
    assert_int_equal(pool->idle_node, idle);
    child_of(pool, process, FIXTURE_HOSTILE_COMM " [main]");
    assert_int_equal(pool->nodes[child_of(pool, process, "worker-*")].total_us, 3650150);
    assert_int_equal(pool->nodes[idle].total_ns[STATE_IDLE], 1400000700);
    assert_int_equal(sum(pool->nodes[idle].total_ns), 1400000700);
    assert_int_equal(pool->nodes[idle].frame, CALL_NODE_GROUP);

    struct call_tree *each = build(profile, IDLE_MERGE, THREADS_EACH);

    check_sums(each);
    process = child_of(each, 0, "srv<&>\x1b;x (1234)");
    assert_int_equal(each->nodes[child_of(each, process, "worker-1 (1235)")].total_us, 2750000);
    assert_int_equal(each->nodes[child_of(each, process, "worker-22 (1240)")].total_us, 900150);
    assert_int_equal(each->idle_node, 0);
    assert_int_equal(each->nodes[0].total_us, pool->nodes[0].total_us);

    struct call_tree *merged = build(profile, IDLE_HIDE, THREADS_MERGE);

    check_sums(merged);
    process = child_of(merged, 0, "srv<&>\x1b;x");
    child_of(merged, process, "main");
    assert_int_equal(merged->nodes[0].total_ns[STATE_IDLE], 0);
    call_tree_destroy(pool);
    call_tree_destroy(each);
    call_tree_destroy(merged);
    profile_destroy(profile);
}

/* The same samples in another order, with other ids: the same tree. */
static void test_order_does_not_matter(void **state)
{
    (void)state;
    struct call_tree *trees[2];
    struct profile *profiles[2];

    for (int turn = 0; turn < 2; turn++) {
        struct profile *profile = fixture_new("srv (7)", NS_PER_S);
        uint32_t process = profile_add_process(profile, 7, "srv");
        uint32_t thread = profile_add_thread(profile, process, 7, "srv", true);
        const char *const stacks[] = {"main|b|c", "main|a", "other", "main|b"};

        for (int i = 0; i < 4; i++) {
            int k = turn == 0 ? i : 3 - i;

            fixture_sample(profile, thread, (uint64_t)i * 1000000, (uint64_t)(k + 1) * 1700,
                           fixture_stack(profile, STACK_EMPTY, stacks[k], "srv"), STATE_ON_CPU);
        }
        profiles[turn] = profile;
        trees[turn] = build(profile, IDLE_MERGE, THREADS_POOL);
        check_sums(trees[turn]);
    }
    assert_int_equal(trees[0]->count, trees[1]->count);
    for (uint32_t i = 0; i < trees[0]->count; i++) {
        assert_string_equal(name_of(trees[0], i), name_of(trees[1], i));
        assert_int_equal(trees[0]->nodes[i].self_us, trees[1]->nodes[i].self_us);
        assert_int_equal(trees[0]->nodes[i].first_child, trees[1]->nodes[i].first_child);
        assert_int_equal(trees[0]->nodes[i].next_sibling, trees[1]->nodes[i].next_sibling);
    }
    for (int turn = 0; turn < 2; turn++) {
        call_tree_destroy(trees[turn]);
        profile_destroy(profiles[turn]);
    }
}

static void test_very_deep(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    struct profile *profile = fixture_new("deep (7)", NS_PER_S);
    uint32_t process = profile_add_process(profile, 7, "deep");
    uint32_t thread = profile_add_thread(profile, process, 7, "deep", true);
    uint32_t frame = fixture_frame(profile, FRAME_USER, "rec", "deep");
    uint32_t stack = STACK_EMPTY;

    for (int i = 0; i < DEPTH; i++)
        stack = stack_table_push(profile->stacks, stack, frame);
    fixture_sample(profile, thread, 0, 1000, stack, STATE_ON_CPU);

    struct call_tree *tree = build(profile, IDLE_MERGE, THREADS_POOL);

    check_sums(tree);
    assert_int_equal(tree->count, 3 + DEPTH);
    assert_int_equal(tree->nodes[tree->count - 1].depth, 2 + DEPTH);
    call_tree_destroy(tree);
    profile_destroy(profile);
}

static void test_empty(void **state)
{
    (void)state;
    struct profile *profile = fixture_empty();
    struct call_tree *tree = build(profile, IDLE_SEPARATE, THREADS_POOL);

    check_sums(tree);
    assert_int_equal(tree->count, 1);
    assert_int_equal(tree->nodes[0].total_us, 0);
    call_tree_destroy(tree);
    call_tree_destroy(NULL);
    profile_destroy(profile);
}

static void expect_pool(const char *thread_name, const char *expected)
{
    AUTO_FREE char *pool = thread_pool_name(thread_name);

    assert_string_equal(pool, expected);
}

static void test_pool_names(void **state)
{
    (void)state;
    expect_pool("worker-12", "worker-*");
    expect_pool("worker-3", "worker-*");
    expect_pool("io 1/22", "io */*");
    expect_pool("7", "*");
    expect_pool("main", "main");
    expect_pool("", "");
}

static void expect_shares(const uint64_t *weights, size_t count, uint64_t total, const uint64_t *expected)
{
    uint64_t shares[8];

    share_by_largest_remainder(weights, count, total, shares);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(shares[i], expected[i]);
}

static void test_largest_remainder(void **state)
{
    (void)state;
    expect_shares((uint64_t[]){1, 1, 1}, 3, 2, (uint64_t[]){1, 1, 0});          /* ties: the lower index */
    expect_shares((uint64_t[]){1400, 1500, 1600}, 3, 5, (uint64_t[]){1, 2, 2}); /* 1.56, 1.67, 1.78 */
    expect_shares((uint64_t[]){0, 5, 0}, 3, 7, (uint64_t[]){0, 7, 0});
    expect_shares((uint64_t[]){0, 0}, 2, 7, (uint64_t[]){0, 0});
    expect_shares((uint64_t[]){UINT64_C(1) << 62, UINT64_C(1) << 62}, 2, UINT64_MAX - 1,
                  (uint64_t[]){UINT64_MAX / 2, UINT64_MAX / 2}); /* needs more than 64 bits inside */
    expect_shares(NULL, 0, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),     cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_very_deep),  cmocka_unit_test(test_empty),
        cmocka_unit_test(test_pool_names), cmocka_unit_test(test_largest_remainder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
