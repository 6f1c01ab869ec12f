#include "profiler/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/session_internal.h"

enum {
    MAX_SPANS =
        300000, /* 7 MB, and some 20 MB as JSON; time order to half a second and better in an hour of 50 threads */
    MAX_SITES = 100000,
};

/* A process may end while the record of its last fork is still held back: only when nobody is left in so many
 * passes is it over. */
enum { POLL_MS = 100, LAST_POLL_MS = 10, PASSES_WITHOUT_TARGET = 4 };

/* To what we may have without asking: each process and each event takes some. The helpers that share our table start later,
 * and inherit it. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int open_session(struct session *session, struct error *err)
{
    const struct session_options *options = session->options;
    AUTO_FREE pid_t *pids = NULL;
    size_t count = 0;
    int r = session_list_targets(options, &pids, &count, err);

    if (r < 0)
        return r;
    session->backend = unwinder_find(options->call_graph == SESSION_CALL_GRAPH_FP ? "fp" : "dwarf");
    session->binaries = binary_table_create();
    session->unwinder = session->backend->create(session->binaries);
    if (session->unwinder == NULL)
        return error_set(err, -ENOMEM, "start the %s unwinder", session->backend->name);
    session->processes = process_table_create();
    session->locations = location_table_create();
    session->stacks = stack_table_create();
    session->profile = profile_create();
    return session_choose(session, pids, count, err);
}

static void drain(struct session *session)
{
    struct perf_record record;

    if (session->capture == NULL)
        return;
    while (perf_capture_next(session->capture, &record))
        session_handle_record(session, &record);
}

/* A long session must not need more memory than a short one: time order gets coarser, and places are
 * forgotten. */
static void bound_memory(struct session *session)
{
    if (session->timeline != NULL)
        timeline_keep_budget(session->timeline, &session->span_budget);
    if (session->calibration != NULL)
        calibration_keep_budget(session->calibration, &session->span_budget);
    if (session->tick.stack_of_site.count > MAX_SITES)
        id_map_clear(&session->tick.stack_of_site);
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

static void wait_for_data(struct session *session, int timeout_ms)
{
    if (session->capture != NULL)
        perf_capture_wait(session->capture, timeout_ms, -1);
    else
        poll(NULL, 0, timeout_ms);
}

static void tick(struct session *session, uint64_t now_ns)
{
    if (!session_tick_hurries(session, now_ns)) {
        session_tick_turn(session, false);
        return;
    }
    drain(session); /* once more: what was read before may not reach the time of the looks yet */
    session_tick_take(session);
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
        if (now_ns >= end_ns || session->tick.broken)
            return;
        wait_for_data(session, wait_ms(session, now_ns, end_ns, passes_alone > 0));
        drain(session);
        now_ns = clock_now_ns();
        if (session->tick.tick != NULL && now_ns >= session_tick_due_ns(session))
            tick(session, now_ns);
        session_survey(session, false);
        session_throttle_turn(session, now_ns);
        passes_alone = session_check_alive(session) ? 0 : passes_alone + 1;
        if (now_ns >= next_second_ns) {
            tell_progress(session, now_ns);
            bound_memory(session);
            next_second_ns += NS_PER_S;
        }
    }
}

static void fill_meta(struct session *session, int64_t start_unix_ns)
{
    struct profile_meta *meta = &session->profile->meta;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct utsname name;

    meta->frequency_hz = session->options->frequency_hz;
    meta->start_unix_ns = start_unix_ns + (int64_t)(session->report_start_ns - session->window_start_ns);
    meta->duration_ns = session->window_end_ns - session->report_start_ns;
    meta->cpu_count = cpus > 0 ? (uint32_t)cpus : 0;
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
    session_survey(session, true);
    if (session->tick.tick != NULL) {
        /* The window ends where the last looks are taken: nothing after them need be guessed. */
        session_tick_take(session);
        session->window_end_ns = clock_now_ns();
        session->tick.backend->set_stack_share(session->tick.tick,
                                               1); /* none of the last ones has a next one */
        session_tick_turn(session, true);
    } else {
        session_read_end_counters(session);
        session->window_end_ns = clock_now_ns();
    }
    if (session->counts != NULL)
        wait_counts_stop(session->counts);
    if (session->capture != NULL)
        perf_capture_stop(session->capture);
    drain(session);
    if (session->tick.tick != NULL) {
        session_tick_take(session);
        session_tick_end(session);
    } else {
        timeline_finish(session->timeline, session->window_end_ns);
    }
    session_throttle_end(session);
}

static int run_opened(struct session *session, struct error *err)
{
    int64_t start_unix_ns;
    int r = session->capture != NULL ? perf_capture_start(session->capture, err) : 0;

    if (r < 0)
        return r;
    session->window_start_ns = clock_now_ns();
    start_unix_ns = unix_now_ns();
    if (session->tick.tick == NULL)
        session->timeline = timeline_create(session->window_start_ns,
                                            perf_capture_choice(session->capture)->scheduler_events);
    session_scan(session);
    if (process_table_process_count(session->processes) == 0)
        return error_say(err, -ESRCH, "process %d ended before sampling could begin",
                         session->options->pids[0]);
    session_describe_choice(session);
    if (session->tick.tick != NULL) {
        /* It begins with the first looks: what was before them, no counter tells. */
        session->window_start_ns = clock_now_ns();
        start_unix_ns = unix_now_ns();
        session_tick_begin(session);
        session_tick_turn(session, true);
    }
    session_throttle_begin(session);
    session->report_start_ns = session->options->command ? clock_now_ns() : session->window_start_ns;
    if (session->observer->started != NULL)
        session->observer->started(session->observer->context, session->choice, session->limits);
    session_backlog_start(session);
    sample_until_done(session);
    end_window(session);
    if (session->trouble[0] != '\0' && session->observer->trouble != NULL)
        session->observer->trouble(session->observer->context, session->trouble);
    session_backlog_take(session);
    fill_meta(session, start_unix_ns);
    session_count_unpermitted(session);
    session_waits_settle(session);
    session_make_profile(session);
    return 0;
}

static void close_session(struct session *session)
{
    perf_capture_close(session->capture);
    session_tick_close(session);
    session_counts_close(session);
    session_backlog_close(session);
    session_waits_close(session);
    session_locks_close(session);
    session_throttle_close(session);
    session_memory_close(session);
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

    raise_file_limit();
    session->options = options;
    session->observer = observer;
    session->span_budget.max_spans = MAX_SPANS;
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
