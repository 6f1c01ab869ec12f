/* Decides which events can be had, and opens them: CPU-wide ones where these are permitted, else one a thread
 * and CPU. */
#ifndef STALLGRAPH_COLLECT_PERF_SCOPE_H
#define STALLGRAPH_COLLECT_PERF_SCOPE_H

#include "profiler/base/error.h"
#include "profiler/base/id_map.h"
#include "profiler/collect/perf_event_set.h"
#include "profiler/collect/perf_filter.h"
#include "profiler/collect/perf_options.h"

struct perf_scope {
    struct perf_event_set set;
    struct perf_filter *filter; /* NULL when nothing is filtered in the kernel */
    struct id_map opened_tids;  /* thread -> enum perf_thread_events */
    struct perf_capture_choice choice;
};

/* Fills *ret_scope, to be released with perf_scope_finish. Returns 0, or -errno with a message and nothing to
 * release. */
int perf_scope_open(const struct perf_capture_options *options, struct perf_scope *ret_scope,
                    struct error *err);
void perf_scope_finish(struct perf_scope *scope);

#endif
