#include "profiler/model/calibration.h"

#include <stdlib.h>

#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

/* The kernel adds to a running thread's counter at its own tick, up to 10 ms late (CONFIG_HZ=100): so much
 * time of a running thread waits for the next look before it is taken for anything else. */
static const uint64_t counter_lag_ns = 10 * NS_PER_MS;

/* A longer pause between passes means that the sampler itself was held up: what a thread did meanwhile the
 * counters tell, but not with which stacks. */
static const uint64_t longest_gap_ns = 3 * NS_PER_S / 2;

struct on_cpu_stack {
    uint64_t time_ns;
    uint32_t stack;
};

struct track {
    struct span_list list;
    VEC_OF(struct on_cpu_stack) samples; /* since the last look */
    uint64_t accounted_ns;               /* spans are made up to here */
    struct observation last;
    uint64_t owed_on_cpu_ns; /* counted by the kernel, not yet in a span */
    uint64_t owed_runnable_ns;
    uint64_t kernel_tick_ns;
    uint64_t ahead_ns; /* runnable time in a span that the kernel has not counted yet */
    bool started, ended, observed, has_counters;
    bool ran; /* the kernel counted run time since the look before */
};

struct calibration {
    uint64_t window_start_ns;
    uint64_t kernel_tick_ns;
    uint64_t tick_ns, previous_tick_ns;
    VEC_OF(struct track) tracks;
};

/* How the time since the last look is shared out, in the order in which it is laid down. */
struct shares {
    uint64_t before_ns; /* in the state of the last look */
    uint64_t runnable_ns;
    uint64_t on_cpu_ns;
    uint64_t after_ns; /* in the state of this look */
};

static uint64_t minimum(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct calibration *calibration_create(uint64_t window_start_ns)
{
    struct calibration *calibration = memory_zeroed(1, sizeof *calibration);

    calibration->window_start_ns = window_start_ns;
    calibration->kernel_tick_ns = counter_lag_ns;
    calibration->tick_ns = calibration->previous_tick_ns = window_start_ns;
    return calibration;
}

void calibration_set_kernel_tick(struct calibration *calibration, uint64_t tick_ns)
{
    calibration->kernel_tick_ns = minimum(tick_ns, counter_lag_ns);
}

void calibration_destroy(struct calibration *calibration)
{
    if (calibration == NULL)
        return;
    for (size_t i = 0; i < calibration->tracks.count; i++) {
        span_list_finish(&calibration->tracks.items[i].list);
        free(calibration->tracks.items[i].samples.items);
    }
    free(calibration->tracks.items);
    free(calibration);
}

static struct track *live_track(struct calibration *calibration, uint32_t thread)
{
    struct track *track = thread < calibration->tracks.count ? &calibration->tracks.items[thread] : NULL;

    return track != NULL && track->started && !track->ended ? track : NULL;
}

void calibration_begin(struct calibration *calibration, uint32_t thread, uint64_t begin_ns,
                       const struct thread_counters *counters)
{
    struct track *track;

    while (calibration->tracks.count <= thread)
        VEC_PUSH(&calibration->tracks, ((struct track){0}));
    track = &calibration->tracks.items[thread];
    if (track->started)
        return;
    track->started = true;
    track->kernel_tick_ns = calibration->kernel_tick_ns;
    track->accounted_ns = begin_ns > calibration->window_start_ns ? begin_ns : calibration->window_start_ns;
    track->last.time_ns = track->accounted_ns;
    track->last.state = OBSERVED_RUNNABLE; /* a newborn is in the run queue */
    track->last.stack = SPAN_NO_STACK;
    if (counters != NULL) {
        track->last.counters = *counters;
        track->has_counters = true;
    }
}

static bool is_off_cpu(enum observed_state state)
{
    return state == OBSERVED_BLOCKED || state == OBSERVED_STOPPED;
}

static bool is_stack(uint32_t stack)
{
    return stack != SPAN_NO_STACK && stack != CALIBRATION_LOST_STACK;
}

static enum thread_state span_state(enum observed_state state)
{
    switch (state) {
    case OBSERVED_RUNNING:
    case OBSERVED_AWAKE:
        return STATE_ON_CPU;
    case OBSERVED_RUNNABLE:
        return STATE_RUNNABLE;
    case OBSERVED_STOPPED:
        return STATE_STOPPED;
    case OBSERVED_BLOCKED:
        break;
    }
    return STATE_BLOCKED;
}

static void lay(struct track *track, uint64_t duration_ns, enum thread_state state, uint32_t stack)
{
    span_list_add(&track->list, track->accounted_ns, track->accounted_ns + duration_ns, state, stack);
    track->accounted_ns += duration_ns;
}

/* A look that found nothing changed: blocked, stopped or waiting for a CPU all the time since the last one.
 */
static void extend(struct track *track, uint64_t until_ns)
{
    if (!track->observed || track->last.state == OBSERVED_RUNNING || track->last.state == OBSERVED_AWAKE ||
        until_ns <= track->accounted_ns)
        return;
    if (track->last.state == OBSERVED_RUNNABLE)
        track->ahead_ns += until_ns - track->accounted_ns;
    lay(track, until_ns - track->accounted_ns, span_state(track->last.state), track->last.stack);
    track->last.time_ns = until_ns;
}

static size_t samples_until(const struct track *track, uint64_t time_ns)
{
    size_t count = 0;

    while (count < track->samples.count && track->samples.items[count].time_ns <= time_ns)
        count++;
    return count;
}

static void drop_samples(struct track *track, size_t count)
{
    for (size_t i = count; i < track->samples.count; i++)
        track->samples.items[i - count] = track->samples.items[i];
    track->samples.count -= count;
}

/* Equal parts to the samples of the interval; what earlier intervals left without a stack goes to the first
 * of them. */
static void lay_on_cpu(struct track *track, uint64_t duration_ns, uint64_t until_ns)
{
    size_t count = samples_until(track, until_ns);

    if (count == 0) {
        lay(track, duration_ns, STATE_ON_CPU, SPAN_NO_STACK);
        return;
    }
    span_list_resolve(&track->list, STATE_ON_CPU, track->samples.items[0].time_ns,
                      track->samples.items[0].stack);
    for (size_t i = 0; i < count; i++) {
        uint64_t part_ns = duration_ns / (count - i);

        lay(track, part_ns, STATE_ON_CPU, track->samples.items[i].stack);
        duration_ns -= part_ns;
    }
    drop_samples(track, count);
}

static void take_counters(struct track *track, const struct thread_counters *now)
{
    const struct thread_counters *before = &track->last.counters;
    uint64_t runnable_ns =
        now->runnable_ns > before->runnable_ns ? now->runnable_ns - before->runnable_ns : 0;
    uint64_t known_ns = minimum(runnable_ns, track->ahead_ns);

    track->ran = now->on_cpu_ns > before->on_cpu_ns;
    if (track->ran)
        track->owed_on_cpu_ns += now->on_cpu_ns - before->on_cpu_ns;
    track->ahead_ns -= known_ns;
    track->owed_runnable_ns += runnable_ns - known_ns;
}

/* What neither counter explains. */
static void share_rest(struct track *track, const struct observation *now, uint64_t rest_ns,
                       struct shares *shares)
{
    const struct observation *last = &track->last;
    bool slept = now->counters.voluntary_switches != last->counters.voluntary_switches;
    uint64_t lag_ns;

    switch (now->state) {
    case OBSERVED_BLOCKED:
    case OBSERVED_STOPPED:
        shares->before_ns = is_off_cpu(last->state) ? rest_ns / 2 : 0;
        shares->after_ns = rest_ns - shares->before_ns;
        return;
    case OBSERVED_RUNNABLE:
        if (is_off_cpu(last->state) || slept) {
            shares->before_ns = rest_ns;
        } else { /* it never slept: it waits for a CPU, and the kernel will say so when it gets one */
            shares->runnable_ns += rest_ns;
            track->ahead_ns += rest_ns;
        }
        return;
    case OBSERVED_RUNNING:
    case OBSERVED_AWAKE:
        break;
    }
    if (is_off_cpu(last->state) || slept) {
        shares->before_ns = rest_ns;
        return;
    }
    /* It ran all the time. The counter lags; what is left beyond that was taken by interrupts or the
     * hypervisor, or it has been waiting for a CPU since then, and the kernel will say so. */
    lag_ns = now->state == OBSERVED_AWAKE ? track->kernel_tick_ns : counter_lag_ns;
    if (rest_ns <= lag_ns)
        return;
    shares->runnable_ns += rest_ns - lag_ns;
    if (now->state == OBSERVED_AWAKE)
        track->ahead_ns += rest_ns - lag_ns;
}

/* After a gap the stacks at its two ends stand for nothing but the ends. */
static void lay_gap(struct track *track, const struct observation *now, const struct shares *shares)
{
    track->samples.count = 0;
    lay(track, shares->before_ns + shares->after_ns, STATE_BLOCKED, CALIBRATION_LOST_STACK);
    lay(track, shares->runnable_ns, STATE_RUNNABLE, CALIBRATION_LOST_STACK);
    lay(track, shares->on_cpu_ns, STATE_ON_CPU, CALIBRATION_LOST_STACK);
    if (now->time_ns > track->accounted_ns)
        lay(track, now->time_ns - track->accounted_ns, span_state(now->state), CALIBRATION_LOST_STACK);
}

static void lay_shares(struct track *track, const struct observation *now, const struct shares *shares)
{
    const struct observation *last = &track->last;
    bool seen_before = is_off_cpu(last->state);
    uint32_t runnable_stack = now->state == OBSERVED_RUNNABLE   ? now->stack
                              : last->state != OBSERVED_RUNNING ? last->stack
                                                                : SPAN_NO_STACK;

    /* Slept between two looks that both found it awake: the next wait that is seen will stand for it. */
    lay(track, shares->before_ns, seen_before ? span_state(last->state) : STATE_BLOCKED,
        seen_before ? last->stack : SPAN_NO_STACK);
    lay(track, shares->runnable_ns, STATE_RUNNABLE, runnable_stack);
    lay_on_cpu(track, shares->on_cpu_ns, now->time_ns);
    if (now->state == OBSERVED_BLOCKED && is_stack(now->stack))
        span_list_resolve(&track->list, STATE_BLOCKED, now->time_ns, now->stack);
    /* It waited for a CPU between two looks that both found it running: likewise. */
    if (now->state == OBSERVED_RUNNABLE && is_stack(now->stack))
        span_list_resolve(&track->list, STATE_RUNNABLE, now->time_ns, now->stack);
    lay(track, shares->after_ns, span_state(now->state), now->stack);
}

static void account(struct track *track, const struct observation *now, bool after_gap)
{
    uint64_t elapsed_ns = now->time_ns > track->accounted_ns ? now->time_ns - track->accounted_ns : 0;
    struct shares shares = {0};

    take_counters(track, &now->counters);
    shares.on_cpu_ns = minimum(track->owed_on_cpu_ns, elapsed_ns);
    shares.runnable_ns = minimum(track->owed_runnable_ns, elapsed_ns - shares.on_cpu_ns);
    track->owed_on_cpu_ns -= shares.on_cpu_ns;
    track->owed_runnable_ns -= shares.runnable_ns;
    share_rest(track, now, elapsed_ns - shares.on_cpu_ns - shares.runnable_ns, &shares);
    if (after_gap)
        lay_gap(track, now, &shares);
    else
        lay_shares(track, now, &shares);
    track->last = *now;
}

/* Nothing is known of the counters before: the little time until here was spent as it is now. */
static void take_first(struct track *track, const struct observation *now)
{
    track->last = *now;
    track->has_counters = true;
    if (now->time_ns > track->accounted_ns)
        lay(track, now->time_ns - track->accounted_ns, span_state(now->state), now->stack);
}

void calibration_tick(struct calibration *calibration, uint64_t time_ns)
{
    calibration->previous_tick_ns = calibration->tick_ns;
    calibration->tick_ns = time_ns;
}

void calibration_observe(struct calibration *calibration, uint32_t thread,
                         const struct observation *observation)
{
    struct track *track = live_track(calibration, thread);

    if (track == NULL)
        return;
    if (!track->has_counters) {
        take_first(track, observation);
    } else {
        extend(track, calibration->previous_tick_ns);
        account(track, observation, calibration->tick_ns - calibration->previous_tick_ns > longest_gap_ns);
    }
    track->observed = true;
}

void calibration_on_cpu_stack(struct calibration *calibration, uint32_t thread, uint64_t time_ns,
                              uint32_t stack)
{
    struct track *track = live_track(calibration, thread);

    if (track != NULL)
        VEC_PUSH(&track->samples, ((struct on_cpu_stack){.time_ns = time_ns, .stack = stack}));
}

/* The last stretch of a running thread that no counter explained yet, and samples that came after the last
 * look. */
static void close_track(struct track *track, uint64_t end_ns)
{
    size_t count = track->samples.count;
    uint32_t stack = count > 0 ? track->samples.items[count - 1].stack : SPAN_NO_STACK;
    enum thread_state state = track->observed ? span_state(track->last.state) : STATE_UNKNOWN;

    if (track->observed && track->last.state == OBSERVED_AWAKE && !track->ran)
        state = STATE_RUNNABLE;
    if (count > 0)
        span_list_resolve(&track->list, STATE_ON_CPU, track->samples.items[0].time_ns,
                          track->samples.items[0].stack);
    if (end_ns > track->accounted_ns)
        lay(track, end_ns - track->accounted_ns, state, state == STATE_ON_CPU ? stack : track->last.stack);
    /* Of waits whose stack was left out, to keep within the budget, and whose next one nobody saw. */
    span_list_resolve_back(&track->list, STATE_BLOCKED);
    track->ended = true;
}

void calibration_end(struct calibration *calibration, uint32_t thread, uint64_t end_ns,
                     const struct thread_counters *counters)
{
    struct track *track = live_track(calibration, thread);

    if (track == NULL)
        return;
    if (counters != NULL && track->has_counters) {
        /* It ended by running: so it is as if it had been seen to run, unless it seems to have waited long. */
        bool waited = track->last.state == OBSERVED_AWAKE && !track->ran;
        const struct observation last = {.time_ns = end_ns,
                                         .counters = *counters,
                                         .state = waited ? OBSERVED_AWAKE : OBSERVED_RUNNING,
                                         .stack = SPAN_NO_STACK};

        extend(track, minimum(calibration->previous_tick_ns, end_ns));
        account(track, &last, false);
        track->observed = true;
    }
    close_track(track, end_ns);
}

void calibration_finish(struct calibration *calibration, uint64_t end_ns)
{
    for (size_t i = 0; i < calibration->tracks.count; i++) {
        struct track *track = &calibration->tracks.items[i];

        if (!track->started || track->ended)
            continue;
        extend(track, end_ns);
        close_track(track, end_ns);
    }
}

void calibration_change(struct calibration *calibration, uint32_t thread, const struct span_change *change)
{
    if (thread < calibration->tracks.count)
        span_list_change(&calibration->tracks.items[thread].list, change);
}

static struct span_list *list_at(void *owner, size_t index)
{
    struct calibration *calibration = owner;

    return &calibration->tracks.items[index].list;
}

void calibration_keep_budget(struct calibration *calibration, struct span_budget *budget)
{
    span_budget_keep(budget, list_at, calibration, calibration->tracks.count);
}

const struct span *calibration_spans(const struct calibration *calibration, uint32_t thread,
                                     size_t *ret_count)
{
    if (thread >= calibration->tracks.count) {
        *ret_count = 0;
        return NULL;
    }
    *ret_count = calibration->tracks.items[thread].list.count;
    return calibration->tracks.items[thread].list.spans;
}
