#include "profiler/collect/event_order.h"

#include <stdlib.h>

#include "profiler/base/clock.h"
#include "profiler/base/memory.h"

enum {
    REFRESH_INTERVAL = 256, /* records between two looks at how full the rings are: a pass can last long */
    NO_RING = -1,
};

/* Passes that follow each other faster than this share a horizon: a CPU of a virtual machine can be held up
 * between taking a record's time and publishing it. */
static const uint64_t min_hold_ns = 1 * NS_PER_MS;

struct ring_state {
    struct perf_ring *ring;
    uint64_t head_ns; /* time of the oldest record, when the ring is in the heap */
    uint64_t last_ns;
    bool in_heap;
    bool crowded; /* more than half full */
};

struct event_order {
    const struct perf_layout *layout;
    struct ring_state *states;
    size_t count;
    size_t *heap; /* indices of rings that hold a record, the oldest first */
    size_t heap_count;
    long given_out; /* the ring whose record was given out last, or NO_RING */
    size_t crowded_count;
    uint64_t horizon_ns;
    uint64_t candidate_ns; /* a pass began then; becomes the horizon of a later one */
    bool draining;
    unsigned until_refresh;
    uint64_t latest_ns, late_count;
};

struct event_order *event_order_create(struct perf_ring *rings, size_t ring_count,
                                       const struct perf_layout *layout)
{
    struct event_order *order = memory_zeroed(1, sizeof *order);
    order->layout = layout;
    order->states = memory_zeroed(ring_count, sizeof *order->states);
    order->heap = memory_zeroed(ring_count, sizeof *order->heap);
    order->count = ring_count;
    order->given_out = NO_RING;
    for (size_t i = 0; i < ring_count; i++)
        order->states[i].ring = &rings[i];
    return order;
}

void event_order_destroy(struct event_order *order)
{
    if (order == NULL)
        return;
    free(order->states);
    free(order->heap);
    free(order);
}

static bool older(const struct event_order *order, size_t a, size_t b)
{
    uint64_t a_ns = order->states[a].head_ns, b_ns = order->states[b].head_ns;
    return a_ns != b_ns ? a_ns < b_ns : a < b;
}

static void sift_down(struct event_order *order)
{
    size_t *heap = order->heap;
    size_t at = 0;
    for (;;) {
        size_t least = at, left = 2 * at + 1, right = left + 1;
        if (left < order->heap_count && older(order, heap[left], heap[least]))
            least = left;
        if (right < order->heap_count && older(order, heap[right], heap[least]))
            least = right;
        if (least == at)
            return;
        size_t moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

static void push(struct event_order *order, size_t index)
{
    size_t *heap = order->heap;
    size_t at = order->heap_count++;
    while (at > 0 && older(order, index, heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = index;
    order->states[index].in_heap = true;
}

static void note_crowding(struct event_order *order, struct ring_state *state)
{
    bool crowded = perf_ring_used_bytes(state->ring) > state->ring->size_bytes / 2;
    if (crowded != state->crowded)
        order->crowded_count += crowded ? 1 : (size_t)-1;
    state->crowded = crowded;
}

/* Reads the time of the ring's oldest record; false when it has none. */
static bool look_at_head(struct event_order *order, struct ring_state *state)
{
    size_t size_bytes;
    const void *bytes = perf_ring_peek(state->ring, &size_bytes);
    if (bytes == NULL)
        return false;
    state->head_ns = perf_record_time(bytes, size_bytes, order->layout);
    if (state->head_ns == 0) /* it does not tell: right after the one before it */
        state->head_ns = state->last_ns;
    return true;
}

static void refresh(struct event_order *order)
{
    order->until_refresh = REFRESH_INTERVAL;
    for (size_t i = 0; i < order->count; i++) {
        struct ring_state *state = &order->states[i];
        if (state->ring->page == NULL)
            continue;
        perf_ring_refresh(state->ring);
        if (!state->in_heap && look_at_head(order, state))
            push(order, i);
        note_crowding(order, state);
    }
}

static void consume_given_out(struct event_order *order)
{
    if (order->given_out == NO_RING)
        return;
    /* Still at the top: nothing has been pushed or taken since. */
    struct ring_state *state = &order->states[order->given_out];
    order->given_out = NO_RING;
    perf_ring_consume(state->ring);
    if (!look_at_head(order, state)) {
        state->in_heap = false;
        order->heap[0] = order->heap[--order->heap_count];
    }
    note_crowding(order, state);
    sift_down(order);
}

void event_order_begin_pass(struct event_order *order, uint64_t now_ns)
{
    consume_given_out(order);
    if (order->candidate_ns == 0 || now_ns - order->candidate_ns >= min_hold_ns) {
        order->horizon_ns = order->candidate_ns;
        order->candidate_ns = now_ns;
    }
    refresh(order);
}

void event_order_drain(struct event_order *order)
{
    order->draining = true;
}

static void release_all(const struct event_order *order)
{
    for (size_t i = 0; i < order->count; i++) {
        if (order->states[i].ring->page != NULL)
            perf_ring_release(order->states[i].ring);
    }
}

bool event_order_next(struct event_order *order, struct ordered_record *ret_record)
{
    consume_given_out(order);
    if (order->until_refresh-- == 0)
        refresh(order);
    if (order->heap_count == 0) {
        release_all(order);
        return false;
    }
    size_t index = order->heap[0];
    struct ring_state *state = &order->states[index];
    if (state->head_ns > order->horizon_ns && order->crowded_count == 0 && !order->draining) {
        release_all(order);
        return false;
    }

    struct ordered_record record = {.time_ns = state->head_ns, .previous_ns = state->last_ns, .ring = index};
    record.bytes = perf_ring_peek(state->ring, &record.size_bytes);
    order->given_out = (long)index;
    state->last_ns = state->head_ns;
    if (state->head_ns < order->latest_ns)
        order->late_count++;
    else
        order->latest_ns = state->head_ns;
    *ret_record = record;
    return true;
}

uint64_t event_order_last_ns(const struct event_order *order, size_t ring)
{
    return order->states[ring].last_ns;
}

uint64_t event_order_late_count(const struct event_order *order)
{
    return order->late_count;
}
