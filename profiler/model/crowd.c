#include "profiler/model/crowd.h"

#include <stdlib.h>

#include "profiler/base/vec.h"

void crowd_finish(struct crowd *crowd)
{
    free(crowd->items);
    *crowd = (struct crowd){0};
}

void crowd_add(struct crowd *crowd, enum crowd_part part, uint64_t from_ns, uint64_t to_ns)
{
    struct crowd_event begin = {.time_ns = from_ns};
    struct crowd_event end = {.time_ns = to_ns};

    if (to_ns <= from_ns)
        return;
    if (part == CROWD_ALIVE) {
        begin.alive = 1;
        end.alive = -1;
    } else {
        begin.held = 1;
        end.held = -1;
    }
    VEC_PUSH(crowd, begin);
    VEC_PUSH(crowd, end);
}

static int compare_times(const void *left, const void *right)
{
    const struct crowd_event *a = left;
    const struct crowd_event *b = right;

    return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

uint64_t crowd_time_ns(struct crowd *crowd, unsigned percent, unsigned least)
{
    int64_t alive = 0;
    int64_t held = 0;
    uint64_t time_ns = 0;

    if (crowd->count == 0)
        return 0;
    qsort(crowd->items, crowd->count, sizeof *crowd->items, compare_times);
    for (size_t i = 0; i + 1 < crowd->count; i++) {
        alive += crowd->items[i].alive;
        held += crowd->items[i].held;
        /* Between events of one moment no time passes, so a half-applied moment counts for nothing. */
        if (held >= (int64_t)least && held * 100 >= alive * (int64_t)percent)
            time_ns += crowd->items[i + 1].time_ns - crowd->items[i].time_ns;
    }
    return time_ns;
}
