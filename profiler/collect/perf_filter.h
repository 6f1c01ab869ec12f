/* BPF programs that keep foreign processes out of perf's rings in the kernel, before their stacks are copied.
 *
 *   struct perf_filter *filter;
 *   int r = perf_filter_create(true, &filter, &err);
 *   perf_filter_add(filter, pid);
 *   perf_filter_attach(filter, event_fd);        // holds as long as the event
 */
#ifndef STALLGRAPH_COLLECT_PERF_FILTER_H
#define STALLGRAPH_COLLECT_PERF_FILTER_H

#include <stdbool.h>
#include <sys/types.h>

#include "profiler/base/error.h"
#include "profiler/collect/perf_record.h"

struct perf_filter;

/* children: a process whose parent, or that one's parent, is wanted passes too. Returns 0, or -errno with a
 * message: -EOPNOTSUPP when it was built without BPF, -EPERM when BPF is not permitted. */
int perf_filter_create(bool children, struct perf_filter **ret_filter, struct error *err);
void perf_filter_destroy(
    struct perf_filter *filter); /* NULL allowed; events that it is attached to keep it */

int perf_filter_add(const struct perf_filter *filter,
                    pid_t pid); /* 0 or -errno; -E2BIG: too many processes */
void perf_filter_remove(const struct perf_filter *filter, pid_t pid);

/* From now on the event's samples of other processes are dropped. It must be of type software or hardware: a
 * tracepoint would be filtered for everybody. Returns 0 or -errno. */
int perf_filter_attach(const struct perf_filter *filter, int event_fd);

/* The events below are of type PERF_COUNT_SW_BPF_OUTPUT, CPU-wide: the programs have them take samples. */

/* Each time that trigger_fd (on the same CPU) overflows in a wanted process, output_fd takes a sample;
 * trigger_fd itself takes none. Returns 0 or -errno. */
int perf_filter_attach_stack(const struct perf_filter *filter, int trigger_fd, int output_fd, int cpu);

/* Whether the programs that stand for the scheduler's tracepoints could be loaded (Linux 5.18 and newer). */
bool perf_filter_has_scheduler(const struct perf_filter *filter);
/* Where the CPU's switches from or to wanted threads, and wake-ups of these, are to go. Returns 0 or -errno.
 */
int perf_filter_set_switch_output(const struct perf_filter *filter, int output_fd, int cpu);
int perf_filter_set_wakeup_output(const struct perf_filter *filter, int output_fd, int cpu);
/* From now on, until the filter is destroyed, these are written. Returns 0 or -errno. */
int perf_filter_start_scheduler(struct perf_filter *filter);
/* The raw bytes of their samples. */
extern const struct perf_tracepoint_layout perf_filter_scheduler_layout;

#endif
