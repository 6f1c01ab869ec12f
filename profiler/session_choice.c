#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profiler/session_internal.h"

static void add_limit(struct session *session, const char *text)
{
    size_t used = strlen(session->limits);

    if (text[0] != '\0')
        snprintf(session->limits + used, sizeof session->limits - used, "%s%s", used > 0 ? "; " : "", text);
}

/* Whether blocked threads' stacks are out of reach. */
static bool add_missing_rights(struct session *session, pid_t pid)
{
    struct proc_syscall ignored;
    char text[256];
    int r = proc_read_syscall(pid, pid, &ignored);

    if (r != -EPERM && r != -EACCES)
        return false;
    snprintf(
        text, sizeof text,
        "no stacks of blocked threads: /proc/%d/syscall: %s; run as root, as the process's user, or with "
        "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
        pid, strerror(-r));
    add_limit(session, text);
    return true;
}

static int choose_tick(struct session *session, pid_t pid, struct error *err)
{
    struct error why = {0};
    char text[sizeof why.message + 128];
    int r = session_tick_open(session, &tick_bpf, &why);

    if (r >= 0)
        return 0;
    snprintf(text, sizeof text, "no BPF: %s; it wants root, or CAP_BPF and CAP_PERFMON", why.message);
    add_limit(session, text);
    r = session_tick_open(session, &tick_proc, err);
    if (r >= 0 && !add_missing_rights(session, pid))
        add_limit(session, "/proc tells neither the callee-saved registers of blocked threads, so that some "
                           "of their stacks end early ([truncated]), nor the stacks of runnable ones");
    return r;
}

/* The engine for blocked time: `tick` where it can be had, unless `trace` was asked for. */
static int choose_engine(struct session *session, pid_t pid, struct error *err)
{
    struct error why = {0};
    int r;

    if (session->options->off_cpu == SESSION_OFF_CPU_TRACE)
        return 0;
    r = choose_tick(session, pid, &why);
    if (r >= 0)
        return 0;
    if (session->options->off_cpu == SESSION_OFF_CPU_TICK) {
        error_say(err, r, "the engine tick cannot be had: %s; %s", session->limits, why.message);
        return error_hint(err, "--off-cpu auto takes what can be had");
    }
    add_limit(session, why.message);
    return 0;
}

/* `trace` was asked for: then half of it is not what was asked for. */
static int check_trace(const struct session *session, struct error *err)
{
    const struct perf_capture_choice *choice = perf_capture_choice(session->capture);

    if (session->options->off_cpu != SESSION_OFF_CPU_TRACE ||
        (choice->scheduler_events && choice->switch_stacks))
        return 0;
    error_say(err, -EPERM, "the engine trace cannot be had: %s",
              choice->why_not[0] != '\0' ? choice->why_not : "this kernel has no scheduler events");
    return error_hint(
        err, "run as root, or with CAP_PERFMON and CAP_DAC_READ_SEARCH (tracefs wants the latter), or "
             "leave --off-cpu trace out");
}

static int open_capture(struct session *session, const struct perf_capture_options *options,
                        struct error *err)
{
    struct error why = {0};
    int r = perf_capture_open(options, &session->capture, &why);
    char text[sizeof why.message + 64];

    if (r == 0)
        return check_trace(session, err);
    /* Without it the engine `tick` still knows how long each thread ran. */
    if (session->tick.tick != NULL && r != -ESRCH) {
        snprintf(text, sizeof text, "no stacks of running threads: %s", why.message);
        add_limit(session, text);
        return 0;
    }
    if (session->options->off_cpu == SESSION_OFF_CPU_TRACE)
        return error_say(err, r, "the engine trace cannot be had: %s", why.message);
    *err = why;
    return r;
}

int session_choose(struct session *session, const pid_t *pids, size_t pid_count, struct error *err)
{
    const struct session_options *options = session->options;
    int r = choose_engine(session, pids[0], err);

    if (r == 0 && options->counts)
        r = session_counts_open(session, err);
    if (r < 0)
        return r;
    const struct perf_capture_options capture_options = {
        .pids = pids,
        .pid_count = pid_count,
        .children = options->children,
        .frequency_hz = options->frequency_hz,
        .on_cpu = options->mode != SESSION_OFF_CPU,
        .off_cpu = session->tick.tick == NULL,
        .stack_mode = options->call_graph == SESSION_CALL_GRAPH_FP ? PERF_STACK_CHAIN : PERF_STACK_BOTH,
        .kernel_chain = options->kernel != SESSION_KERNEL_NONE,
    };
    return open_capture(session, &capture_options, err);
}

static const char *describe_tick(const struct session *session)
{
    return session->tick.backend == &tick_bpf ? "tick (BPF)" : "tick (/proc)";
}

static const char *describe_blocked(const struct session *session, const struct perf_capture_choice *choice)
{
    if (session->tick.tick != NULL)
        return describe_tick(session);
    if (choice->scheduler_events)
        return choice->switch_stacks ? "trace (sched_switch)" : "trace (sched_switch), without stacks";
    return choice->switch_stacks ? "trace (context switches, no wake-ups)" : "not to be had";
}

void session_describe_choice(struct session *session)
{
    const struct perf_capture_choice *choice;

    if (session->capture == NULL) {
        snprintf(session->choice, sizeof session->choice,
                 "on-CPU: amounts from schedstat, stacks not permitted; blocked: %s at %g Hz; stacks: %s",
                 describe_tick(session), session->options->frequency_hz, session->backend->name);
        return;
    }
    choice = perf_capture_choice(session->capture);
    snprintf(session->choice, sizeof session->choice, "on-CPU: %s at %g Hz, %s%s; blocked: %s; stacks: %s%s",
             choice->hardware_cycles ? "cycles" : "cpu-clock", session->options->frequency_hz,
             choice->cpu_wide ? "CPU-wide" : "per task",
             choice->filtered_in_kernel ? ", filtered in the kernel" : "", describe_blocked(session, choice),
             session->backend->name, choice->kernel_frames ? "" : ", no kernel frames");
    add_limit(session, choice->why_not);
}
