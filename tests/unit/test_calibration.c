#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiler/base/clock.h"
#include "profiler/model/calibration.h"

#define MS NS_PER_MS

enum { WAIT_A = 11, WAIT_B = 12, RUN_A = 21, RUN_B = 22, START_MS = 1000, COUNTER_LAG_MS = 10 };

static struct calibration *begun(const struct thread_counters *counters)
{
    struct calibration *c = calibration_create(START_MS * MS);

    calibration_begin(c, 0, START_MS * MS, counters);
    return c;
}

/* Counters in ms; the look is of the pass that was made at that moment. */
struct look {
    uint64_t time_ms, on_cpu_ms, runnable_ms, voluntary, involuntary;
    enum observed_state state;
    uint32_t stack;
};

static void look(struct calibration *c, struct look look)
{
    calibration_tick(c, look.time_ms * MS);
    calibration_observe(c, 0,
                        &(struct observation){
                            .time_ns = look.time_ms * MS,
                            .counters = {.on_cpu_ns = look.on_cpu_ms * MS,
                                         .runnable_ns = look.runnable_ms * MS,
                                         .voluntary_switches = look.voluntary,
                                         .involuntary_switches = look.involuntary},
                            .state = look.state,
                            .stack = look.stack,
                        });
}

static uint64_t sum(const struct calibration *c, enum thread_state state, uint32_t stack)
{
    size_t count;
    const struct span *spans = calibration_spans(c, 0, &count);
    uint64_t sum_ns = 0;

    for (size_t i = 0; i < count; i++)
        if (spans[i].state == state && (stack == UINT32_MAX - 2 || spans[i].stack == stack))
            sum_ns += spans[i].duration_ns;
    return sum_ns;
}

static uint64_t sum_state(const struct calibration *c, enum thread_state state)
{
    return sum(c, state, UINT32_MAX - 2);
}

/* Without a gap or an overlap from begin to end. */
static void assert_tiles(const struct calibration *c, uint64_t begin_ns, uint64_t end_ns)
{
    size_t count;
    const struct span *spans = calibration_spans(c, 0, &count);
    uint64_t at_ns = begin_ns;

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(spans[i].start_ns, at_ns);
        assert_true(spans[i].duration_ns > 0);
        at_ns += spans[i].duration_ns;
    }
    assert_int_equal(at_ns, end_ns);
}

static void a_thread_that_does_not_move_keeps_its_wait(void **state)
{
    struct calibration *c = begun(NULL);
    size_t count;

    (void)state;
    look(c, (struct look){1001, 500, 70, 3, 4, OBSERVED_BLOCKED, WAIT_A});
    calibration_tick(c, 1010 * MS);
    calibration_tick(c, 1500 * MS);
    calibration_finish(c, 2000 * MS);
    assert_tiles(c, 1000 * MS, 2000 * MS);
    calibration_spans(c, 0, &count);
    assert_int_equal(count, 1);
    assert_int_equal(sum(c, STATE_BLOCKED, WAIT_A), 1000 * MS);
    calibration_destroy(c);
}

static void the_rest_is_half_of_each_wait(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 0, 0, 1, 0, OBSERVED_BLOCKED, WAIT_A});
    /* 10 ms, of which 2 on a CPU and 1 in the queue: 3.5 ms of each wait. */
    look(c, (struct look){1010, 2, 1, 2, 0, OBSERVED_BLOCKED, WAIT_B});
    calibration_finish(c, 1010 * MS);
    assert_tiles(c, 1000 * MS, 1010 * MS);
    assert_int_equal(sum(c, STATE_BLOCKED, WAIT_A), 7 * MS / 2);
    assert_int_equal(sum(c, STATE_BLOCKED, WAIT_B), 7 * MS / 2);
    assert_int_equal(sum_state(c, STATE_ON_CPU), 2 * MS);
    assert_int_equal(sum_state(c, STATE_RUNNABLE), 1 * MS);
    calibration_destroy(c);
}

/* A look that found nothing changed at 1490 says that the wait went on until then. */
static void an_unchanged_pass_ends_the_doubt(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 0, 0, 1, 0, OBSERVED_BLOCKED, WAIT_A});
    calibration_tick(c, 1490 * MS);
    look(c, (struct look){1500, 4, 0, 2, 0, OBSERVED_BLOCKED, WAIT_B});
    calibration_finish(c, 1500 * MS);
    assert_int_equal(sum(c, STATE_BLOCKED, WAIT_A), 493 * MS);
    assert_int_equal(sum(c, STATE_BLOCKED, WAIT_B), 3 * MS);
    calibration_destroy(c);
}

/* The kernel credits a wait for a CPU when it is over; until then it is laid down as it is seen, and not twice. */
static void runnable_time_is_counted_ahead(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 100, 0, 1, 1, OBSERVED_RUNNABLE, RUN_A});
    look(c, (struct look){1010, 100, 0, 1, 1, OBSERVED_RUNNABLE, RUN_A});
    look(c, (struct look){1020, 100, 0, 1, 1, OBSERVED_RUNNABLE, RUN_A});
    assert_int_equal(sum(c, STATE_RUNNABLE, RUN_A), 20 * MS);
    /* In at 1025: 25 ms are credited at once, 20 of which are there. */
    look(c, (struct look){1030, 105, 25, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    calibration_finish(c, 1030 * MS);
    assert_tiles(c, 1000 * MS, 1030 * MS);
    assert_int_equal(sum_state(c, STATE_RUNNABLE), 25 * MS);
    assert_int_equal(sum_state(c, STATE_ON_CPU), 5 * MS);
    calibration_destroy(c);
}

static void the_counter_of_a_running_thread_lags(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 100, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    look(c, (struct look){1010, 104, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK}); /* 6 ms are to come */
    look(c, (struct look){1020, 116, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    look(c, (struct look){1030, 130, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    calibration_finish(c, 1030 * MS);
    assert_tiles(c, 1000 * MS, 1030 * MS);
    assert_int_equal(sum_state(c, STATE_ON_CPU), 30 * MS);
    calibration_destroy(c);
}

/* More than a lag can be: interrupts, or the hypervisor. */
static void stolen_time_is_runnable(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 100, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    look(c, (struct look){1100, 140, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    calibration_finish(c, 1100 * MS);
    assert_tiles(c, 1000 * MS, 1100 * MS);
    assert_int_equal(sum_state(c, STATE_RUNNABLE), (60 - COUNTER_LAG_MS) * MS);
    assert_int_equal(sum_state(c, STATE_ON_CPU), (40 + COUNTER_LAG_MS) * MS);
    calibration_destroy(c);
}

/* Where the kernel's tick is known to be shorter, less is taken for run time that is not counted yet. */
static void the_lag_of_an_awake_thread_is_the_kernels_tick(void **state)
{
    struct calibration *c = calibration_create(START_MS * MS);

    (void)state;
    calibration_set_kernel_tick(c, 4 * MS);
    calibration_begin(c, 0, START_MS * MS, NULL);
    look(c, (struct look){1000, 100, 0, 1, 1, OBSERVED_AWAKE, SPAN_NO_STACK});
    look(c, (struct look){1030, 110, 0, 1, 1, OBSERVED_AWAKE, SPAN_NO_STACK});
    calibration_finish(c, 1030 * MS);
    assert_tiles(c, 1000 * MS, 1030 * MS);
    assert_int_equal(sum_state(c, STATE_ON_CPU), 14 * MS);
    assert_int_equal(sum_state(c, STATE_RUNNABLE), 16 * MS);
    calibration_destroy(c);
}

/* /proc does not tell whether it runs or waits; the kernel's credit, when it comes, is not laid down again. */
static void an_awake_thread_that_waits_is_runnable_once(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 100, 0, 1, 1, OBSERVED_AWAKE, SPAN_NO_STACK});
    look(c, (struct look){1010, 100, 0, 1, 1, OBSERVED_AWAKE, SPAN_NO_STACK});
    look(c, (struct look){1050, 100, 0, 1, 1, OBSERVED_AWAKE, SPAN_NO_STACK});
    look(c, (struct look){1060, 105, 55, 1, 1, OBSERVED_AWAKE, SPAN_NO_STACK});
    calibration_finish(c, 1060 * MS);
    assert_tiles(c, 1000 * MS, 1060 * MS);
    assert_int_equal(sum_state(c, STATE_RUNNABLE), 55 * MS);
    assert_int_equal(sum_state(c, STATE_ON_CPU), 5 * MS);
    calibration_destroy(c);
}

static void an_awake_thread_that_never_got_a_cpu_ends_runnable(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 100, 0, 1, 1, OBSERVED_AWAKE, SPAN_NO_STACK});
    look(c, (struct look){1030, 100, 0, 1, 1, OBSERVED_AWAKE, SPAN_NO_STACK});
    calibration_finish(c, 1030 * MS);
    assert_tiles(c, 1000 * MS, 1030 * MS);
    assert_int_equal(sum_state(c, STATE_RUNNABLE), 30 * MS);
    calibration_destroy(c);
}

/* The wait that is seen next stands for the one that no look saw. */
static void a_wait_between_looks_takes_the_next_one(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 100, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    look(c, (struct look){1010, 103, 0, 2, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    assert_int_equal(sum(c, STATE_BLOCKED, SPAN_NO_STACK), 7 * MS);
    look(c, (struct look){1020, 105, 0, 3, 1, OBSERVED_BLOCKED, WAIT_A});
    calibration_finish(c, 1020 * MS);
    assert_tiles(c, 1000 * MS, 1020 * MS);
    assert_int_equal(sum(c, STATE_BLOCKED, WAIT_A), 15 * MS);
    calibration_destroy(c);
}

static void a_queue_wait_between_looks_takes_the_next_one(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 0, 0, 0, 0, OBSERVED_RUNNING, SPAN_NO_STACK});
    look(c, (struct look){1010, 5, 5, 0, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    look(c, (struct look){1020, 10, 5, 0, 2, OBSERVED_RUNNABLE, WAIT_A});
    calibration_finish(c, 1020 * MS);
    assert_tiles(c, 1000 * MS, 1020 * MS);
    assert_int_equal(sum(c, STATE_RUNNABLE, WAIT_A), 10 * MS);
    calibration_destroy(c);
}

static void a_lost_stack_stays_lost(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 0, 0, 1, 0, OBSERVED_BLOCKED, CALIBRATION_LOST_STACK});
    look(c, (struct look){1010, 0, 0, 2, 0, OBSERVED_BLOCKED, WAIT_A});
    calibration_finish(c, 1010 * MS);
    assert_int_equal(sum(c, STATE_BLOCKED, CALIBRATION_LOST_STACK), 5 * MS);
    assert_int_equal(sum(c, STATE_BLOCKED, WAIT_A), 5 * MS);
    calibration_destroy(c);
}

static void stopped_is_its_own_state(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 100, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    look(c, (struct look){1010, 110, 0, 2, 1, OBSERVED_STOPPED, WAIT_A});
    calibration_tick(c, 1100 * MS);
    calibration_finish(c, 1200 * MS);
    assert_tiles(c, 1000 * MS, 1200 * MS);
    assert_int_equal(sum(c, STATE_STOPPED, WAIT_A), 190 * MS);
    assert_int_equal(sum_state(c, STATE_ON_CPU), 10 * MS);
    calibration_destroy(c);
}

static void on_cpu_time_goes_to_its_samples_in_equal_parts(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 0, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    calibration_on_cpu_stack(c, 0, 1002 * MS, RUN_A);
    calibration_on_cpu_stack(c, 0, 1008 * MS, RUN_B);
    calibration_on_cpu_stack(c, 0, 1015 * MS, RUN_B); /* of the next interval */
    look(c, (struct look){1010, 10, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    assert_int_equal(sum(c, STATE_ON_CPU, RUN_A), 5 * MS);
    assert_int_equal(sum(c, STATE_ON_CPU, RUN_B), 5 * MS);
    look(c, (struct look){1020, 20, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    calibration_finish(c, 1020 * MS);
    assert_int_equal(sum(c, STATE_ON_CPU, RUN_B), 15 * MS);
    calibration_destroy(c);
}

/* A sample gives its stack to what ran up to a second before, not to what is older. */
static void a_sample_looks_back_a_second(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 0, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    look(c, (struct look){1010, 10, 0, 2, 1, OBSERVED_BLOCKED, WAIT_A});
    calibration_tick(c, 2490 * MS);
    look(c, (struct look){2500, 20, 0, 2, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    calibration_on_cpu_stack(c, 0, 2505 * MS, RUN_A);
    look(c, (struct look){2510, 30, 0, 2, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    calibration_finish(c, 2510 * MS);
    assert_tiles(c, 1000 * MS, 2510 * MS);
    assert_int_equal(sum(c, STATE_ON_CPU, SPAN_NO_STACK), 10 * MS); /* the first: [unsampled] */
    assert_int_equal(sum(c, STATE_ON_CPU, RUN_A), 20 * MS);
    calibration_destroy(c);
}

static void a_sample_after_the_last_look_counts(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 0, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    look(c, (struct look){1010, 10, 0, 1, 1, OBSERVED_RUNNING, SPAN_NO_STACK});
    calibration_on_cpu_stack(c, 0, 1012 * MS, RUN_A);
    calibration_finish(c, 1015 * MS);
    assert_int_equal(sum(c, STATE_ON_CPU, RUN_A), 15 * MS);
    calibration_destroy(c);
}

static const struct thread_counters zero;

/* Born within the window, and gone before any look: its last counters say what it did. */
static void a_life_between_two_looks(void **state)
{
    struct calibration *c = begun(&zero);

    (void)state;
    calibration_tick(c, 1010 * MS);
    calibration_end(c, 0, 1008 * MS, &(struct thread_counters){.on_cpu_ns = 5 * MS, .runnable_ns = 3 * MS});
    assert_tiles(c, 1000 * MS, 1008 * MS);
    assert_int_equal(sum_state(c, STATE_ON_CPU), 5 * MS);
    assert_int_equal(sum_state(c, STATE_RUNNABLE), 3 * MS);
    calibration_finish(c, 2000 * MS);
    assert_tiles(c, 1000 * MS, 1008 * MS);
    calibration_destroy(c);
}

static void an_end_without_counters_is_unknown_when_nothing_was_seen(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    calibration_end(c, 0, 1100 * MS, NULL);
    assert_tiles(c, 1000 * MS, 1100 * MS);
    assert_int_equal(sum_state(c, STATE_UNKNOWN), 100 * MS);
    calibration_destroy(c);
}

/* Seen to wait for a CPU at 1000, then it got one and ended, before the pass at 1020: that pass did not see it
 * unchanged, it did not see it at all. */
static void what_it_did_before_its_end_is_not_its_last_wait(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 0, 0, 1, 0, OBSERVED_RUNNABLE, RUN_A});
    calibration_tick(c, 1020 * MS);
    calibration_end(
        c, 0, 1015 * MS,
        &(struct thread_counters){.on_cpu_ns = 13 * MS, .runnable_ns = 2 * MS, .voluntary_switches = 1});
    assert_tiles(c, 1000 * MS, 1015 * MS);
    assert_int_equal(sum_state(c, STATE_ON_CPU), 13 * MS);
    assert_int_equal(sum_state(c, STATE_RUNNABLE), 2 * MS);
    calibration_destroy(c);
}

static void unknown_threads_are_ignored(void **state)
{
    struct calibration *c = calibration_create(START_MS * MS);
    size_t count = 7;

    (void)state;
    look(c, (struct look){1000, 0, 0, 1, 0, OBSERVED_BLOCKED, WAIT_A});
    calibration_on_cpu_stack(c, 5, 1000 * MS, RUN_A);
    calibration_end(c, 5, 1000 * MS, NULL);
    calibration_finish(c, 1010 * MS);
    assert_null(calibration_spans(c, 3, &count));
    assert_int_equal(count, 0);
    calibration_destroy(c);
}

static void counters_that_go_back_are_no_time(void **state)
{
    struct calibration *c = begun(NULL);

    (void)state;
    look(c, (struct look){1000, 500, 500, 9, 9, OBSERVED_BLOCKED, WAIT_A});
    look(c, (struct look){1010, 10, 10, 1, 0, OBSERVED_BLOCKED, WAIT_B});
    calibration_finish(c, 1010 * MS);
    assert_tiles(c, 1000 * MS, 1010 * MS);
    assert_int_equal(sum_state(c, STATE_ON_CPU), 0);
    assert_int_equal(sum_state(c, STATE_RUNNABLE), 0);
    calibration_destroy(c);
}

/* A simulated thread beside a simulated kernel: what it does is drawn at random, its counters are kept as the
 * kernel keeps them, looks come at jittered ticks. */

enum {
    KERNEL_TICK_US = 4000, /* at which the run time of a running thread is counted */
    STEP_US = 50,
    TICK_US = 10000,
    WINDOW_US = 3000000,
    SAMPLE_US = 10000,
};

struct simulation {
    bool tells_awake_only; /* as /proc: running or runnable, not which */
    enum thread_state state;
    uint64_t left_us; /* of the state */
    uint64_t since_counted_us, waiting_us;
    struct thread_counters counters;
    uint64_t spent_us[STATE_COUNT]; /* the truth */
    bool seen_off_cpu;
    uint64_t seen_switches;
};

static uint64_t random_up_to(uint64_t limit)
{
    return (uint64_t)rand() % limit + 1;
}

static bool is_off_cpu(enum thread_state state)
{
    return state == STATE_BLOCKED || state == STATE_STOPPED;
}

static void leave_state(struct simulation *s)
{
    switch (s->state) {
    case STATE_ON_CPU:
        s->counters.on_cpu_ns += s->since_counted_us * NS_PER_US;
        s->since_counted_us = 0;
        if (rand() % 3 == 0) {
            s->counters.involuntary_switches++;
            s->state = STATE_RUNNABLE;
        } else {
            s->counters.voluntary_switches++;
            s->state = rand() % 20 == 0 ? STATE_STOPPED : STATE_BLOCKED;
        }
        break;
    case STATE_RUNNABLE:
        s->counters.runnable_ns += s->waiting_us * NS_PER_US;
        s->waiting_us = 0;
        s->state = STATE_ON_CPU;
        break;
    default:
        s->state = STATE_RUNNABLE;
        break;
    }
    s->left_us = random_up_to(rand() % 4 == 0 ? 120000 : 6000);
}

static void step(struct simulation *s, uint64_t now_us)
{
    s->spent_us[s->state] += STEP_US;
    if (s->state == STATE_ON_CPU)
        s->since_counted_us += STEP_US;
    if (s->state == STATE_RUNNABLE)
        s->waiting_us += STEP_US;
    if (s->state == STATE_ON_CPU && now_us % KERNEL_TICK_US == 0) {
        s->counters.on_cpu_ns += s->since_counted_us * NS_PER_US;
        s->since_counted_us = 0;
    }
    s->left_us = s->left_us > STEP_US ? s->left_us - STEP_US : 0;
    if (s->left_us == 0)
        leave_state(s);
}

static enum observed_state observed(const struct simulation *s)
{
    switch (s->state) {
    case STATE_ON_CPU:
        return s->tells_awake_only ? OBSERVED_AWAKE : OBSERVED_RUNNING;
    case STATE_RUNNABLE:
        return s->tells_awake_only ? OBSERVED_AWAKE : OBSERVED_RUNNABLE;
    case STATE_STOPPED:
        return OBSERVED_STOPPED;
    default:
        return OBSERVED_BLOCKED;
    }
}

static void pass(struct simulation *s, struct calibration *c, uint64_t now_ns)
{
    uint64_t switches = s->counters.voluntary_switches + s->counters.involuntary_switches;
    bool off_cpu = is_off_cpu(s->state);

    calibration_tick(c, now_ns);
    if (off_cpu && s->seen_off_cpu && s->seen_switches == switches)
        return;
    calibration_observe(c, 0,
                        &(struct observation){.time_ns = now_ns,
                                              .counters = s->counters,
                                              .state = observed(s),
                                              .stack = off_cpu ? WAIT_A : SPAN_NO_STACK});
    s->seen_off_cpu = off_cpu;
    s->seen_switches = switches;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static void assert_near(const char *what, unsigned seed, uint64_t got_ns, uint64_t want_ns,
                        uint64_t tolerance_ns)
{
    if (distance(got_ns, want_ns) > tolerance_ns)
        fail_msg("seed %u: %s is %.3f ms, expected %.3f ms within %.3f ms", seed, what, (double)got_ns / 1e6,
                 (double)want_ns / 1e6, (double)tolerance_ns / 1e6);
}

static void simulate(unsigned seed, bool tells_awake_only, bool exits)
{
    const uint64_t start_ns = START_MS * MS;
    struct simulation s = {.tells_awake_only = tells_awake_only, .state = STATE_RUNNABLE, .left_us = 1000};
    struct calibration *c = calibration_create(start_ns);
    uint64_t next_pass_us = TICK_US;
    uint64_t now_us = 0;
    uint64_t end_ns;

    srand(seed);
    calibration_set_kernel_tick(c, KERNEL_TICK_US * NS_PER_US);
    calibration_begin(c, 0, start_ns, &zero);
    while (now_us < WINDOW_US) {
        now_us += STEP_US;
        step(&s, now_us);
        if (s.state == STATE_ON_CPU && now_us % SAMPLE_US == 0)
            calibration_on_cpu_stack(c, 0, start_ns + now_us * NS_PER_US, RUN_A);
        if (now_us >= next_pass_us) {
            pass(&s, c, start_ns + now_us * NS_PER_US);
            next_pass_us = now_us + TICK_US * 3 / 4 + random_up_to(TICK_US / 2);
        }
    }
    end_ns = start_ns + now_us * NS_PER_US;
    if (exits) {
        while (s.state != STATE_ON_CPU) /* a thread ends by running */
            step(&s, now_us += STEP_US);
        end_ns = start_ns + now_us * NS_PER_US;
        calibration_end(c, 0, end_ns, &s.counters);
    } else {
        pass(&s, c, end_ns);
    }
    calibration_finish(c, end_ns);

    assert_tiles(c, start_ns, end_ns);
    /* What it waits for at the end no counter tells yet: that much may be on either side. */
    uint64_t open_ns = 2 * TICK_US * NS_PER_US + COUNTER_LAG_MS * MS;
    assert_near("on-CPU", seed, sum_state(c, STATE_ON_CPU), s.counters.on_cpu_ns, (COUNTER_LAG_MS + 1) * MS);
    assert_near("on-CPU (truth)", seed, sum_state(c, STATE_ON_CPU), s.spent_us[STATE_ON_CPU] * NS_PER_US,
                (COUNTER_LAG_MS + 1) * MS);
    assert_near("runnable", seed, sum_state(c, STATE_RUNNABLE), s.spent_us[STATE_RUNNABLE] * NS_PER_US,
                open_ns);
    assert_near("off-CPU", seed, sum_state(c, STATE_BLOCKED) + sum_state(c, STATE_STOPPED),
                (s.spent_us[STATE_BLOCKED] + s.spent_us[STATE_STOPPED]) * NS_PER_US,
                open_ns + COUNTER_LAG_MS * MS);
    calibration_destroy(c);
}

static void random_threads_balance(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 150; seed++) {
        simulate(seed, false, false);
        simulate(seed, false, true);
        simulate(seed, true, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_does_not_move_keeps_its_wait),
        cmocka_unit_test(the_rest_is_half_of_each_wait),
        cmocka_unit_test(an_unchanged_pass_ends_the_doubt),
        cmocka_unit_test(runnable_time_is_counted_ahead),
        cmocka_unit_test(the_counter_of_a_running_thread_lags),
        cmocka_unit_test(stolen_time_is_runnable),
        cmocka_unit_test(the_lag_of_an_awake_thread_is_the_kernels_tick),
        cmocka_unit_test(an_awake_thread_that_waits_is_runnable_once),
        cmocka_unit_test(an_awake_thread_that_never_got_a_cpu_ends_runnable),
        cmocka_unit_test(a_wait_between_looks_takes_the_next_one),
        cmocka_unit_test(a_queue_wait_between_looks_takes_the_next_one),
        cmocka_unit_test(a_lost_stack_stays_lost),
        cmocka_unit_test(stopped_is_its_own_state),
        cmocka_unit_test(on_cpu_time_goes_to_its_samples_in_equal_parts),
        cmocka_unit_test(a_sample_looks_back_a_second),
        cmocka_unit_test(a_sample_after_the_last_look_counts),
        cmocka_unit_test(a_life_between_two_looks),
        cmocka_unit_test(an_end_without_counters_is_unknown_when_nothing_was_seen),
        cmocka_unit_test(what_it_did_before_its_end_is_not_its_last_wait),
        cmocka_unit_test(unknown_threads_are_ignored),
        cmocka_unit_test(counters_that_go_back_are_no_time),
        cmocka_unit_test(random_threads_balance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
