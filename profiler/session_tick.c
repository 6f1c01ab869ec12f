#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/file.h"
#include "profiler/session_internal.h"
#include "profiler/wait/wait_channel.h"
#include "profiler/wait/wait_name.h"

enum {
    SITE_BYTES = 128,         /* of the stack's top that tell one visit of a wait site from another */
    LOWEST_FULL_RATE_HZ = 20, /* not fewer ticks than that while the budget allows it */
    MAX_PASS_CHUNKS = 100000,
    HURRIED_PASSES = 200,
};

static const uint64_t first_check_ns = 50 * NS_PER_MS;
static const uint64_t hurried_ns = NS_PER_MS; /* a pass is over by then, as a rule */
static const double lowest_rate_hz = 1;
static const double half_of_stacks = 0.55; /* a little more, so that chance does not make it less */
static const double lowest_stack_share = 0.02;
/* What copying and walking a stack takes, roughly. */
static const double stack_cost_ns = 30000;

static uint64_t minimum(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Without CAP_SYSLOG, or with kptr_restrict, all addresses read as zero. */
static bool are_kernel_names_hidden(void)
{
    AUTO_CLOSE int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    char address[16];

    return fd < 0 || file_read_at(fd, address, sizeof address, 0) != (ssize_t)sizeof address ||
           memcmp(address, "0000000000000000", sizeof address) == 0;
}

int session_tick_open(struct session *session, const struct tick_backend *backend, struct error *err)
{
    const struct tick_options options = {
        .children = session->options->children,
        .kernel_stacks = session->options->kernel == SESSION_KERNEL_ALL,
    };
    struct tick_control *control = &session->tick;
    int r = backend->open(&options, &control->tick, err);

    if (r < 0)
        return r;
    control->backend = backend;
    control->rate_hz = session->options->frequency_hz;
    control->stack_share = 1;
    control->kernel_names_hidden = are_kernel_names_hidden();
    control->boot_offset_ns = clock_boot_offset_ns();
    return 0;
}

void session_tick_close(struct session *session)
{
    if (session->tick.backend != NULL)
        session->tick.backend->close(session->tick.tick);
    id_map_finish(&session->tick.stack_of_site);
    id_map_finish(&session->tick.whole_of_copied);
}

void session_tick_begin(struct session *session)
{
    uint32_t count = process_table_thread_count(session->processes);
    struct timespec kernel_tick;

    session->calibration = calibration_create(session->window_start_ns);
    /* The coarse clock moves with the kernel's tick. */
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &kernel_tick) == 0)
        calibration_set_kernel_tick(session->calibration,
                                    (uint64_t)kernel_tick.tv_sec * NS_PER_S + (uint64_t)kernel_tick.tv_nsec);
    for (uint32_t i = 0; i < count; i++)
        calibration_begin(session->calibration, i, session->window_start_ns, NULL);
}

uint64_t session_tick_due_ns(const struct session *session)
{
    const struct tick_control *control = &session->tick;

    return control->looks_due_ns != 0 ? minimum(control->looks_due_ns, control->next_ns) : control->next_ns;
}

bool session_tick_hurries(const struct session *session, uint64_t now_ns)
{
    return session->tick.looks_due_ns != 0 && now_ns < session->tick.next_ns;
}

/* Same thread, same place, same system call, of the same first argument (a descriptor, a lock), and the same top of the stack: then the rest of the stack is
 * taken to be the same too. */
static uint64_t site_key(const struct thread *thread, const struct tick_look *look)
{
    const struct registers *registers = &look->sample.registers;
    size_t top_bytes =
        look->sample.stack_size_bytes < SITE_BYTES ? look->sample.stack_size_bytes : SITE_BYTES;
    uint64_t key = hash_mix(thread->id, registers->value[REGISTER_IP]);

    key = hash_mix(key, registers->value[REGISTER_RSP]);
    key = hash_mix(key, (uint64_t)look->syscall);
    key = hash_mix(key, look->arguments[0]);
    return top_bytes > 0 ? hash_mix(key, hash_bytes(look->sample.stack, top_bytes)) : key;
}

static uint32_t push_wait(struct session *session, const struct thread *thread, uint32_t stack,
                          const struct tick_look *look)
{
    uint64_t lock_address = 0;
    uint32_t location;
    struct wait_name wait;

    if (look->syscall >= 0 || look->sample.registers.value[REGISTER_IP] != 0) {
        location = session_name_wait(session, process_table_process(session->processes, thread->process),
                                     look, &lock_address);
    } else {
        wait_from_channel(look->wait_channel, &wait);
        location = session_synthetic_location(session, wait.text);
    }
    stack = stack_table_push(session->stacks, stack, location);
    session_locks_note(session, thread, look, stack, lock_address);
    return stack;
}

static uint32_t take_stack(struct session *session, const struct thread *thread, const struct tick_look *look)
{
    struct tick_control *control = &session->tick;
    struct raw_sample sample;
    uint32_t stack = CALIBRATION_LOST_STACK;

    switch (look->stack) {
    case TICK_STACK_LEFT_OUT:
        control->stacks_left_out++;
        return SPAN_NO_STACK;
    case TICK_STACK_RACED:
        control->stacks_raced++;
        if (id_map_get(&control->stack_of_site, site_key(thread, look), &stack))
            control->stacks_recalled++;
        return stack;
    case TICK_STACK_NOT_PERMITTED:
        stack = session_unpermitted_stack(session, STATE_BLOCKED);
        return look->state == TICK_BLOCKED ? push_wait(session, thread, stack, look) : stack;
    case TICK_STACK_NONE:
    case TICK_STACK_WHOLE:
        break;
    }
    if (look->state == TICK_RUNNING || look->state == TICK_AWAKE)
        return SPAN_NO_STACK;
    control->stacks_taken++;
    session->samples++;
    sample = look->sample;
    if (control->kernel_names_hidden && session->options->kernel != SESSION_KERNEL_ALL)
        sample.kernel_chain_count = 0;
    stack = session_unwind_look(session, thread, look, &sample);
    if (look->state == TICK_BLOCKED)
        stack = push_wait(session, thread, stack, look);
    id_map_put(&control->stack_of_site, site_key(thread, look), stack);
    session_counts_note(session, look, stack);
    return stack;
}

static uint32_t observed_stack(struct session *session, const struct thread *thread,
                               const struct tick_look *look)
{
    uint32_t stack = take_stack(session, thread, look);

    return look->throttled ? session_throttled_stack(session, stack) : stack;
}

/* How long its waits have been since the look before. */
static void note_wait_length(struct session *session, const struct thread *thread,
                             const struct tick_look *look, uint32_t stack)
{
    struct thread_record *known = &session->threads.items[thread->id];
    const struct wait_length_point before = known->last_look;
    struct wait_length_looks *looks;

    known->last_look = (struct wait_length_point){
        .time_ns = look->time_ns,
        .on_cpu_ns = look->on_cpu_ns,
        .runnable_ns = look->runnable_ns,
        .voluntary_switches = look->voluntary_switches,
    };
    if (before.time_ns == 0 || look->state != TICK_BLOCKED ||
        (look->stack != TICK_STACK_WHOLE && look->stack != TICK_STACK_RACED))
        return;
    looks = &session->tick.by_wait_length[wait_length_class(wait_length_mean_ns(&before, &known->last_look))];
    looks->stacks++;
    looks->lost += stack == CALIBRATION_LOST_STACK;
}

static enum observed_state observed_state(enum tick_look_state state)
{
    switch (state) {
    case TICK_RUNNING:
    case TICK_ENDED:
        return OBSERVED_RUNNING;
    case TICK_RUNNABLE:
        return OBSERVED_RUNNABLE;
    case TICK_AWAKE:
        return OBSERVED_AWAKE;
    case TICK_STOPPED:
        return OBSERVED_STOPPED;
    case TICK_BLOCKED:
        break;
    }
    return OBSERVED_BLOCKED;
}

/* Of what is kept for those who wait for a lock that the thread holds. */
static enum thread_state thread_state_of(enum tick_look_state state)
{
    switch (state) {
    case TICK_RUNNING:
    case TICK_AWAKE:
    case TICK_ENDED:
        return STATE_ON_CPU;
    case TICK_RUNNABLE:
        return STATE_RUNNABLE;
    case TICK_STOPPED:
        return STATE_STOPPED;
    case TICK_BLOCKED:
        break;
    }
    return STATE_BLOCKED;
}

static uint64_t begin_of(const struct session *session, const struct tick_look *look)
{
    uint64_t begin_ns = look->start_time_ns - session->tick.boot_offset_ns;

    return begin_ns > session->window_start_ns ? begin_ns : session->window_start_ns;
}

/* A thread that no record has told of yet: its fork is still on its way. */
static struct thread *add_found_thread(struct session *session, const struct tick_look *look)
{
    struct process *process = process_table_find_process(session->processes, look->pid);
    char comm[PROCESS_COMM_SIZE] = "";
    uint64_t begin_ns = begin_of(session, look);

    if (process == NULL) {
        process = session_add_found_process(session, look->pid, begin_ns);
        if (process == NULL)
            return NULL;
        session_watch_process(session, look->pid);
    }
    if (proc_read_comm(look->pid, look->tid, comm) < 0)
        memcpy(comm, process->executable, strnlen(process->executable, sizeof comm - 1));
    return session_add_thread(session, process, look->tid, comm, begin_ns, STATE_RUNNABLE,
                              begin_ns > session->window_start_ns);
}

static struct thread *thread_of(struct session *session, const struct tick_look *look)
{
    struct thread *thread = process_table_find_thread(session->processes, look->tid);
    struct thread_record *known;
    uint32_t ended;

    if (thread != NULL) {
        known = &session->threads.items[thread->id];
        if (known->start_time_ns == 0)
            known->start_time_ns = look->start_time_ns;
        if (known->start_time_ns == look->start_time_ns)
            return thread;
        session_end_thread(session, thread, look->time_ns, NULL); /* its number is somebody else's by now */
    }
    /* A thread can still be seen on its way out, after its end was told. */
    if (id_map_get(&session->last_ended_of_tid, (uint64_t)look->tid, &ended) &&
        session->threads.items[ended].start_time_ns == look->start_time_ns)
        return NULL;
    thread = add_found_thread(session, look);
    if (thread != NULL)
        session->threads.items[thread->id].start_time_ns = look->start_time_ns;
    return thread;
}

static void note_counters(struct session *session, const struct thread *thread, const struct tick_look *look)
{
    struct thread_record *known = &session->threads.items[thread->id];
    const struct proc_schedstat now = {.on_cpu_ns = look->on_cpu_ns, .runnable_ns = look->runnable_ns};

    if (!known->begin_known)
        known->begin = now;
    known->begin_known = true;
    known->end = now;
    known->end_known = true;
}

/* A record of perf tells the end's very moment, the engine at worst the pass that noticed it. */
static uint64_t end_of(const struct session *session, const struct thread *thread,
                       const struct tick_look *look)
{
    uint64_t exit_ns = session->threads.items[thread->id].exit_ns;

    return exit_ns != 0 && exit_ns < look->time_ns ? exit_ns : look->time_ns;
}

static void take_look(struct session *session, const struct tick_look *look)
{
    const struct thread_counters counters = {
        .on_cpu_ns = look->on_cpu_ns,
        .runnable_ns = look->runnable_ns,
        .voluntary_switches = look->voluntary_switches,
        .involuntary_switches = look->involuntary_switches,
    };
    struct thread *thread = thread_of(session, look);
    uint32_t stack;

    if (thread == NULL)
        return;
    note_counters(session, thread, look);
    if (session->capture == NULL && !look->unchanged)
        calibration_on_cpu_stack(session->calibration, thread->id, look->time_ns,
                                 session_unpermitted_stack(session, STATE_ON_CPU));
    if (look->state == TICK_ENDED) {
        session_locks_note(session, thread, look, STACK_EMPTY, 0);
        session_end_thread(session, thread, end_of(session, thread, look), &counters);
        return;
    }
    if (look->unchanged)
        return;
    session_locks_note(session, thread, look, STACK_EMPTY, 0);
    stack = observed_stack(session, thread, look);
    note_wait_length(session, thread, look, stack);
    session->threads.items[thread->id].last_state = thread_state_of(look->state);
    session->threads.items[thread->id].last_stack = stack;
    calibration_observe(session->calibration, thread->id,
                        &(struct observation){.time_ns = look->time_ns,
                                              .counters = counters,
                                              .state = observed_state(look->state),
                                              .stack = stack});
}

void session_tick_take(struct session *session)
{
    struct tick_control *control = &session->tick;
    struct tick_look look;

    control->looks_due_ns = 0;
    control->is_late = false;
    while (session->tick.backend->next(session->tick.tick, &look)) {
        if (session->window_end_ns != 0 && look.time_ns > session->window_end_ns)
            look.time_ns = session->window_end_ns;
        take_look(session, &look);
    }
    if (control->is_late)
        control->hurried_passes = HURRIED_PASSES;
    else if (control->hurried_passes > 0)
        control->hurried_passes--;
}

void session_tick_end(struct session *session)
{
    uint32_t count = process_table_thread_count(session->processes);

    session->tick.pass_begin_ns = clock_now_ns(); /* there is no later pass that could see them */
    session_exited_end_unseen(session);

    for (uint32_t i = 0; session->capture == NULL && i < count; i++)
        calibration_on_cpu_stack(session->calibration, i, session->window_end_ns,
                                 session_unpermitted_stack(session, STATE_ON_CPU));
    calibration_finish(session->calibration, session->window_end_ns);
    session_locks_end(session);
    session->profile->looks = (struct profile_looks){
        .passes = session->tick.passes,
        .stacks_taken = session->tick.stacks_taken,
        .stacks_left_out = session->tick.stacks_left_out,
        .stacks_raced = session->tick.stacks_raced,
        .stacks_recalled = session->tick.stacks_recalled,
        .stacks_deep = session->tick.stacks_deep,
        .deep_failed = session->tick.deep_failed,
        .deep_recalled = session->tick.deep_recalled,
    };
    memcpy(session->profile->looks.by_wait_length, session->tick.by_wait_length,
           sizeof session->tick.by_wait_length);
    if (session->tick.backend == &tick_proc)
        session_exited_add(session);
}

static uint64_t used_cpu_ns(const struct session *session)
{
    return clock_self_cpu_ns() + session->tick.backend->cpu_ns(session->tick.tick) +
           session_memory_cpu_ns(session);
}

static double between(double low, double value, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* Fewer stacks first, down to half of them, then fewer ticks; where the passes themselves are what is dear, fewer ticks
 * at once: leaving out stacks would save nothing. */
static void spend_less(struct tick_control *control, double factor, bool stacks_are_dear)
{
    if (stacks_are_dear && control->stack_share > half_of_stacks)
        control->stack_share = between(half_of_stacks, control->stack_share * factor, 1);
    else if (control->rate_hz > LOWEST_FULL_RATE_HZ)
        control->rate_hz = between(LOWEST_FULL_RATE_HZ, control->rate_hz * factor, control->rate_hz);
    else if (stacks_are_dear && control->stack_share > lowest_stack_share)
        control->stack_share = between(lowest_stack_share, control->stack_share * factor, 1);
    else
        control->rate_hz = between(lowest_rate_hz, control->rate_hz * factor, control->rate_hz);
}

/* The same way back. */
static void spend_more(struct tick_control *control, double factor, double full_rate_hz)
{
    if (control->rate_hz < LOWEST_FULL_RATE_HZ || control->stack_share >= half_of_stacks)
        control->rate_hz = between(lowest_rate_hz, control->rate_hz * factor, full_rate_hz);
    if (control->stack_share < half_of_stacks || control->rate_hz >= full_rate_hz)
        control->stack_share = between(lowest_stack_share, control->stack_share * factor, 1);
}

/* What the first pass took is a price paid once: it does not count. */
static void begin_budget(struct session *session)
{
    struct tick_control *control = &session->tick;

    control->check_ns = clock_now_ns();
    control->check_cpu_ns = used_cpu_ns(session);
    control->check_stacks = control->stacks_taken;
    control->check_interval_ns = first_check_ns;
}

/* Soon after the start, since what is too much should not go on for long; then once a second, since less is measured too
 * coarsely. */
static void keep_budget(struct session *session, uint64_t now_ns)
{
    struct tick_control *control = &session->tick;
    double budget = session->options->max_overhead_percent / 100;
    double elapsed_ns = (double)(now_ns - control->check_ns);
    uint64_t cpu_ns = used_cpu_ns(session);
    double used_ns = (double)(cpu_ns - control->check_cpu_ns + 1);
    double stacks_ns = (double)(control->stacks_taken - control->check_stacks) * stack_cost_ns;
    double factor = budget * elapsed_ns / used_ns;

    if (elapsed_ns < (double)control->check_interval_ns)
        return;
    control->check_interval_ns = minimum(control->check_interval_ns * 2, NS_PER_S);
    control->check_ns = now_ns;
    control->check_cpu_ns = cpu_ns;
    control->check_stacks = control->stacks_taken;
    if (budget <= 0)
        return;
    if (factor < 1)
        spend_less(control, between(0.1, factor * 0.95, 1), stacks_ns > used_ns / 3);
    else if (factor > 1.25)
        spend_more(control, between(1, factor * 0.9, 2), session->options->frequency_hz);
    control->backend->set_stack_share(control->tick, control->stack_share);
}

/* Ticks are jittered by a quarter, so that they do not keep step with something the target does. */
static void set_next(struct tick_control *control, uint64_t now_ns)
{
    double period_ns = (double)NS_PER_S / control->rate_hz;

    control->next_ns = now_ns + (uint64_t)(period_ns * (0.75 + 0.5 * drand48()));
}

void session_tick_turn(struct session *session, bool all)
{
    struct tick_control *control = &session->tick;
    struct error err = {0};
    int more = 0;

    if (control->broken)
        return;
    session_tick_take(session);
    if (control->passes > 0)
        session_exited_end_unseen(session);
    control->passes++;
    control->pass_begin_ns = clock_now_ns();
    session_locks_turn(session, control->pass_begin_ns);
    calibration_tick(session->calibration, control->pass_begin_ns);
    for (int chunk = 0; chunk < MAX_PASS_CHUNKS; chunk++) {
        more = control->backend->pass(control->tick, all, &err);
        if (more <= 0)
            break;
        session_tick_take(session); /* more than is kept between ticks: at the first pass, as a rule */
    }
    if (more < 0) {
        control->broken = true;
        snprintf(session->trouble, sizeof session->trouble, "%s", err.message);
    }
    if (control->backend == &tick_proc)
        session_exited_note(session);
    if (control->passes == 1)
        begin_budget(session);
    else
        keep_budget(session, clock_now_ns());
    set_next(control, clock_now_ns());
    if (control->hurried_passes > 0)
        control->looks_due_ns = clock_now_ns() + hurried_ns;
}
