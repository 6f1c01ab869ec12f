#include "profiler/model/span_list.h"

#include <stdlib.h>

#include "profiler/base/clock.h"
#include "profiler/base/vec.h"

/* How far time without a stack may look ahead for one. */
static const uint64_t look_ahead_ns = NS_PER_S;

void span_list_finish(struct span_list *list)
{
    free(list->spans);
    *list = (struct span_list){0};
}

void span_list_add(struct span_list *list, uint64_t from_ns, uint64_t to_ns, enum thread_state state,
                   uint32_t stack)
{
    struct span *last = list->count > 0 ? &list->spans[list->count - 1] : NULL;

    if (from_ns >= to_ns)
        return;
    if (last != NULL && last->state == state && last->stack == stack &&
        last->start_ns + last->duration_ns == from_ns) {
        last->duration_ns += to_ns - from_ns;
        return;
    }
    list->spans = vec_reserve(list->spans, &list->capacity, list->count + 1, sizeof *list->spans);
    list->spans[list->count++] = (struct span){
        .start_ns = from_ns,
        .duration_ns = to_ns - from_ns,
        .stack = stack,
        .state = state,
    };
}

static uint64_t span_list_end_ns(const struct span_list *list)
{
    const struct span *last = list->count > 0 ? &list->spans[list->count - 1] : NULL;

    return last != NULL ? last->start_ns + last->duration_ns : 0;
}

void span_list_cut(struct span_list *list, uint64_t end_ns)
{
    while (span_list_end_ns(list) > end_ns) {
        struct span *last = &list->spans[list->count - 1];

        if (last->start_ns < end_ns)
            last->duration_ns = end_ns - last->start_ns;
        else
            list->count--;
    }
    for (int state = 0; state < STATE_COUNT; state++) {
        if (list->first_unresolved[state] > list->count)
            list->first_unresolved[state] = list->count;
    }
}

void span_list_doubt(struct span_list *list, uint64_t since_ns)
{
    uint64_t end_ns = span_list_end_ns(list);
    uint64_t first_ns = list->count > 0 ? list->spans[0].start_ns : 0;

    span_list_cut(list, since_ns);
    span_list_add(list, since_ns > first_ns ? since_ns : first_ns, end_ns, STATE_UNKNOWN, SPAN_NO_STACK);
}

void span_list_resolve(struct span_list *list, enum thread_state state, uint64_t time_ns, uint32_t stack)
{
    for (size_t i = list->first_unresolved[state]; i < list->count; i++) {
        struct span *span = &list->spans[i];

        if (span->state == state && span->stack == SPAN_NO_STACK &&
            span->start_ns + span->duration_ns + look_ahead_ns >= time_ns)
            span->stack = stack;
    }
    list->first_unresolved[state] = list->count;
}
