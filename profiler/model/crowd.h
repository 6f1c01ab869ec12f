/* For how long many of a group's threads were held up at once: told by their timelines, not by averages, since a pool of
 * which each thread waits half of its time need never be without a free one.
 *
 *   crowd_add(&crowd, CROWD_ALIVE, thread->begin_ns, thread->end_ns);
 *   crowd_add(&crowd, CROWD_HELD, sample->start_ns, sample->start_ns + sample->weight_ns);
 *   uint64_t starved_ns = crowd_time_ns(&crowd, 90, 1);
 */
#ifndef STALLGRAPH_MODEL_CROWD_H
#define STALLGRAPH_MODEL_CROWD_H

#include <stddef.h>
#include <stdint.h>

enum crowd_part { CROWD_ALIVE, CROWD_HELD };

struct crowd_event {
    uint64_t time_ns;
    int32_t alive, held; /* by how many there are more from then on */
};

/* Zeroed is empty. */
struct crowd {
    struct crowd_event *items;
    size_t count;
    size_t capacity;
};

void crowd_finish(struct crowd *crowd);

/* One more from from_ns until to_ns. */
void crowd_add(struct crowd *crowd, enum crowd_part part, uint64_t from_ns, uint64_t to_ns);

/* How long at least so many were held at once, and at least that share of those alive. Sorts the events. */
uint64_t crowd_time_ns(struct crowd *crowd, unsigned percent, unsigned least);

#endif
