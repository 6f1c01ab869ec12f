#include "profiler/collect/perf_refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"

enum {
    FILE_LIMIT_BYTES = 16 * 1024,
    CAPABILITY_SYS_ADMIN = 21, /* linux/capability.h; PERFMON is younger than some headers */
    CAPABILITY_PERFMON = 38,
    MOST_PARANOID_FOR_OWN = 2, /* up to here anybody may sample the user side of his own processes */
};

/* Inode numbers of the first namespaces: fixed by the kernel, include/linux/proc_ns.h. */
static const ino_t first_user_namespace = 0xEFFFFFFD, first_pid_namespace = 0xEFFFFFFC;

static char *read_small(const char *path)
{
    char *text;
    size_t length;
    return file_read(AT_FDCWD, path, FILE_LIMIT_BYTES, &text, &length) == 0 ? text : NULL;
}

static long read_number(const char *path, long otherwise)
{
    AUTO_FREE char *text = read_small(path);
    char *end;
    if (text == NULL)
        return otherwise;
    long number = strtol(text, &end, 10);
    return end != text ? number : otherwise;
}

/* "CapEff:\t000001ffffffffff": the number of a line of /proc/self/status. */
static uint64_t status_number(const char *status, const char *key, int base)
{
    const char *line = strstr(status, key);
    return line != NULL ? strtoull(line + strlen(key), NULL, base) : 0;
}

static bool in_another(const char *link, ino_t first)
{
    struct stat st;
    return stat(link, &st) == 0 && st.st_ino != first;
}

void perf_privileges_read(struct perf_privileges *ret_privileges)
{
    struct perf_privileges p = {
        .paranoid = (int)read_number("/proc/sys/kernel/perf_event_paranoid", PERF_PARANOID_UNKNOWN),
        .mlock_kb = read_number("/proc/sys/kernel/perf_event_mlock_kb", -1),
        .user_namespace = in_another("/proc/self/ns/user", first_user_namespace),
        .pid_namespace = in_another("/proc/self/ns/pid", first_pid_namespace),
    };
    AUTO_FREE char *status = read_small("/proc/self/status");
    if (status != NULL) {
        uint64_t effective = status_number(status, "\nCapEff:", 16);
        p.capable = ((effective >> CAPABILITY_PERFMON | effective >> CAPABILITY_SYS_ADMIN) & 1) != 0;
        p.seccomp = status_number(status, "\nSeccomp:", 10) != 0;
    }
    AUTO_FREE char *lockdown = read_small("/sys/kernel/security/lockdown");
    p.lockdown = lockdown != NULL && strstr(lockdown, "[confidentiality]") != NULL;
    *ret_privileges = p;
}

static int explain_not_permitted(struct error *err, int code, const struct perf_privileges *p,
                                 const char *what)
{
    if (p->capable && p->user_namespace) {
        error_say(err, code,
                  "%s: not permitted: capabilities of a user namespace do not count for perf events", what);
        return error_hint(err, "run stallgraph on the host, as root");
    }
    if (p->capable && p->lockdown) {
        error_say(err, code, "%s: not permitted: the kernel is locked down (confidentiality)", what);
        return error_hint(err, "boot without lockdown=confidentiality");
    }
    /* Of its own accord the kernel says EACCES; filters say EPERM as a rule. */
    if (p->seccomp && code == -EPERM && (p->capable || p->paranoid <= MOST_PARANOID_FOR_OWN)) {
        error_say(err, code, "%s: not permitted: a seccomp filter forbids perf_event_open", what);
        return error_hint(err, "allow it in the container's seccomp profile, or run stallgraph on the host");
    }
    if (!p->capable && p->paranoid > MOST_PARANOID_FOR_OWN) {
        error_say(err, code, "%s: not permitted: kernel.perf_event_paranoid is %d", what, p->paranoid);
        return error_hint(err, "run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid to 1%s",
                          p->seccomp ? "; a seccomp filter is in force too and may forbid perf_event_open"
                                     : "");
    }
    if (!p->capable) {
        error_say(err, code, "%s: not permitted: it belongs to another user or must not be traced", what);
        return error_hint(err, "run as root, or as its user");
    }
    return error_set(err, code, "%s", what);
}

int perf_refusal_explain(struct error *err, int code, const struct perf_privileges *privileges,
                         const char *what)
{
    switch (-code) {
    case EPERM:
    case EACCES:
        return explain_not_permitted(err, code, privileges, what);
    case ENOSYS:
        if (privileges->seccomp) {
            error_say(err, code, "%s: a seccomp filter forbids perf_event_open", what);
            return error_hint(err,
                              "allow it in the container's seccomp profile, or run stallgraph on the host");
        }
        return error_say(err, code, "%s: this kernel has no perf events (CONFIG_PERF_EVENTS)", what);
    case ESRCH:
        return error_say(err, code, "%s: no such process", what);
    case EMFILE:
    case ENFILE:
        error_set(err, code, "%s", what);
        return error_hint(err, "raise the limit of open files (ulimit -n; fs.file-max)");
    case EBUSY:
        error_say(err, code, "%s: the CPU's counters are in use by somebody else", what);
        return error_hint(err, "end the other profiler");
    default:
        return error_set(err, code, "%s", what);
    }
}

int perf_refusal_explain_ring(struct error *err, int code, const struct perf_privileges *privileges)
{
    error_set(err, code, "map the ring buffers of perf events");
    if (code == -EPERM || code == -EAGAIN)
        return error_hint(
            err, "raise kernel.perf_event_mlock_kb (now %ld) or the limit of locked memory (ulimit -l)",
            privileges->mlock_kb);
    return code;
}

int perf_refusal_explain_files(struct error *err, unsigned long needed, unsigned long allowed)
{
    error_say(err, -EMFILE, "too many open files: the events need %lu file descriptors, %lu are allowed",
              needed, allowed);
    return error_hint(err, "raise the hard limit (ulimit -Hn %lu), or run as root or with CAP_PERFMON",
                      needed);
}
