#include "profiler/model/span_budget.h"

#include <string.h>

#include "profiler/base/clock.h"
#include "profiler/base/memory.h"

enum { MERGE_WINDOW = 64 }; /* how far back in a slice an equal span is looked for */

static const uint64_t first_slice_ns = 50 * NS_PER_MS;
static const uint64_t longest_slice_ns = 60 * NS_PER_S;
static const uint64_t untouched_ns = 2 * NS_PER_S;

static size_t total_spans(struct span_list *(*list_at)(void *owner, size_t index), void *owner,
                          size_t list_count)
{
    size_t total = 0;

    for (size_t i = 0; i < list_count; i++)
        total += list_at(owner, i)->count;
    return total;
}

/* The spans that end early enough; they stand in time order. */
static size_t count_old(const struct span_list *list)
{
    const struct span *last = &list->spans[list->count - 1];
    uint64_t end_ns = last->start_ns + last->duration_ns;
    size_t count = 0;

    while (count < list->count &&
           list->spans[count].start_ns + list->spans[count].duration_ns + untouched_ns <= end_ns)
        count++;
    return count;
}

/* An equal span of the slice that begins at first, or NULL. */
static struct span *find_equal(struct span *spans, size_t first, size_t count, const struct span *wanted)
{
    size_t stop = count - first > MERGE_WINDOW ? count - MERGE_WINDOW : first;

    for (size_t i = count; i-- > stop;)
        if (spans[i].stack == wanted->stack && spans[i].state == wanted->state)
            return &spans[i];
    return NULL;
}

/* Durations have grown: each span begins where the one before it ends. */
static void restack(struct span *spans, size_t first, size_t count)
{
    for (size_t i = first + 1; i < count; i++)
        spans[i].start_ns = spans[i - 1].start_ns + spans[i - 1].duration_ns;
}

/* In place: what is written never overtakes what is read. Returns how many are left. */
static size_t merge_slices(struct span *spans, size_t count, uint64_t slice_ns)
{
    size_t written = 0;
    size_t slice_first = 0;
    uint64_t slice = UINT64_MAX;

    for (size_t i = 0; i < count; i++) {
        struct span span = spans[i];
        struct span *equal;

        if (span.start_ns / slice_ns != slice) {
            restack(spans, slice_first, written);
            slice = span.start_ns / slice_ns;
            slice_first = written;
        }
        equal = find_equal(spans, slice_first, written, &span);
        if (equal != NULL)
            equal->duration_ns += span.duration_ns;
        else
            spans[written++] = span;
    }
    restack(spans, slice_first, written);
    return written;
}

void span_list_coarsen(struct span_list *list, uint64_t slice_ns)
{
    size_t old;
    size_t left;

    if (list->count == 0)
        return;
    old = count_old(list);
    left = merge_slices(list->spans, old, slice_ns);
    memmove(&list->spans[left], &list->spans[old], (list->count - old) * sizeof *list->spans);
    list->count -= old - left;
    for (int state = 0; state < STATE_COUNT; state++)
        list->first_unresolved[state] =
            list->first_unresolved[state] > old ? list->first_unresolved[state] - (old - left) : left;
    if (list->capacity > 2 * list->count + 64) {
        list->capacity = list->count + 64;
        list->spans = memory_resize(list->spans, list->capacity, sizeof *list->spans);
    }
}

void span_budget_keep(struct span_budget *budget, struct span_list *(*list_at)(void *owner, size_t index),
                      void *owner, size_t list_count)
{
    if (total_spans(list_at, owner, list_count) <= budget->max_spans)
        return;
    do {
        budget->slice_ns = budget->slice_ns == 0 ? first_slice_ns : 2 * budget->slice_ns;
        for (size_t i = 0; i < list_count; i++)
            span_list_coarsen(list_at(owner, i), budget->slice_ns);
    } while (budget->slice_ns < longest_slice_ns &&
             total_spans(list_at, owner, list_count) > budget->max_spans / 2);
}
