/* CPU quotas of control groups, and how often they were used up: cgroups(7); the kernel's Documentation,
 * admin-guide/cgroup-v2.rst (cpu.max, cpu.stat) and scheduler/sched-bwc.rst (the same in version 1).
 *
 *   cpu_quota_find_mounts(&mounts);
 *   r = cpu_quota_find_folder(&mounts, pid, &folder, &top_length);   // "/sys/fs/cgroup/a/b"
 *   fd = cpu_quota_open_stat(folder);                                // of it, and of its parents down to top_length
 *   r = cpu_quota_read_stat(fd, &stat);
 *
 * What is not mounted, or lies outside our cgroup namespace, is not found: -ENOENT. */
#ifndef STALLGRAPH_COLLECT_CPU_QUOTA_H
#define STALLGRAPH_COLLECT_CPU_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The kernel counts all three when a period ends, not meanwhile. */
struct cpu_quota_stat {
    uint64_t periods; /* in which somebody of the group wanted to run */
    uint64_t throttled_periods;
    uint64_t throttled_ns; /* summed over CPUs */
};

struct cpu_quota_limit {
    uint64_t quota_ns; /* of CPU time in each period, all CPUs together; 0 = none */
    uint64_t period_ns;
};

struct text_view {
    const char *text;
    size_t length;
};

/* A line of /proc/self/mountinfo that is about a hierarchy with CPU quotas; views of the line. */
struct cpu_quota_mount {
    bool version_2;
    struct text_view root; /* the group that is mounted, "/" as a rule */
    struct text_view point;
};

/* Pure: "36 25 0:31 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct", a newline may follow.
 * -ENOENT when it is about something else, -EBADMSG when it is no such line. */
int cpu_quota_parse_mount(const char *line, size_t length, struct cpu_quota_mount *ret_mount);

/* Pure: the text of /proc/PID/cgroup: "4:cpu,cpuacct:/a/b\n", else "0::/a/b\n". A path that leads out of our cgroup namespace
 * ("/../x") is -ENOENT. */
int cpu_quota_parse_group(const char *text, size_t length, bool *ret_version_2, struct text_view *ret_path);

/* Pure: the text of cpu.stat. -ENODATA: there is no quota at this level. */
int cpu_quota_parse_stat(const char *text, size_t length, struct cpu_quota_stat *ret_stat);

/* Pure: the text of cpu.max: "10000 1000000\n" in microseconds, or "max 100000\n". */
int cpu_quota_parse_max(const char *text, size_t length, struct cpu_quota_limit *ret_limit);

/* Where groups are mounted; NULL where they are not. */
struct cpu_quota_mounts {
    char *root[2]; /* by version_2 */
    char *point[2];
};

void cpu_quota_find_mounts(struct cpu_quota_mounts *mounts);
void cpu_quota_free_mounts(struct cpu_quota_mounts *mounts);

/* The folder of the process's group, which the caller frees; *ret_top_length: the beginning of it that is the mount point.
 */
int cpu_quota_find_folder(const struct cpu_quota_mounts *mounts, pid_t pid, char **ret_folder,
                          size_t *ret_top_length);
int cpu_quota_open_stat(const char *folder); /* an fd, or -errno */
int cpu_quota_read_stat(int fd, struct cpu_quota_stat *ret_stat);
int cpu_quota_read_limit(const char *folder, struct cpu_quota_limit *ret_limit);

#endif
