#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profiler/collect/tracepoint.h"

/* Linux 6.18, shortened. */
static const char format[] = "name: sched_switch\n"
                             "ID: 372\n"
                             "format:\n"
                             "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
                             "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
                             "\n"
                             "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
                             "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
                             "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
                             "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
                             "\n"
                             "print fmt: \"prev_comm=%s prev_pid=%d\", REC->prev_comm, REC->prev_pid\n";

static void check_field(const char *name, unsigned offset, unsigned size)
{
    struct tracepoint_field field;
    assert_int_equal(tracepoint_find_field(format, strlen(format), name, &field), 0);
    assert_int_equal(field.offset, offset);
    assert_int_equal(field.size_bytes, size);
}

static void test_fields(void **state)
{
    (void)state;
    check_field("prev_pid", 24, 4);
    check_field("prev_state", 32, 8);
    check_field("next_pid", 56, 4);
    check_field("prev_comm", 8, 16);
    check_field("common_type", 0, 2);
}

static void test_absent_fields(void **state)
{
    static const char *const absent[] = {"pid", "prev_pi", "prev_pid2", "pid_t", "", "prev_comm[16]", "fmt"};
    struct tracepoint_field field;
    (void)state;
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        assert_int_equal(tracepoint_find_field(format, strlen(format), absent[i], &field), -ENOENT);
    assert_int_equal(tracepoint_find_field("", 0, "pid", &field), -ENOENT);
}

static void test_bad_lines(void **state)
{
    static const char *const bad[] = {
        "\tfield:pid_t pid;",
        "\tfield:pid_t pid;\toffset:24;",
        "\tfield:pid_t pid;\toffset:24;\tsize:;\tsigned:1;\n",
        "\tfield:pid_t pid;\toffset:x;\tsize:4;\tsigned:1;\n",
        "\tfield:pid_t pid;\toffset:65536;\tsize:4;\tsigned:1;\n",
        "\tfield:pid_t pid;\toffset:99999999999999999999;\tsize:4;\tsigned:1;\n",
        "\tfield:pid_t pid;\toffset:-8;\tsize:4;\tsigned:1;\n",
        "\tfield:pid_t pid;\toffset:24;\tsize:4",
    };
    struct tracepoint_field field;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tracepoint_find_field(bad[i], strlen(bad[i]), "pid", &field), -EBADMSG);
}

/* The last line may lack its newline; any cut must be answered without reading on (the sanitizers watch). */
static void test_cuts(void **state)
{
    struct tracepoint_field field;
    (void)state;
    for (size_t length = 0; length < strlen(format); length++) {
        char cut[sizeof format];
        memcpy(cut, format, length);
        memset(cut + length, ';', sizeof cut - length);
        int r = tracepoint_find_field(cut, length, "next_pid", &field);
        assert_true(r == 0 || r == -ENOENT || r == -EBADMSG);
    }
}

/* On this machine, where it is permitted. */
static void test_read(void **state)
{
    struct tracepoint_ids ids;
    struct perf_tracepoint_layout layout;
    struct error err = {0};
    (void)state;
    int r = tracepoint_read(&ids, &layout, &err);
    if (r < 0) {
        print_message("skipped: %s\n", err.message);
        skip();
    }
    assert_true(ids.sched_switch > 0);
    assert_true(ids.sched_wakeup != ids.sched_wakeup_new);
    assert_true(layout.switch_prev_pid >= 8);
    assert_true(layout.switch_next_pid > layout.switch_prev_pid);
    assert_true(layout.switch_prev_state_size == 4 || layout.switch_prev_state_size == 8);
    assert_true(layout.wakeup_pid >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields), cmocka_unit_test(test_absent_fields), cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_cuts),   cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
