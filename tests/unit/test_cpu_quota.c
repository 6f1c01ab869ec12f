#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/collect/cpu_quota.h"

static void expect_view(struct text_view view, const char *wanted)
{
    assert_int_equal(view.length, strlen(wanted));
    assert_memory_equal(view.text, wanted, view.length);
}

static int parse_mount(const char *line, struct cpu_quota_mount *mount)
{
    return cpu_quota_parse_mount(line, strlen(line), mount);
}

static void mounts_of_both_versions(void **state)
{
    struct cpu_quota_mount mount;

    (void)state;
    assert_int_equal(
        parse_mount(
            "36 25 0:31 / /sys/fs/cgroup/cpu rw,relatime shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct\n",
            &mount),
        0);
    assert_false(mount.version_2);
    expect_view(mount.root, "/");
    expect_view(mount.point, "/sys/fs/cgroup/cpu");
    assert_int_equal(
        parse_mount("30 23 0:26 /docker/1a /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate", &mount),
        0);
    assert_true(mount.version_2);
    expect_view(mount.root, "/docker/1a");
    expect_view(mount.point, "/sys/fs/cgroup");
}

static void other_mounts_are_passed_over(void **state)
{
    static const struct {
        const char *line;
        int result;
    } cases[] = {
        {"", -EBADMSG},
        {"36 25 0:31 /", -EBADMSG},
        {"36 25 0:31 / /proc rw shared:9 proc proc rw", -EBADMSG},
        {"36 25 0:31 / /proc rw - proc proc rw", -ENOENT},
        {"36 25 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset", -ENOENT},
        {"36 25 0:31 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct", -ENOENT},
        {"36 25 0:31 / /mnt/a\\040b rw - cgroup2 cgroup rw", -ENOENT},
        {"36 25 0:31 relative /mnt rw - cgroup2 cgroup rw", -ENOENT},
    };
    struct cpu_quota_mount mount = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(parse_mount(cases[i].line, &mount), cases[i].result);
    assert_null(mount.point.text);
}

static int parse_group(const char *text, bool *version_2, struct text_view *path)
{
    return cpu_quota_parse_group(text, strlen(text), version_2, path);
}

static void the_group_is_that_of_the_cpu_controller(void **state)
{
    struct text_view path;
    bool version_2;

    (void)state;
    assert_int_equal(
        parse_group("5:memory:/m\n4:cpuacct,cpu:/a:b/c\n1:name=systemd:/s\n0::/u\n", &version_2, &path), 0);
    assert_false(version_2);
    expect_view(path, "/a:b/c");
    assert_int_equal(parse_group("5:memory:/m\n0::/kubepods.slice/pod1\n", &version_2, &path), 0);
    assert_true(version_2);
    expect_view(path, "/kubepods.slice/pod1");
    assert_int_equal(parse_group("5:memory:/m\n", &version_2, &path), -ENOENT);
    assert_int_equal(parse_group("0::/../other\n", &version_2, &path), -ENOENT);
    assert_int_equal(parse_group("0::/a/..\n", &version_2, &path), -ENOENT);
    assert_int_equal(parse_group("0::/a..b/.c\n", &version_2, &path), 0);
    assert_int_equal(parse_group("0:/a\n", &version_2, &path), -EBADMSG);
    assert_int_equal(parse_group("", &version_2, &path), -ENOENT);
}

static int parse_stat(const char *text, struct cpu_quota_stat *stat)
{
    return cpu_quota_parse_stat(text, strlen(text), stat);
}

static void counts_of_both_versions(void **state)
{
    struct cpu_quota_stat stat;

    (void)state;
    assert_int_equal(
        parse_stat("nr_periods 4\nnr_throttled 3\nthrottled_time 3720113356\nnr_bursts 0\nburst_time 0\n",
                   &stat),
        0);
    assert_int_equal(stat.periods, 4);
    assert_int_equal(stat.throttled_periods, 3);
    assert_int_equal(stat.throttled_ns, 3720113356);
    assert_int_equal(parse_stat("usage_usec 7\nuser_usec 5\nsystem_usec 2\nnr_periods 40\nnr_throttled 9\n"
                                "throttled_usec 1234\nnr_bursts 0\nburst_usec 0\n",
                                &stat),
                     0);
    assert_int_equal(stat.throttled_ns, 1234000);
    assert_int_equal(parse_stat("usage_usec 7\nuser_usec 5\nsystem_usec 2\n", &stat), -ENODATA);
    assert_int_equal(parse_stat("nr_periods 4\nnr_throttled 3\nthrottled_usec 18446744073709551615\n", &stat),
                     -ENODATA);
    assert_int_equal(parse_stat("nr_periods 4\nnr_throttled x\nthrottled_usec 1\n", &stat), -ENODATA);
    assert_int_equal(stat.periods, 40);
}

static int parse_max(const char *text, struct cpu_quota_limit *limit)
{
    return cpu_quota_parse_max(text, strlen(text), limit);
}

static void limits(void **state)
{
    struct cpu_quota_limit limit;

    (void)state;
    assert_int_equal(parse_max("max 100000\n", &limit), 0);
    assert_int_equal(limit.quota_ns, 0);
    assert_int_equal(limit.period_ns, 100 * NS_PER_MS);
    assert_int_equal(parse_max("10000 1000000\n", &limit), 0);
    assert_int_equal(limit.quota_ns, 10 * NS_PER_MS);
    assert_int_equal(limit.period_ns, NS_PER_S);
    assert_int_equal(parse_max("10000\n", &limit), -EBADMSG);
    assert_int_equal(parse_max("-1 5\n", &limit), -EBADMSG);
    assert_int_equal(parse_max("18446744073709551615 1\n", &limit), -EBADMSG);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void limits_are_read_of_either_version(void **state)
{
    static const char *const names[] = {"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max"};
    char folder[] = "/tmp/stallgraph-quota-XXXXXX";
    struct cpu_quota_limit limit;
    char path[128];

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(cpu_quota_read_limit(folder, &limit), -ENOENT);
    write_file(folder, names[0], "-1\n");
    write_file(folder, names[1], "100000\n");
    assert_int_equal(cpu_quota_read_limit(folder, &limit), 0);
    assert_int_equal(limit.quota_ns, 0);
    write_file(folder, names[0], "25000\n");
    assert_int_equal(cpu_quota_read_limit(folder, &limit), 0);
    assert_int_equal(limit.quota_ns, 25 * NS_PER_MS);
    assert_int_equal(limit.period_ns, 100 * NS_PER_MS);
    write_file(folder, names[2], "50000 200000\n");
    assert_int_equal(cpu_quota_read_limit(folder, &limit), 0);
    assert_int_equal(limit.quota_ns, 50 * NS_PER_MS);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void own_group_is_found_below_the_mounted_one(void **state)
{
    char root[] = "/";
    char elsewhere[] = "/no/such/group";
    char point[] = "/somewhere";
    struct cpu_quota_mounts mounts = {.root = {root, root}, .point = {point, point}};
    size_t top_length = 0;
    char *folder = NULL;

    (void)state;
    if (access("/proc/self/cgroup", R_OK) != 0) {
        print_message("skipped: this kernel has no control groups\n");
        skip();
    }
    assert_int_equal(cpu_quota_find_folder(&mounts, getpid(), &folder, &top_length), 0);
    assert_int_equal(top_length, strlen(point));
    assert_memory_equal(folder, point, top_length);
    assert_true(folder[top_length] == '\0' || folder[top_length] == '/');
    assert_true(folder[strlen(folder) - 1] != '/');
    free(folder);
    mounts.root[0] = mounts.root[1] = elsewhere;
    assert_int_equal(cpu_quota_find_folder(&mounts, getpid(), &folder, &top_length), -ENOENT);
    mounts.root[0] = mounts.root[1] = NULL;
    assert_int_equal(cpu_quota_find_folder(&mounts, getpid(), &folder, &top_length), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mounts_of_both_versions),
        cmocka_unit_test(other_mounts_are_passed_over),
        cmocka_unit_test(the_group_is_that_of_the_cpu_controller),
        cmocka_unit_test(counts_of_both_versions),
        cmocka_unit_test(limits),
        cmocka_unit_test(limits_are_read_of_either_version),
        cmocka_unit_test(own_group_is_found_below_the_mounted_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
