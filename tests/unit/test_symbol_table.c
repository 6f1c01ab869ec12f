#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/memory.h"
#include "profiler/symbolize/symbol_name.h"
#include "profiler/symbolize/symbol_table.h"

static struct symbol_table_builder builder;

static void add(uint64_t address, uint64_t size_bytes, const char *name, int rank)
{
    assert_true(symbol_table_add(&builder, &(struct symbol_candidate){
                                               .address = address,
                                               .size_bytes = size_bytes,
                                               .name = name,
                                               .name_length = (uint32_t)strlen(name),
                                               .rank = (uint8_t)rank,
                                               .is_sized = true,
                                           }));
}

static void add_unsized(uint64_t address, uint64_t reach_bytes, const char *name, int rank)
{
    assert_true(symbol_table_add(&builder, &(struct symbol_candidate){
                                               .address = address,
                                               .size_bytes = reach_bytes,
                                               .name = name,
                                               .name_length = (uint32_t)strlen(name),
                                               .rank = (uint8_t)rank,
                                           }));
}

static void assert_found(const struct symbol_table *table, uint64_t address, const char *wanted)
{
    const char *name = symbol_table_find(table, address);

    if (wanted == NULL)
        assert_null(name);
    else
        assert_string_equal(name != NULL ? name : "(none)", wanted);
}

static void sizes_are_honoured(void **state)
{
    struct symbol_table *table;

    (void)state;
    add(0x2000, 0x10, "second", SYMBOL_RANK_GLOBAL);
    add(0x1000, 0x10, "first", SYMBOL_RANK_GLOBAL);
    table = symbol_table_build(&builder);
    assert_found(table, 0xfff, NULL);
    assert_found(table, 0x1000, "first");
    assert_found(table, 0x100f, "first");
    assert_found(table, 0x1010, NULL);
    assert_found(table, 0x1fff, NULL);
    assert_found(table, 0x2000, "second");
    assert_found(table, 0x2010, NULL);
    assert_found(table, UINT64_MAX, NULL);
    symbol_table_destroy(table);
}

static void empty_table_finds_nothing(void **state)
{
    struct symbol_table *table = symbol_table_build(&builder);

    (void)state;
    assert_found(table, 0, NULL);
    assert_int_equal(symbol_table_count(table), 0);
    assert_found(NULL, 0x1000, NULL);
    symbol_table_destroy(table);
    symbol_table_destroy(NULL);
}

static void global_beats_weak_beats_local(void **state)
{
    struct symbol_table *table;

    (void)state;
    add(0x1000, 4, "a", SYMBOL_RANK_LOCAL);
    add(0x1000, 4, "b", SYMBOL_RANK_WEAK);
    add(0x1000, 4, "__c", SYMBOL_RANK_GLOBAL);
    add(0x2000, 4, "a2", SYMBOL_RANK_LOCAL);
    add(0x2000, 4, "b2", SYMBOL_RANK_WEAK);
    add(0x3000, 4, "label", SYMBOL_RANK_GLOBAL + SYMBOL_RANK_UNTYPED);
    add(0x3000, 4, "function", SYMBOL_RANK_LOCAL);
    add(0x4000, 4, "puts@plt", SYMBOL_RANK_STUB);
    add(0x4000, 4, "label2", SYMBOL_RANK_LOCAL + SYMBOL_RANK_UNTYPED);
    table = symbol_table_build(&builder);
    assert_found(table, 0x1001, "__c");
    assert_found(table, 0x2001, "b2");
    assert_found(table, 0x3001, "function");
    assert_found(table, 0x4001, "label2");
    symbol_table_destroy(table);
}

static void equal_ranks_are_decided_by_name(void **state)
{
    struct symbol_table *table;

    (void)state;
    add(0x1000, 4, "__read", SYMBOL_RANK_GLOBAL);
    add(0x1000, 4, "read", SYMBOL_RANK_GLOBAL);
    add(0x2000, 4, "longer", SYMBOL_RANK_GLOBAL);
    add(0x2000, 4, "short", SYMBOL_RANK_GLOBAL);
    add(0x3000, 4, "bbb", SYMBOL_RANK_GLOBAL);
    add(0x3000, 4, "aaa", SYMBOL_RANK_GLOBAL);
    table = symbol_table_build(&builder);
    assert_found(table, 0x1000, "read");
    assert_found(table, 0x2000, "short");
    assert_found(table, 0x3000, "aaa");
    symbol_table_destroy(table);
}

static void winner_covers_what_its_aliases_cover(void **state)
{
    struct symbol_table *table;

    (void)state;
    add_unsized(0x1000, 0x100, "entry", SYMBOL_RANK_GLOBAL);
    add(0x1000, 0x40, "entry_local", SYMBOL_RANK_LOCAL);
    table = symbol_table_build(&builder);
    assert_found(table, 0x103f, "entry");
    assert_found(table, 0x1040, NULL);
    symbol_table_destroy(table);
}

static void innermost_wins(void **state)
{
    struct symbol_table *table;

    (void)state;
    add(0x1000, 0x100, "outer", SYMBOL_RANK_GLOBAL);
    add(0x1020, 0x40, "middle", SYMBOL_RANK_LOCAL);
    add(0x1030, 0x10, "inner", SYMBOL_RANK_LOCAL);
    add(0x10f0, 0x20, "astride", SYMBOL_RANK_LOCAL);
    table = symbol_table_build(&builder);
    assert_found(table, 0x101f, "outer");
    assert_found(table, 0x1020, "middle");
    assert_found(table, 0x1030, "inner");
    assert_found(table, 0x103f, "inner");
    assert_found(table, 0x1040, "middle");
    assert_found(table, 0x105f, "middle");
    assert_found(table, 0x1060, "outer");
    assert_found(table, 0x10ef, "outer");
    assert_found(table, 0x10f0, "astride");
    assert_found(table, 0x110f, "astride");
    assert_found(table, 0x1110, NULL);
    symbol_table_destroy(table);
}

static void unsized_reaches_to_the_next(void **state)
{
    struct symbol_table *table;

    (void)state;
    add_unsized(0x1000, 0x1000, "start", SYMBOL_RANK_GLOBAL);
    add_unsized(0x1100, 0x80, "limited", SYMBOL_RANK_GLOBAL);
    add_unsized(0x1200, 0x100, "before_stop", SYMBOL_RANK_GLOBAL);
    add_unsized(0x1210, 0x100, "data", SYMBOL_RANK_STOP);
    table = symbol_table_build(&builder);
    assert_found(table, 0x10ff, "start");
    assert_found(table, 0x1100, "limited");
    assert_found(table, 0x117f, "limited");
    assert_found(table, 0x1180, NULL);
    assert_found(table, 0x120f, "before_stop");
    assert_found(table, 0x1210, NULL);
    symbol_table_destroy(table);
}

static void unsized_inside_sized_is_a_label(void **state)
{
    struct symbol_table *table;

    (void)state;
    add(0x1000, 0x100, "function", SYMBOL_RANK_LOCAL);
    add_unsized(0x1080, 0x1000, "label", SYMBOL_RANK_GLOBAL);
    table = symbol_table_build(&builder);
    assert_found(table, 0x1080, "function");
    assert_found(table, 0x10ff, "function");
    assert_found(table, 0x1100, NULL);
    symbol_table_destroy(table);
}

static void end_of_the_address_space(void **state)
{
    struct symbol_table *table;

    (void)state;
    add(UINT64_MAX - 0x10, 0x100, "last", SYMBOL_RANK_GLOBAL);
    add(0, UINT64_MAX, "all", SYMBOL_RANK_LOCAL);
    table = symbol_table_build(&builder);
    assert_found(table, UINT64_MAX - 1, "last");
    assert_found(table, 0, "all");
    symbol_table_destroy(table);
}

static void long_name_is_shortened(void **state)
{
    size_t size = 1 << 20;
    char *name = memory_resize(NULL, size + 1, 1);
    struct symbol_table *table;
    const char *found;

    (void)state;
    memset(name, 'n', size);
    name[size] = '\0';
    add(0x1000, 16, name, SYMBOL_RANK_GLOBAL);
    table = symbol_table_build(&builder);
    free(name);
    found = symbol_table_find(table, 0x1000);
    assert_int_equal(strlen(found), SYMBOL_NAME_MAX_BYTES);
    assert_string_equal(found + SYMBOL_NAME_MAX_BYTES - 5, "nn...");
    symbol_table_destroy(table);
}

static void owned_names_and_candidates(void **state)
{
    struct symbol_table *table;

    (void)state;
    assert_null(symbol_table_candidate_at(&builder, 0x1000));
    add(0x1000, 16, "local", SYMBOL_RANK_LOCAL);
    add(0x1000, 16, "global", SYMBOL_RANK_GLOBAL);
    assert_memory_equal(symbol_table_candidate_at(&builder, 0x1000)->name, "global", 6);
    assert_null(symbol_table_candidate_at(&builder, 0x1001));
    assert_true(symbol_table_add_owned(
        &builder, (struct symbol_candidate){.address = 0x2000, .size_bytes = 8, .is_sized = true},
        string_copy("owned")));
    table = symbol_table_build(&builder);
    assert_found(table, 0x2007, "owned");
    assert_int_equal(builder.count, 0);
    symbol_table_destroy(table);
    symbol_table_add_owned(&builder, (struct symbol_candidate){.address = 1}, string_copy("given up"));
    symbol_table_builder_finish(&builder);
}

/* Against the plain definition: of all that hold the address, the one that starts last. */
static void agrees_with_a_linear_search(void **state)
{
    enum { COUNT = 300, SPACE = 2000 };
    static char names[COUNT][8];
    static uint64_t starts[COUNT];
    static uint64_t ends[COUNT];
    struct symbol_table *table;
    uint64_t random = 88172645463325252u;

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        snprintf(names[i], sizeof names[i], "s%zu", i);
        starts[i] = i * 6; /* all different, so that no rank decides */
        ends[i] = starts[i] + 1 + random % (i % 10 == 0 ? 300 : 12);
        add(starts[i], ends[i] - starts[i], names[i], SYMBOL_RANK_GLOBAL);
    }
    table = symbol_table_build(&builder);
    for (uint64_t address = 0; address < SPACE + 400; address++) {
        const char *wanted = NULL;

        for (size_t i = 0; i < COUNT; i++)
            if (starts[i] <= address && address < ends[i])
                wanted = names[i];
        assert_found(table, address, wanted);
    }
    symbol_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_honoured),
        cmocka_unit_test(empty_table_finds_nothing),
        cmocka_unit_test(global_beats_weak_beats_local),
        cmocka_unit_test(equal_ranks_are_decided_by_name),
        cmocka_unit_test(winner_covers_what_its_aliases_cover),
        cmocka_unit_test(innermost_wins),
        cmocka_unit_test(unsized_reaches_to_the_next),
        cmocka_unit_test(unsized_inside_sized_is_a_label),
        cmocka_unit_test(end_of_the_address_space),
        cmocka_unit_test(long_name_is_shortened),
        cmocka_unit_test(owned_names_and_candidates),
        cmocka_unit_test(agrees_with_a_linear_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
