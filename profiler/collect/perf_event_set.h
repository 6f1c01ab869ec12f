/* Events that are open together, and the rings they write to: one or two a CPU.
 *
 *   perf_event_set_init(&set);
 *   perf_event_set_map_rings(&set, &plan, &privileges, &err);
 *   perf_event_set_add(&set, &spec, tid, cpu_index, PERF_RING_STACKS, owner);    // for each event and CPU
 *   perf_event_set_enable(&set, &err);
 */
#ifndef STALLGRAPH_COLLECT_PERF_EVENT_SET_H
#define STALLGRAPH_COLLECT_PERF_EVENT_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/base/error.h"
#include "profiler/base/id_map.h"
#include "profiler/base/vec.h"
#include "profiler/collect/perf_event.h"
#include "profiler/collect/perf_record.h"
#include "profiler/collect/perf_refusal.h"
#include "profiler/collect/perf_ring.h"

/* Stacks have a ring of their own, so that a flood of them never costs the exact times. */
enum perf_ring_class { PERF_RING_EXACT, PERF_RING_STACKS, PERF_RING_CLASS_COUNT };

struct perf_event_handle {
    int fd;
    size_t ring; /* index; SIZE_MAX = none */
};

struct perf_event_set {
    int *cpus;
    size_t cpu_count;
    VEC_OF(struct perf_event_handle) events;
    struct perf_ring *rings; /* by perf_event_set_ring(); an unused one has page == NULL */
    int *ring_fds;           /* of the events that were mapped; -1 for an unused ring */
    size_t ring_count;
    uint32_t wakeup_bytes[PERF_RING_CLASS_COUNT];
    struct id_map source_by_id;
    struct id_map
        owner_by_id; /* PERF_SAMPLE_ID -> thread for which the event was opened; none for a CPU-wide one */
    struct perf_layout
        layout; /* what the records of these events look like; the tracepoint part is the caller's */
};

void perf_event_set_init(struct perf_event_set *set);
void perf_event_set_finish(struct perf_event_set *set); /* zeroed allowed */

/* What the rings are mapped on: one event a CPU and class. */
struct perf_ring_plan {
    pid_t tid; /* -1: CPU-wide; 0: the calling thread, in every CPU */
    struct perf_event_spec spec[PERF_RING_CLASS_COUNT]; /* source PERF_SOURCE_DUMMY */
    size_t bytes[PERF_RING_CLASS_COUNT];                /* a power of two to begin with, 0 = no such ring */
};

/* Opens these events and maps their rings, smaller ones when the limit of locked memory demands it. Returns
 * the bytes of all rings, or -errno with a message. */
int64_t perf_event_set_map_rings(struct perf_event_set *set, const struct perf_ring_plan *plan,
                                 const struct perf_privileges *privileges, struct error *err);

/* Opens an event whose records go to that ring. tid and owner: -1 and 0 for a CPU-wide one. Returns its fd,
 * which the set keeps, or -errno. */
int perf_event_set_add(struct perf_event_set *set, const struct perf_event_spec *spec, pid_t tid,
                       size_t cpu_index, enum perf_ring_class ring_class, pid_t owner_tid);

/* Keeps an event that writes to no ring, to be switched on and off and closed with the others. */
void perf_event_set_keep(struct perf_event_set *set, int fd);

int perf_event_set_enable(const struct perf_event_set *set, struct error *err);
void perf_event_set_disable(const struct perf_event_set *set);

/* Records that did not fit in that ring since its events were opened, by the kernel's count; 0 when it has
 * none. */
uint64_t perf_event_set_lost(const struct perf_event_set *set, size_t ring);

static inline size_t perf_event_set_ring(size_t cpu_index, enum perf_ring_class ring_class)
{
    return cpu_index * PERF_RING_CLASS_COUNT + (size_t)ring_class;
}

static inline enum perf_ring_class perf_event_set_ring_class(size_t ring)
{
    return (enum perf_ring_class)(ring % PERF_RING_CLASS_COUNT);
}

#endif
