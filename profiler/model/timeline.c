#include "profiler/model/timeline.h"

#include <stdlib.h>

#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

#define NO_TIME UINT64_MAX

struct track {
    struct span_list list;
    uint64_t since_ns; /* the current spell, not yet a span, began here */
    enum thread_state state;
    uint32_t stack;
    bool started;
    bool ended;
    bool guessed; /* state is what it seemed to be, no event has confirmed it yet */
    uint64_t initial_stack_ns;
    uint64_t doubt_since_ns;
    uint64_t switches_in;
};

struct timeline {
    uint64_t window_start_ns;
    bool has_wakeups;
    VEC_OF(struct track) tracks; /* by thread id */
};

struct timeline *timeline_create(uint64_t window_start_ns, bool has_wakeups)
{
    struct timeline *timeline = memory_zeroed(1, sizeof *timeline);

    timeline->window_start_ns = window_start_ns;
    timeline->has_wakeups = has_wakeups;
    return timeline;
}

void timeline_destroy(struct timeline *timeline)
{
    if (timeline == NULL)
        return;
    for (size_t i = 0; i < timeline->tracks.count; i++)
        span_list_finish(&timeline->tracks.items[i].list);
    free(timeline->tracks.items);
    free(timeline);
}

/* NULL when the thread is not there at the moment. */
static struct track *running_track(struct timeline *timeline, uint32_t thread)
{
    struct track *track = thread < timeline->tracks.count ? &timeline->tracks.items[thread] : NULL;

    return track != NULL && track->started && !track->ended ? track : NULL;
}

/* Makes a span of the current spell up to time_ns. Events of different CPUs may stand a little out of order:
 * time never runs backwards for a thread, the late event just makes an empty span. */
static void close_spell(const struct timeline *timeline, struct track *track, uint64_t time_ns,
                        uint32_t stack)
{
    uint64_t from_ns =
        track->since_ns > timeline->window_start_ns ? track->since_ns : timeline->window_start_ns;
    uint64_t certain_until_ns = track->doubt_since_ns < time_ns ? track->doubt_since_ns : time_ns;

    span_list_add(&track->list, from_ns, certain_until_ns, track->state, stack);
    if (certain_until_ns < time_ns)
        span_list_add(&track->list, from_ns > certain_until_ns ? from_ns : certain_until_ns, time_ns,
                      STATE_UNKNOWN, SPAN_NO_STACK);
    if (time_ns > track->since_ns)
        track->since_ns = time_ns;
}

static void enter(struct track *track, enum thread_state state)
{
    track->state = state;
    track->stack = SPAN_NO_STACK;
    track->doubt_since_ns = NO_TIME;
    track->guessed = false;
}

/* The first event of a thread says what it did before; an event that does not fit means that some were
 * missed. */
static void expect_state(struct track *track, enum thread_state state, uint64_t time_ns)
{
    if (track->guessed) {
        track->guessed = false;
        if (track->state != state || track->initial_stack_ns > time_ns)
            track->stack = SPAN_NO_STACK;
        track->state = state;
    } else if (track->state != state && track->doubt_since_ns == NO_TIME) {
        track->doubt_since_ns = track->since_ns;
    }
}

void timeline_begin(struct timeline *timeline, uint32_t thread, uint64_t begin_ns, enum thread_state likely,
                    bool born)
{
    struct track *track;

    while (timeline->tracks.count <= thread)
        VEC_PUSH(&timeline->tracks, ((struct track){0}));
    track = &timeline->tracks.items[thread];
    if (track->started)
        return;
    track->started = true;
    track->since_ns = begin_ns;
    enter(track, likely);
    track->guessed = !born;
}

void timeline_initial_stack(struct timeline *timeline, uint32_t thread, uint64_t time_ns, uint32_t stack)
{
    struct track *track = running_track(timeline, thread);

    if (track == NULL || !track->guessed)
        return;
    track->stack = stack;
    track->initial_stack_ns = time_ns;
}

void timeline_switch_in(struct timeline *timeline, uint32_t thread, uint64_t time_ns)
{
    struct track *track = running_track(timeline, thread);

    if (track == NULL)
        return;
    track->switches_in++;
    if (timeline->has_wakeups || track->state == STATE_ON_CPU)
        expect_state(track, STATE_RUNNABLE, time_ns);
    close_spell(timeline, track, time_ns, track->stack);
    enter(track, STATE_ON_CPU);
}

void timeline_switch_out(struct timeline *timeline, uint32_t thread, uint64_t time_ns, enum thread_state to)
{
    struct track *track = running_track(timeline, thread);

    if (track == NULL)
        return;
    expect_state(track, STATE_ON_CPU, time_ns);
    close_spell(timeline, track, time_ns, track->stack);
    enter(track, to);
}

void timeline_wakeup(struct timeline *timeline, uint32_t thread, uint64_t time_ns)
{
    struct track *track = running_track(timeline, thread);
    uint32_t stack;

    if (track == NULL)
        return;
    if (track->guessed && track->state != STATE_STOPPED)
        expect_state(track, STATE_BLOCKED, time_ns);
    /* A wake-up may reach a thread that is still on its CPU, on its way to sleep: it then just goes on. */
    if (track->state != STATE_BLOCKED && track->state != STATE_STOPPED)
        return;
    stack = track->stack;
    close_spell(timeline, track, time_ns, stack);
    enter(track, STATE_RUNNABLE);
    track->stack = stack; /* it will go on where it was blocked */
}

void timeline_on_cpu_stack(struct timeline *timeline, uint32_t thread, uint64_t time_ns, uint32_t stack)
{
    struct track *track = running_track(timeline, thread);

    if (track == NULL)
        return;
    if (track->guessed)
        expect_state(track, STATE_ON_CPU, time_ns);
    span_list_resolve(&track->list, STATE_ON_CPU, time_ns, stack);
    if (track->state != STATE_ON_CPU)
        return;
    close_spell(timeline, track, time_ns, stack);
    track->doubt_since_ns = NO_TIME; /* it was seen running: that is certain again */
    track->stack = stack;
}

void timeline_off_cpu_stack(struct timeline *timeline, uint32_t thread, uint64_t time_ns, uint32_t stack)
{
    struct track *track = running_track(timeline, thread);
    struct span *last;

    (void)time_ns;
    if (track == NULL || track->guessed || track->state == STATE_ON_CPU || track->state == STATE_UNKNOWN)
        return;
    track->stack = stack;
    /* The wake-up may have come from another CPU before the stack was taken; the blocked spell is a span by
     * then. */
    last = track->list.count > 0 ? &track->list.spans[track->list.count - 1] : NULL;
    if (track->state == STATE_RUNNABLE && last != NULL && last->stack == SPAN_NO_STACK &&
        (last->state == STATE_BLOCKED || last->state == STATE_STOPPED))
        last->stack = stack;
}

void timeline_end(struct timeline *timeline, uint32_t thread, uint64_t end_ns)
{
    struct track *track = running_track(timeline, thread);

    if (track == NULL)
        return;
    close_spell(timeline, track, end_ns, track->stack);
    track->ended = true;
}

void timeline_doubt(struct timeline *timeline, uint32_t thread, uint64_t since_ns)
{
    struct track *track = running_track(timeline, thread);

    if (track == NULL)
        return;
    /* The loss is told late, after what other CPUs told of the same time: with a piece missing, that proves
     * nothing. */
    if (since_ns < track->since_ns) {
        span_list_doubt(&track->list, since_ns);
        since_ns = track->since_ns;
    }
    if (since_ns < track->doubt_since_ns)
        track->doubt_since_ns = since_ns;
}

uint64_t timeline_switches_in(const struct timeline *timeline, uint32_t thread)
{
    return thread < timeline->tracks.count ? timeline->tracks.items[thread].switches_in : 0;
}

void timeline_finish(struct timeline *timeline, uint64_t end_ns)
{
    for (size_t i = 0; i < timeline->tracks.count; i++) {
        timeline_end(timeline, (uint32_t)i, end_ns);
        /* Events go on until they are switched off, which is a little after the window's end. */
        span_list_cut(&timeline->tracks.items[i].list, end_ns);
    }
}

void timeline_change(struct timeline *timeline, uint32_t thread, const struct span_change *change)
{
    if (thread < timeline->tracks.count)
        span_list_change(&timeline->tracks.items[thread].list, change);
}

static struct span_list *list_at(void *owner, size_t index)
{
    struct timeline *timeline = owner;

    return &timeline->tracks.items[index].list;
}

void timeline_keep_budget(struct timeline *timeline, struct span_budget *budget)
{
    span_budget_keep(budget, list_at, timeline, timeline->tracks.count);
}

const struct span *timeline_spans(const struct timeline *timeline, uint32_t thread, size_t *ret_count)
{
    if (thread >= timeline->tracks.count) {
        *ret_count = 0;
        return NULL;
    }
    *ret_count = timeline->tracks.items[thread].list.count;
    return timeline->tracks.items[thread].list.spans;
}
