#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collect/cpu_list.h"

static int parse(const char *text, int *cpus)
{
    return cpu_list_parse(text, strlen(text), cpus);
}

static void test_lists(void **state)
{
    static int cpus[CPU_LIST_MAX];
    (void)state;
    assert_int_equal(parse("0\n", cpus), 1);
    assert_int_equal(cpus[0], 0);
    assert_int_equal(parse("0-3,8", cpus), 5);
    assert_int_equal(cpus[3], 3);
    assert_int_equal(cpus[4], 8);
    assert_int_equal(parse("0-8191\n", cpus), CPU_LIST_MAX);
}

static void test_bad_lists(void **state)
{
    static const char *const bad[] = {"",       "\n",    "0-",  "-3",   "3-1",      "0,,1",
                                      "0-8192", "0-3,x", "0 1", "0\n1", "0-8191,0", "0-18446744073709551615"};
    static int cpus[CPU_LIST_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(parse(bad[i], cpus), -EBADMSG);
}

static void test_online(void **state)
{
    int *cpus;
    (void)state;
    assert_true(cpu_list_read_online(&cpus) >= 1);
    assert_true(cpus[0] >= 0);
    free(cpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_online),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
