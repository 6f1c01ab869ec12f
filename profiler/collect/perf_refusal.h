/* Why perf_event_open(2) or a ring's mmap(2) was refused, and what to do about it. */
#ifndef STALLGRAPH_COLLECT_PERF_REFUSAL_H
#define STALLGRAPH_COLLECT_PERF_REFUSAL_H

#include <stdbool.h>

#include "profiler/base/error.h"

enum { PERF_PARANOID_UNKNOWN = -1000 };

/* What this process may and may not, as far as it bears on perf events. */
struct perf_privileges {
    int paranoid;        /* /proc/sys/kernel/perf_event_paranoid, or PERF_PARANOID_UNKNOWN */
    long mlock_kb;       /* /proc/sys/kernel/perf_event_mlock_kb, or -1 */
    bool capable;        /* CAP_PERFMON or CAP_SYS_ADMIN is effective */
    bool user_namespace; /* not the first one: its capabilities do not count */
    bool pid_namespace;  /* not the first one: tracepoints and BPF programs tell other numbers than ours */
    bool seccomp;        /* a seccomp filter is in force */
    bool lockdown;       /* kernel lockdown, level confidentiality */
};

void perf_privileges_read(struct perf_privileges *ret_privileges);

/* Pure: sets err for the refusal of what (such as "sample process 42"). code is a negative errno. Returns
 * code. */
int perf_refusal_explain(struct error *err, int code, const struct perf_privileges *privileges,
                         const char *what);
/* The same for a ring's mmap. */
int perf_refusal_explain_ring(struct error *err, int code, const struct perf_privileges *privileges);
/* Too few file descriptors: how many are needed and how many may be had. */
int perf_refusal_explain_files(struct error *err, unsigned long needed, unsigned long allowed);

#endif
