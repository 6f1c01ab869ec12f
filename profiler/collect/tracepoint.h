/* Ids and field offsets of the scheduler's tracepoints, from tracefs. A line of a "format" file
 * (Documentation/trace/events.rst, section 5.1):
 *   	field:pid_t prev_pid;	offset:24;	size:4;	signed:1; */
#ifndef STALLGRAPH_COLLECT_TRACEPOINT_H
#define STALLGRAPH_COLLECT_TRACEPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/base/error.h"
#include "profiler/collect/perf_record.h"

struct tracepoint_field {
    uint16_t offset, size_bytes;
};

/* Pure: finds the field of that name in the text of a format file. Returns 0, -ENOENT when there is none, or
 * -EBADMSG when its line makes no sense. */
int tracepoint_find_field(const char *text, size_t length, const char *name,
                          struct tracepoint_field *ret_field);

struct tracepoint_ids {
    uint64_t sched_switch, sched_wakeup, sched_wakeup_new;
};

/* Reads tracefs where it is mounted, else on a mount of our own that no path leads to and that is gone on
 * return. Returns 0, or -errno with a message that names the cause. */
int tracepoint_read(struct tracepoint_ids *ret_ids, struct perf_tracepoint_layout *ret_layout,
                    struct error *err);

#endif
