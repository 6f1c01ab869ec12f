#include "profiler/session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/session_internal.h"

/* A process may end while the record of its last fork is still held back: only when nobody is left in so many
 * passes is it over. */
enum { POLL_MS = 100, LAST_POLL_MS = 10, PASSES_WITHOUT_TARGET = 4, MAX_SCAN_ROUNDS = 5 };

static enum perf_stack_mode stack_mode(const struct session_options *options)
{
    return options->call_graph == SESSION_CALL_GRAPH_FP ? PERF_STACK_CHAIN : PERF_STACK_BOTH;
}

/* Refuses what can never be profiled before anything is opened. */
static int check_pid(pid_t pid, struct error *err)
{
    struct proc_stat stat;
    int r = proc_read_stat(pid, pid, &stat);

    if (r == -ESRCH || r == -ENOENT) {
        error_set(err, -ESRCH, "process %d", pid);
        return error_hint(err, "check the number: it must be a process that runs now, in this pid namespace");
    }
    if (r < 0)
        return error_set(err, r, "read /proc/%d/stat", pid);
    if (stat.kernel_thread) {
        error_say(err, -EINVAL, "process %d (%s): it is a kernel thread", pid, stat.comm);
        return error_hint(err, "only processes with user code can be profiled");
    }
    if (stat.state == 'Z' || stat.state == 'X') {
        error_say(err, -ESRCH, "process %d (%s): it is a zombie: it has ended and waits to be reaped", pid,
                  stat.comm);
        return error_hint(err, "profile its parent, process %d, or start it again", stat.parent_pid);
    }
    return 0;
}

static int list_targets(const struct session_options *options, pid_t **ret_pids, size_t *ret_count,
                        struct error *err)
{
    int r;

    for (size_t i = 0; i < options->pid_count; i++) {
        r = check_pid(options->pids[i], err);
        if (r < 0)
            return r;
    }
    if (!options->children) {
        *ret_pids = memory_copy(options->pids, options->pid_count * sizeof *options->pids);
        *ret_count = options->pid_count;
        return 0;
    }
    r = proc_list_descendants(options->pids, options->pid_count, ret_pids, ret_count);
    return r < 0 ? error_set(err, r, "list the processes below %d", options->pids[0]) : 0;
}

/* Until nobody is new: a process may fork while the list is read. */
static void scan_targets(struct session *session)
{
    for (int round = 0; round < MAX_SCAN_ROUNDS; round++) {
        AUTO_FREE pid_t *pids = NULL;
        size_t count = 0;
        bool found_new = false;

        if (list_targets(session->options, &pids, &count, NULL) < 0)
            return;
        for (size_t i = 0; i < count; i++) {
            if (process_table_find_process(session->processes, pids[i]) != NULL)
                continue;
            perf_capture_add_process(session->capture, pids[i]);
            if (session->tick.tick != NULL)
                session->tick.backend->add_process(session->tick.tick, pids[i]);
            if (session_add_existing_process(session, pids[i]) == 0)
                found_new = true;
        }
        if (!found_new)
            return;
    }
}

static const char *describe_blocked(const struct session *session, const struct perf_capture_choice *choice)
{
    if (session->tick.tick != NULL)
        return "tick (BPF)";
    if (choice->scheduler_events)
        return choice->switch_stacks ? "trace (sched_switch)" : "trace (sched_switch), without stacks";
    return choice->switch_stacks ? "trace (context switches, no wake-ups)" : "not to be had";
}

static void add_limit(struct session *session, const char *text)
{
    size_t used = strlen(session->limits);

    if (text[0] != '\0')
        snprintf(session->limits + used, sizeof session->limits - used, "%s%s", used > 0 ? "; " : "", text);
}

static void describe_choice(struct session *session)
{
    const struct perf_capture_choice *choice = perf_capture_choice(session->capture);

    snprintf(session->choice, sizeof session->choice, "on-CPU: %s at %g Hz, %s%s; blocked: %s; stacks: %s%s",
             choice->hardware_cycles ? "cycles" : "cpu-clock", session->options->frequency_hz,
             choice->cpu_wide ? "CPU-wide" : "per task",
             choice->filtered_in_kernel ? ", filtered in the kernel" : "", describe_blocked(session, choice),
             session->backend->name, choice->kernel_frames ? "" : ", no kernel frames");
    add_limit(session, choice->why_not);
}

/* The engine for blocked time: `tick` where it can be had, unless `trace` was asked for. */
static int choose_engine(struct session *session, struct error *err)
{
    struct error why = {0};
    int r;

    if (session->options->off_cpu == SESSION_OFF_CPU_TRACE)
        return 0;
    r = session_tick_open(session, &why);
    if (r >= 0)
        return 0;
    if (session->options->off_cpu == SESSION_OFF_CPU_TICK) {
        error_say(err, r, "the engine tick cannot be had: %s", why.message);
        return error_hint(err, "--off-cpu auto takes what can be had");
    }
    add_limit(session, why.message);
    return 0;
}

static int open_session(struct session *session, struct error *err)
{
    const struct session_options *options = session->options;
    AUTO_FREE pid_t *pids = NULL;
    size_t count = 0;
    int r = list_targets(options, &pids, &count, err);

    if (r < 0)
        return r;
    r = choose_engine(session, err);
    if (r == 0 && options->counts)
        r = session_counts_open(session, err);
    if (r < 0)
        return r;
    const struct perf_capture_options capture_options = {
        .pids = pids,
        .pid_count = count,
        .children = options->children,
        .frequency_hz = options->frequency_hz,
        .on_cpu = options->mode != SESSION_OFF_CPU,
        .off_cpu = session->tick.tick == NULL,
        .stack_mode = stack_mode(options),
        .kernel_chain = options->kernel != SESSION_KERNEL_NONE,
    };
    session->backend = unwinder_find(options->call_graph == SESSION_CALL_GRAPH_FP ? "fp" : "dwarf");
    session->binaries = binary_table_create();
    session->unwinder = session->backend->create(session->binaries);
    if (session->unwinder == NULL)
        return error_set(err, -ENOMEM, "start the %s unwinder", session->backend->name);
    session->processes = process_table_create();
    session->locations = location_table_create();
    session->stacks = stack_table_create();
    session->profile = profile_create();
    return perf_capture_open(&capture_options, &session->capture, err);
}

static void drain(struct session *session)
{
    struct perf_record record;

    while (perf_capture_next(session->capture, &record))
        session_handle_record(session, &record);
}

static void tell_progress(const struct session *session, uint64_t now_ns)
{
    const struct session_progress progress = {
        .elapsed_ns = now_ns - session->window_start_ns,
        .samples = session->samples,
        .lost = session->profile->loss.lost_events,
    };

    if (session->observer->progress != NULL)
        session->observer->progress(session->observer->context, &progress);
}

static uint64_t minimum(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Until the next thing is due: the end, a tick, or a look at the rings. */
static int wait_ms(const struct session *session, uint64_t now_ns, uint64_t end_ns, bool alone)
{
    uint64_t until_ns = now_ns + (alone ? LAST_POLL_MS : POLL_MS) * NS_PER_MS;

    until_ns = minimum(until_ns, end_ns);
    if (session->tick.tick != NULL)
        until_ns = minimum(until_ns, session_tick_due_ns(session));
    return until_ns > now_ns ? (int)((until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

static void sample_until_done(struct session *session)
{
    uint64_t next_second_ns = session->window_start_ns + NS_PER_S;
    uint64_t end_ns = session->options->duration_ns > 0
                          ? session->window_start_ns + session->options->duration_ns
                          : UINT64_MAX;
    int passes_alone = 0;

    while (passes_alone < PASSES_WITHOUT_TARGET) {
        uint64_t now_ns = clock_now_ns();

        if (session->observer->stop != NULL && *session->observer->stop != 0)
            return;
        if (now_ns >= end_ns)
            return;
        perf_capture_wait(session->capture, wait_ms(session, now_ns, end_ns, passes_alone > 0), -1);
        drain(session);
        now_ns = clock_now_ns();
        if (session->tick.tick != NULL && now_ns >= session_tick_due_ns(session))
            session_tick_turn(session, false);
        passes_alone = session_check_alive(session) ? 0 : passes_alone + 1;
        if (now_ns >= next_second_ns) {
            tell_progress(session, now_ns);
            next_second_ns += NS_PER_S;
        }
    }
}

static void fill_meta(struct session *session, int64_t start_unix_ns)
{
    struct profile_meta *meta = &session->profile->meta;
    struct utsname name;

    meta->frequency_hz = session->options->frequency_hz;
    meta->start_unix_ns = start_unix_ns;
    meta->duration_ns = session->window_end_ns - session->window_start_ns;
    profile_set_text(&meta->engines, session->choice);
    if (uname(&name) == 0) {
        profile_set_text(&meta->host, name.nodename);
        profile_set_text(&meta->kernel, name.release);
    }
    if (process_table_process_count(session->processes) > 0) {
        const struct process *first = process_table_process(session->processes, 0);
        AUTO_FREE char *title = string_format("%s (%d)", first->executable, first->pid);

        profile_set_text(&meta->title, title);
    }
}

static int64_t unix_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

static void end_window(struct session *session)
{
    if (session->tick.tick != NULL)
        session_tick_turn(session, true);
    else
        session_read_end_counters(session);
    if (session->counts != NULL)
        wait_counts_stop(session->counts);
    session->window_end_ns = clock_now_ns();
    perf_capture_stop(session->capture);
    drain(session);
    if (session->tick.tick != NULL) {
        session_tick_take(session);
        calibration_finish(session->calibration, session->window_end_ns);
    } else {
        timeline_finish(session->timeline, session->window_end_ns);
    }
}

static int run_opened(struct session *session, struct error *err)
{
    int64_t start_unix_ns;
    int r = perf_capture_start(session->capture, err);

    if (r < 0)
        return r;
    session->window_start_ns = clock_now_ns();
    start_unix_ns = unix_now_ns();
    if (session->tick.tick != NULL)
        session->calibration = calibration_create(session->window_start_ns);
    else
        session->timeline = timeline_create(session->window_start_ns,
                                            perf_capture_choice(session->capture)->scheduler_events);
    scan_targets(session);
    describe_choice(session);
    if (session->tick.tick != NULL)
        session_tick_turn(session, true);
    if (session->observer->started != NULL)
        session->observer->started(session->observer->context, session->choice, session->limits);
    sample_until_done(session);
    end_window(session);
    fill_meta(session, start_unix_ns);
    session_make_profile(session);
    return 0;
}

static void close_session(struct session *session)
{
    perf_capture_close(session->capture);
    session_tick_close(session);
    session_counts_close(session);
    if (session->unwinder != NULL)
        session->backend->destroy(session->unwinder);
    timeline_destroy(session->timeline);
    calibration_destroy(session->calibration);
    stack_table_destroy(session->stacks);
    location_table_destroy(session->locations);
    session_release_targets(session);
    process_table_destroy(session->processes);
    binary_table_destroy(session->binaries);
    profile_destroy(session->profile);
    free(session);
}

int session_run(const struct session_options *options, const struct session_observer *observer,
                struct profile **ret_profile, struct error *err)
{
    struct session *session = memory_zeroed(1, sizeof *session);
    int r;

    session->options = options;
    session->observer = observer;
    r = open_session(session, err);
    if (r == 0)
        r = run_opened(session, err);
    if (r == 0) {
        *ret_profile = session->profile;
        session->profile = NULL;
    }
    close_session(session);
    return r;
}
