#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/symbolize/kallsyms.h"

static bool was_skipped;

static struct symbol_table *parse(const char *text)
{
    return kallsyms_parse(text, strlen(text));
}

static void assert_at(const struct symbol_table *table, uint64_t address, const char *wanted)
{
    const char *name = symbol_table_find(table, address);

    assert_string_equal(name != NULL ? name : "(none)", wanted != NULL ? wanted : "(none)");
}

static void functions_reach_to_the_next_symbol(void **state)
{
    struct symbol_table *table = parse("ffffffff81000000 T startup_64\n"
                                       "ffffffff81000040 t helper\n"
                                       "ffffffff81000080 D some_data\n"
                                       "ffffffff81200000 T far_away\n");

    (void)state;
    assert_at(table, 0xffffffff80ffffff, NULL);
    assert_at(table, 0xffffffff81000000, "startup_64");
    assert_at(table, 0xffffffff8100003f, "startup_64");
    assert_at(table, 0xffffffff8100007f, "helper");
    assert_at(table, 0xffffffff81000080, NULL);
    assert_at(table, 0xffffffff81200000, "far_away");
    assert_at(table, 0xffffffff812fffff, "far_away");
    assert_at(table, 0xffffffff81300000, NULL); /* 1 MiB is enough for any function */
    symbol_table_destroy(table);
}

static void modules_are_told(void **state)
{
    struct symbol_table *table = parse("ffffffffc0541000 t ext4_sync_file\t[ext4]\n"
                                       "ffffffffc0542000 t bpf_prog_6deef7357e7b4530_f\t[bpf]\n");
    const char *entry = symbol_table_find(table, 0xffffffffc0541001);
    const char *module;

    (void)state;
    assert_non_null(entry);
    assert_int_equal(kallsyms_split(entry, &module), strlen("ext4_sync_file"));
    assert_string_equal(module, "[ext4]");
    assert_int_equal(kallsyms_split("vfs_read", &module), strlen("vfs_read"));
    assert_string_equal(module, "");
    symbol_table_destroy(table);
}

static void aliases(void **state)
{
    struct symbol_table *table = parse("ffffffff81000000 T _stext\n"
                                       "ffffffff81000000 t first_function\n"
                                       "ffffffff81000100 T __sched_text_start\n"
                                       "ffffffff81000100 t __schedule\n"
                                       "ffffffff81000200 t __do_sys_getpid\n"
                                       "ffffffff81000200 T __ia32_sys_getpid\n"
                                       "ffffffff81000200 T __x64_sys_getpid\n"
                                       "ffffffff81000300 W weak_one\n"
                                       "ffffffff81000300 t local_one\n"
                                       "ffffffff81000400 T end\n");

    (void)state;
    assert_at(table, 0xffffffff81000001, "first_function");
    assert_at(table, 0xffffffff81000101, "__schedule");
    assert_at(table, 0xffffffff81000201, "__x64_sys_getpid");
    assert_at(table, 0xffffffff81000301, "weak_one");
    symbol_table_destroy(table);
}

static void zeroed_addresses_name_nothing(void **state)
{
    struct symbol_table *table = parse("0000000000000000 T startup_64\n0000000000000000 t helper\n");

    (void)state;
    assert_int_equal(symbol_table_count(table), 0);
    assert_at(table, 0, NULL);
    assert_at(table, 0xffffffff81000000, NULL);
    symbol_table_destroy(table);
}

static void broken_lines_are_passed_over(void **state)
{
    struct symbol_table *table = parse("\n"
                                       "ffffffff81000000\n"
                                       "ffffffff81000000 T\n"
                                       "ffffffff81000000 T \n"
                                       "ffffffff81000000T x\n"
                                       "nonsense\n"
                                       "fffffffff81000000 T too_many_digits\n"
                                       "ffffffff81000000 T unterminated");

    (void)state;
    assert_int_equal(symbol_table_count(table), 1);
    assert_at(table, 0xffffffff81000000, "unterminated");
    symbol_table_destroy(table);
}

static void unreadable_file(void **state)
{
    struct symbol_table *table = kallsyms_load("/nonexistent/kallsyms");

    (void)state;
    assert_int_equal(symbol_table_count(table), 0);
    symbol_table_destroy(table);
}

static void this_kernel(void **state)
{
    struct symbol_table *table = kallsyms_load("/proc/kallsyms");
    FILE *file = fopen("/proc/kallsyms", "r");
    char line[1024];
    size_t checked = 0;
    bool has_addresses = false;

    (void)state;
    while (file != NULL && fgets(line, sizeof line, file) != NULL && checked < 5000) {
        uint64_t address;
        char type;

        if (sscanf(line, "%" SCNx64 " %c", &address, &type) != 2 || strchr("tT", type) == NULL ||
            address == 0)
            continue;
        has_addresses = true;
        assert_non_null(symbol_table_find(table, address));
        checked++;
    }
    if (file != NULL)
        fclose(file);
    if (!has_addresses) {
        assert_int_equal(symbol_table_count(table), 0);
        printf("skipped: /proc/kallsyms shows no addresses here\n");
        was_skipped = true;
    }
    symbol_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_reach_to_the_next_symbol),
        cmocka_unit_test(modules_are_told),
        cmocka_unit_test(aliases),
        cmocka_unit_test(zeroed_addresses_name_nothing),
        cmocka_unit_test(broken_lines_are_passed_over),
        cmocka_unit_test(unreadable_file),
        cmocka_unit_test(this_kernel),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed == 0 && was_skipped ? 77 : failed;
}
