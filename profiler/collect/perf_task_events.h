/* Events on every thread of some processes, one for each thread and CPU: the kernel gives an event that new
 * threads inherit no ring unless it is bound to a CPU. */
#ifndef STALLGRAPH_COLLECT_PERF_TASK_EVENTS_H
#define STALLGRAPH_COLLECT_PERF_TASK_EVENTS_H

#include <stddef.h>
#include <sys/types.h>

#include "profiler/base/error.h"
#include "profiler/base/id_map.h"
#include "profiler/collect/perf_event_set.h"
#include "profiler/collect/perf_refusal.h"

struct perf_task_event {
    struct perf_event_spec spec;
    enum perf_ring_class ring_class;
};

/* Values of opened_tids. */
enum perf_thread_events { PERF_THREAD_REFUSED, PERF_THREAD_OWN };

struct perf_task_plan {
    const pid_t *pids;
    size_t pid_count;
    const struct perf_task_event *events; /* opened for each thread */
    size_t event_count;
};

/* Opens them all, with RLIMIT_NOFILE raised as far as needed; a thread that ends meanwhile is left out. A
 * thread that is born meanwhile may have inherited events as well as get its own: *opened_tids tells which
 * threads have their own. Returns 0, or -errno with a message: when no thread at all could be had, or the
 * descriptors do not suffice. *ret_refused: threads that may not be sampled, of others that may. */
int perf_task_events_open(struct perf_event_set *set, const struct perf_task_plan *plan,
                          const struct perf_privileges *privileges, struct id_map *opened_tids,
                          size_t *ret_refused, struct error *err);

#endif
