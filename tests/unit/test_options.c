#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profiler/base/memory.h"
#include "profiler/cli/collect_options.h"
#include "profiler/cli/duration.h"

enum { MAX_ARGUMENTS = 16 };

static struct collect_options *options;
static struct error err;

static int parse(const char *line)
{
    static char text[256];
    char *argv[MAX_ARGUMENTS] = {NULL};
    int argc = 0;

    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word != NULL && argc < MAX_ARGUMENTS - 1; word = strtok(NULL, " "))
        argv[argc++] = word;
    memset(&err, 0, sizeof err);
    return collect_options_parse(argc, argv, options, &err);
}

static void refused(const char *line, const char *because)
{
    assert_true(parse(line) < 0);
    if (strstr(err.message, because) == NULL)
        fail_msg("%s: \"%s\" lacks \"%s\"", line, err.message, because);
    assert_null(strchr(err.message, '\n'));
}

static void test_good_lines(void **state)
{
    (void)state;
    assert_int_equal(parse("collect -p 12,13 -d 200ms --format svg,folded -o x -F 49"), 0);
    assert_int_equal(options->session.pid_count, 2);
    assert_int_equal(options->pids[1], 13);
    assert_int_equal(options->session.duration_ns, 200000000);
    assert_int_equal(options->format_count, 2);
    assert_ptr_equal(options->formats[0], &exporter_svg);
    assert_true(options->session.children);
    assert_int_equal(parse("collect --no-children -- sleep -d 5"), 0);
    assert_false(options->session.children);
    assert_string_equal(options->command[1], "-d");
    assert_int_equal(parse("collect --help"), OPTION_HELP);
    assert_int_equal(parse("collect -n srv --mode off-cpu --threads each --kernel none --call-graph fp"), 0);
    assert_int_equal(options->session.mode, SESSION_OFF_CPU);
}

static void test_bad_lines_say_why(void **state)
{
    (void)state;
    refused("collect", "nothing to profile");
    refused("collect -p", "-p");
    refused("collect -p abc", "process id");
    refused("collect -p 0", "process id");
    refused("collect -p 1,", "process id");
    refused("collect -p 99999999999", "process id");
    refused("collect -p 1 -n x", "only one of");
    refused("collect -p 1 --format gif", "speedscope");
    refused("collect -p 1 --format svg,svg", "twice");
    refused("collect -p 1 --format svg,folded -o -", "one format");
    refused("collect -o - -- true", "stdout");
    refused("collect -p 1 -d 0", "time above zero");
    refused("collect -p 1 -d 5x", "time above zero");
    refused("collect -p 1 -F 0", "from 1 to");
    refused("collect -p 1 -F nan", "from 1 to");
    refused("collect -p 1 --mode x", "wall, on-cpu, off-cpu");
    refused("collect -p 1 --bogus", "--bogus: no such option");
    refused("collect -p 1 -Z", "-Z: no such option");
    refused("collect -p 1 stray", "stray");
    refused("collect -p 1 --max-loss -3", "from 0 to 100");
}

static void expect_duration(const char *text, uint64_t ns)
{
    uint64_t got = 0;

    if (!duration_parse(text, &got) || got != ns)
        fail_msg("%s gives %llu", text, (unsigned long long)got);
}

static void test_durations(void **state)
{
    static const char *const bad[] = {"",    "0",   "-1",   "x",         "1e400",
                                      "nan", "inf", "1:2",  "1:2:3:4:5", "0x10",
                                      " 5",  "5 ",  "1::2", "00:00:00",  "99999999999999"};
    uint64_t ns;

    (void)state;
    expect_duration("30", 30000000000);
    expect_duration("0.5", 500000000);
    expect_duration("200ms", 200000000);
    expect_duration("30s", 30000000000);
    expect_duration("2m", 120000000000);
    expect_duration("00:00:30", 30000000000);
    expect_duration("01:00:00:01", 86401000000000);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (duration_parse(bad[i], &ns))
            fail_msg("\"%s\" was taken", bad[i]);
}

/* README's table and the option table are one text in two places: each option of one stands in the other. */
static void test_readme_has_every_option(void **state)
{
    static char readme[1 << 20];
    FILE *file = fopen(TEST_SOURCE_DIR "/../README.md", "r");

    (void)state;
    assert_non_null(file);
    readme[fread(readme, 1, sizeof readme - 1, file)] = '\0';
    fclose(file);
    for (size_t i = 0; i < collect_option_table.count; i++) {
        const struct option_row *row = &collect_option_table.rows[i];
        char wanted[64];

        if (row->name != NULL)
            snprintf(wanted, sizeof wanted, "--%s", row->name);
        else
            snprintf(wanted, sizeof wanted, "`-%c", row->letter);
        if (strstr(readme, wanted) == NULL)
            fail_msg("README.md lacks %s", wanted);
    }
    for (const char *at = strstr(readme, "| `--"); at != NULL; at = strstr(at + 1, "| `--")) {
        char name[32] = "";
        size_t known = 0;

        if (sscanf(at, "| `--%31[a-z-]", name) != 1) /* "-- COMMAND" */
            continue;
        for (size_t i = 0; i < collect_option_table.count; i++)
            known += collect_option_table.rows[i].name != NULL &&
                     strcmp(collect_option_table.rows[i].name, name) == 0;
        if (known == 0)
            fail_msg("README.md has --%s, collect has not", name);
    }
}

static int set_up(void **state)
{
    (void)state;
    options = memory_zeroed(1, sizeof *options);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(options);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_lines),
        cmocka_unit_test(test_bad_lines_say_why),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_readme_has_every_option),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
