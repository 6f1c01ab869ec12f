/* One profiling session: the only place that joins capturing, unwinding, accounting and naming into one
 * pipeline.
 *
 *   struct session_options options = {.pids = &pid, .pid_count = 1, .children = true, .frequency_hz = 99};
 *   r = session_run(&options, &observer, &profile, &err);
 *
 * A sample's way: ring bytes -> perf_record -> time order -> mapping looked up now -> unwinder -> stack of
 * locations -> timeline; after sampling each distinct location is named once and the profile is made. */
#ifndef STALLGRAPH_SESSION_H
#define STALLGRAPH_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/base/error.h"
#include "profiler/model/profile.h"

enum session_mode { SESSION_WALL, SESSION_ON_CPU, SESSION_OFF_CPU };
enum session_kernel_frames { SESSION_KERNEL_ON_CPU, SESSION_KERNEL_ALL, SESSION_KERNEL_NONE };
enum session_off_cpu { SESSION_OFF_CPU_AUTO, SESSION_OFF_CPU_TICK, SESSION_OFF_CPU_TRACE };
enum session_call_graph { SESSION_CALL_GRAPH_AUTO, SESSION_CALL_GRAPH_DWARF, SESSION_CALL_GRAPH_FP };

struct session_options {
    const pid_t *pids; /* at least one */
    size_t pid_count;
    bool children; /* their descendants too, alive now or forked later */
    bool command;  /* the process is yet to execute what is to be profiled: observer->started lets it */
    uint64_t duration_ns; /* 0 = until stopped or until the targets are gone */
    double frequency_hz;
    enum session_mode mode;
    enum session_kernel_frames kernel;
    enum session_call_graph call_graph;
    enum session_off_cpu off_cpu;
    bool counts; /* count every wait by its place */
    /* Regular expressions, sound ones (idle_rules_create): waits of stacks with such a frame are idle, or are not. */
    const char *const *idle_rules;
    size_t idle_rule_count;
    const char *const *busy_rules;
    size_t busy_rule_count;
    double max_overhead_percent; /* of one CPU, for the sampler itself (engine tick); 0 = no limit */
};

struct session_progress {
    uint64_t elapsed_ns;
    uint64_t samples; /* stacks taken so far, on-CPU and at switches */
    uint64_t lost;
};

/* Called from session_run; any may be NULL. */
struct session_observer {
    void *context;
    /* Sampling has begun; choice says in one line how, limits what could not be had and why, or is "". */
    void (*started)(void *context, const char *choice, const char *limits);
    /* Sampling had to end before its time, and why; what was sampled until then is in the profile. */
    void (*trouble)(void *context, const char *why);
    void (*progress)(void *context, const struct session_progress *progress); /* about once a second */
    /* Sampling ends when it becomes non-zero (set by a signal handler). */
    const volatile sig_atomic_t *stop;
};

/* Runs until the duration is over, *stop is set or no target is left. 0 and a profile (also an empty one), or
 * -errno. */
int session_run(const struct session_options *options, const struct session_observer *observer,
                struct profile **ret_profile, struct error *err);

#endif
