#include "profiler/model/span_list.h"

#include <stdlib.h>
#include <string.h>

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

void span_list_resolve_back(struct span_list *list, enum thread_state state)
{
    uint32_t stack = SPAN_NO_STACK;
    uint64_t seen_ns = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct span *span = &list->spans[i];

        if (span->state != state)
            continue;
        if (span->stack == SPAN_NO_STACK && stack != SPAN_NO_STACK &&
            span->start_ns <= seen_ns + look_ahead_ns) {
            span->stack = stack;
        } else {
            stack = span->stack;
            seen_ns = span->start_ns + span->duration_ns;
        }
    }
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

/* In two at time_ns, which lies within the span. */
static void split(struct span_list *list, size_t index, uint64_t time_ns)
{
    struct span *span;

    list->spans = vec_reserve(list->spans, &list->capacity, list->count + 1, sizeof *list->spans);
    span = &list->spans[index];
    memmove(span + 1, span, (list->count - index) * sizeof *span);
    list->count++;
    span[1].start_ns = time_ns;
    span[1].duration_ns -= time_ns - span->start_ns;
    span->duration_ns = time_ns - span->start_ns;
    for (int state = 0; state < STATE_COUNT; state++)
        if (list->first_unresolved[state] > index)
            list->first_unresolved[state]++;
}

void span_list_change(struct span_list *list, const struct span_change *change)
{
    uint64_t left_ns = change->since_ns < change->until_ns ? change->limit_ns : 0;

    for (size_t i = list->count; i-- > 0 && left_ns > 0;) {
        uint64_t begin_ns = list->spans[i].start_ns;
        uint64_t end_ns = begin_ns + list->spans[i].duration_ns;
        size_t changed = i;

        if (end_ns <= change->since_ns)
            return;
        if (list->spans[i].state != change->state || begin_ns >= change->until_ns)
            continue;
        if (end_ns > change->until_ns) {
            split(list, i, change->until_ns);
            end_ns = change->until_ns;
        }
        if (begin_ns < change->since_ns)
            begin_ns = change->since_ns;
        if (end_ns - begin_ns > left_ns)
            begin_ns = end_ns - left_ns;
        if (begin_ns > list->spans[i].start_ns) {
            split(list, i, begin_ns);
            changed = i + 1;
        }
        list->spans[changed].stack = change->stack(change->context, list->spans[changed].stack);
        left_ns -= end_ns - begin_ns;
    }
}
