#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "profiler/collect/perf_refusal.h"

static void check(int code, const struct perf_privileges *privileges, const char *cause, const char *remedy)
{
    struct error err = {0};
    assert_int_equal(perf_refusal_explain(&err, code, privileges, "sample process 42"), code);
    assert_int_equal(err.code, code);
    assert_null(strchr(err.message, '\n'));
    assert_non_null(strstr(err.message, "sample process 42"));
    if (strstr(err.message, cause) == NULL || strstr(err.message, remedy) == NULL)
        fail_msg("\"%s\" names neither \"%s\" nor \"%s\"", err.message, cause, remedy);
}

static void test_paranoid(void **state)
{
    const struct perf_privileges p = {.paranoid = 3};
    (void)state;
    check(-EACCES, &p, "perf_event_paranoid is 3", "CAP_PERFMON");
    check(-EPERM, &p, "perf_event_paranoid is 3", "as root");
}

static void test_another_user(void **state)
{
    const struct perf_privileges p = {.paranoid = 2, .seccomp = true};
    (void)state;
    check(-EACCES, &p, "another user", "as root");
    check(-EPERM, &p, "seccomp", "container's seccomp profile");
}

static void test_capable_and_yet(void **state)
{
    const struct perf_privileges seccomp = {.paranoid = 2, .capable = true, .seccomp = true};
    const struct perf_privileges lockdown = {.paranoid = 2, .capable = true, .lockdown = true};
    const struct perf_privileges container = {
        .paranoid = 2, .capable = true, .user_namespace = true, .seccomp = true};
    (void)state;
    check(-EPERM, &seccomp, "seccomp", "container's seccomp profile");
    check(-ENOSYS, &seccomp, "seccomp", "container's seccomp profile");
    check(-EPERM, &lockdown, "locked down", "lockdown=confidentiality");
    check(-EACCES, &container, "user namespace", "on the host");
}

static void test_others(void **state)
{
    const struct perf_privileges p = {.paranoid = 2, .capable = true};
    (void)state;
    check(-ESRCH, &p, "no such process", "");
    check(-EMFILE, &p, "open files", "ulimit -n");
    check(-ENOSYS, &p, "CONFIG_PERF_EVENTS", "");
    check(-EBUSY, &p, "in use", "other profiler");
    check(-EIO, &p, strerror(EIO), "");
    check(-EPERM, &p, strerror(EPERM), "");
}

static void test_limits(void **state)
{
    const struct perf_privileges p = {.paranoid = 1, .mlock_kb = 516};
    struct error err = {0};
    (void)state;
    perf_refusal_explain_ring(&err, -EPERM, &p);
    assert_non_null(strstr(err.message, "perf_event_mlock_kb (now 516)"));
    assert_non_null(strstr(err.message, "ulimit -l"));
    perf_refusal_explain_files(&err, 1234, 256);
    assert_int_equal(err.code, -EMFILE);
    assert_non_null(strstr(err.message, "1234"));
    assert_non_null(strstr(err.message, "256"));
}

static void test_read(void **state)
{
    struct perf_privileges p;
    (void)state;
    perf_privileges_read(&p);
    assert_true(p.paranoid >= -1 || p.paranoid == PERF_PARANOID_UNKNOWN);
    assert_true(p.mlock_kb >= -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paranoid),        cmocka_unit_test(test_another_user),
        cmocka_unit_test(test_capable_and_yet), cmocka_unit_test(test_others),
        cmocka_unit_test(test_limits),          cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
