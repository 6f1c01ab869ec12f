/* Merges the records of several rings by time, where they lie, without copying them.
 *
 *   event_order_begin_pass(order, clock_now_ns());
 *   while (event_order_next(order, &record)) ...   // the view is valid until the next call
 *
 * An older record of another CPU may still be on its way when the rings are read. So a pass gives out only
 * records up to a horizon: the time at which the pass before it began, which was before the heads were read
 * now. A ring that is more than half full lifts the horizon, in time order over all rings, until it is half
 * empty: a record out of order does less harm than lost ones. Within one ring an interrupt can write its
 * record before that of the code which it interrupted, with a later time: such records come out as they lie.
 */
#ifndef STALLGRAPH_COLLECT_EVENT_ORDER_H
#define STALLGRAPH_COLLECT_EVENT_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/collect/perf_record.h"
#include "profiler/collect/perf_ring.h"

struct ordered_record {
    const void *bytes;
    size_t size_bytes;
    uint64_t time_ns;
    uint64_t previous_ns; /* time of the record before it in the same ring; 0 when it is the first */
    size_t ring;          /* index */
};

struct event_order;

/* Borrows both; rings that are not mapped (page == NULL) are left out. */
struct event_order *event_order_create(struct perf_ring *rings, size_t ring_count,
                                       const struct perf_layout *layout);
void event_order_destroy(struct event_order *order); /* NULL allowed */

/* Reads the heads of all rings; now_ns was taken before the call. */
void event_order_begin_pass(struct event_order *order, uint64_t now_ns);
/* No more holding back: the events are off. */
void event_order_drain(struct event_order *order);
/* Consumes the record given out before, and gives out the next; false at the end of the pass. */
bool event_order_next(struct event_order *order, struct ordered_record *ret_record);

/* Time of the last record that a ring gave out; 0 when there was none. */
uint64_t event_order_last_ns(const struct event_order *order, size_t ring);
/* Records that came out after one with a later time. */
uint64_t event_order_late_count(const struct event_order *order);

#endif
