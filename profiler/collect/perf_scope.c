#include "profiler/collect/perf_scope.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/collect/perf_task_events.h"
#include "profiler/collect/tracepoint.h"

enum {
    ON_CPU_COPY_BYTES = 32 * 1024,
    SWITCH_COPY_BYTES = 16 * 1024, /* there may be many thousands of these a second */
    KIB = 1024,
    MIB = 1024 * 1024,
};

/* Budgets of all rings together, and bounds for one: two CPUs get the upper bound, a hundred share. */
static const size_t exact_total_bytes = 64 * MIB, exact_least_bytes = 256 * KIB, exact_most_bytes = 4 * MIB;
static const size_t stacks_total_bytes = 128 * MIB, stacks_least_bytes = 512 * KIB,
                    stacks_most_bytes = 8 * MIB;

struct opening {
    const struct perf_capture_options *options;
    struct perf_scope *scope;
    struct perf_privileges privileges;
    struct tracepoint_ids tracepoints;
    enum perf_trigger scheduler_trigger; /* of PERF_SOURCE_SWITCH and PERF_SOURCE_WAKEUP */
};

static void __attribute__((format(printf, 2, 3)))
note_why_not(struct opening *opening, const char *format, ...)
{
    char *why_not = opening->scope->choice.why_not;
    size_t size = sizeof opening->scope->choice.why_not, used = strlen(why_not);
    va_list arguments;
    if (used > 0 && used + 2 < size) {
        memcpy(why_not + used, "; ", 3);
        used += 2;
    }
    va_start(arguments, format);
    vsnprintf(why_not + used, size - used, format, arguments);
    va_end(arguments);
}

static size_t share_ring_bytes(size_t total_bytes, size_t cpu_count, size_t least_bytes, size_t most_bytes)
{
    size_t bytes = most_bytes;
    while (bytes > least_bytes && bytes * cpu_count > total_bytes)
        bytes /= 2;
    return bytes;
}

static struct perf_event_stack stack_of(const struct opening *opening, uint32_t copy_bytes, bool kernel_chain)
{
    enum perf_stack_mode mode = opening->options->stack_mode;
    return (struct perf_event_stack){
        .copy_bytes = mode != PERF_STACK_CHAIN ? copy_bytes : 0,
        .user_chain = mode != PERF_STACK_COPY,
        .kernel_chain = kernel_chain,
    };
}

static struct perf_event_spec on_cpu_spec(const struct opening *opening, bool exclude_kernel)
{
    return (struct perf_event_spec){
        .source = PERF_SOURCE_ON_CPU,
        .stack = stack_of(opening, ON_CPU_COPY_BYTES, opening->options->kernel_chain && !exclude_kernel),
        .frequency_hz = opening->options->frequency_hz,
        .hardware_cycles = opening->scope->choice.hardware_cycles,
        .exclude_kernel = exclude_kernel,
    };
}

static struct perf_event_spec switch_stack_spec(const struct opening *opening)
{
    const struct perf_capture_choice *choice = &opening->scope->choice;
    return (struct perf_event_spec){
        .source = PERF_SOURCE_SWITCH_STACK,
        .trigger = choice->filtered_in_kernel ? PERF_TRIGGER_BPF
                   : choice->scheduler_events ? PERF_TRIGGER_TRACEPOINT
                                              : PERF_TRIGGER_SOFTWARE,
        .tracepoint_id = opening->tracepoints.sched_switch,
        .stack = stack_of(opening, SWITCH_COPY_BYTES, true),
    };
}

static struct perf_event_spec for_tasks(const struct opening *opening, struct perf_event_spec spec)
{
    spec.inherit = true; /* new threads */
    spec.inherit_thread = !opening->options->children;
    return spec;
}

/* An event that is opened only to see whether it can be. Returns 0 or -errno. */
static int probe(const struct perf_event_spec *spec, pid_t tid, int cpu)
{
    AUTO_CLOSE int fd = perf_event_open(spec, tid, cpu);
    return fd < 0 ? fd : 0;
}

/* Machines without a PMU, virtual ones above all, refuse cycles with ENOENT, ENODEV or EOPNOTSUPP: cpu-clock
 * does as well. */
static void choose_cycles(struct opening *opening, pid_t tid, bool exclude_kernel)
{
    struct perf_event_spec spec = on_cpu_spec(opening, exclude_kernel);
    spec.hardware_cycles = true;
    opening->scope->choice.hardware_cycles = probe(&spec, tid, opening->scope->set.cpus[0]) == 0;
}

/* Tries the filter on an event, which closes again. Returns 0 or -errno. */
static int try_filter(const struct opening *opening, const struct perf_filter *filter)
{
    int cpu = opening->scope->set.cpus[0];
    struct perf_event_spec spec = switch_stack_spec(opening);
    spec.trigger = PERF_TRIGGER_BPF;
    AUTO_CLOSE int trigger_fd = perf_event_open_switch_trigger(cpu);
    AUTO_CLOSE int output_fd = perf_event_open(&spec, -1, cpu);
    if (trigger_fd < 0)
        return trigger_fd;
    if (output_fd < 0)
        return output_fd;
    return perf_filter_attach_stack(filter, trigger_fd, output_fd, cpu);
}

static void choose_filter(struct opening *opening)
{
    struct error err = {0};
    struct perf_filter *filter = NULL;
    if (opening->privileges.pid_namespace) {
        note_why_not(opening, "no filter in the kernel: not in the first pid namespace");
        return;
    }
    int r = perf_filter_create(opening->options->children, &filter, &err);
    if (r < 0) {
        note_why_not(opening, "no filter in the kernel: %s", err.message);
        return;
    }
    r = try_filter(opening, filter);
    for (size_t i = 0; r == 0 && i < opening->options->pid_count; i++)
        r = perf_filter_add(filter, opening->options->pids[i]);
    if (r < 0) {
        note_why_not(opening, "no filter in the kernel: %s", strerror(-r));
        perf_filter_destroy(filter);
        return;
    }
    opening->scope->filter = filter;
    opening->scope->choice.filtered_in_kernel = true;
}

/* Exact switches and wake-ups: of the wanted processes alone where a BPF program tells them, else of the
 * whole machine. */
static void choose_scheduler_events(struct opening *opening)
{
    struct error err = {0};
    struct perf_event_spec spec = {.source = PERF_SOURCE_SWITCH};
    if (opening->scope->filter != NULL && perf_filter_has_scheduler(opening->scope->filter)) {
        opening->scope->set.layout.tracepoint = perf_filter_scheduler_layout;
        opening->scope->choice.scheduler_events = true;
        opening->scheduler_trigger = PERF_TRIGGER_BPF;
        return;
    }
    if (opening->privileges.pid_namespace) {
        note_why_not(
            opening,
            "no scheduler tracepoints: they tell the host's thread numbers, not this pid namespace's");
        return;
    }
    if (tracepoint_read(&opening->tracepoints, &opening->scope->set.layout.tracepoint, &err) < 0) {
        note_why_not(opening, "no scheduler tracepoints: %s", err.message);
        return;
    }
    spec.tracepoint_id = opening->tracepoints.sched_switch;
    int r = probe(&spec, -1, opening->scope->set.cpus[0]);
    if (r < 0) {
        perf_refusal_explain(&err, r, &opening->privileges, "sched:sched_switch");
        note_why_not(opening, "no scheduler tracepoints: %s", err.message);
        return;
    }
    opening->scope->choice.scheduler_events = true;
}

static int map_rings(struct opening *opening, struct perf_ring_plan *plan, struct error *err)
{
    struct perf_event_set *set = &opening->scope->set;
    int64_t bytes = perf_event_set_map_rings(set, plan, &opening->privileges, err);
    if (bytes < 0)
        return (int)bytes;
    opening->scope->choice.ring_bytes = (uint64_t)bytes;
    return 0;
}

/* Does with an event that has been opened on a CPU what is left to do. Returns 0 or -errno. */
typedef int (*event_finisher)(const struct opening *opening, int fd, int cpu);

/* On every CPU. finish may be NULL. */
static int add_cpu_wide(const struct opening *opening, const struct perf_event_spec *spec,
                        enum perf_ring_class ring_class, event_finisher finish, struct error *err)
{
    struct perf_event_set *set = &opening->scope->set;
    for (size_t cpu = 0; cpu < set->cpu_count; cpu++) {
        int r = perf_event_set_add(set, spec, -1, cpu, ring_class, 0);
        if (r == -ENODEV || r == -ENXIO) /* the CPU went offline */
            continue;
        if (r >= 0 && finish != NULL)
            r = finish(opening, r, set->cpus[cpu]);
        if (r < 0)
            return perf_refusal_explain(err, r, &opening->privileges, "open CPU-wide perf events");
    }
    return 0;
}

static int finish_on_cpu(const struct opening *opening, int fd, int cpu)
{
    (void)cpu;
    return opening->scope->filter != NULL ? perf_filter_attach(opening->scope->filter, fd) : 0;
}

static int finish_switch_stack(const struct opening *opening, int fd, int cpu)
{
    int trigger_fd = perf_event_open_switch_trigger(cpu);
    if (trigger_fd < 0)
        return trigger_fd;
    perf_event_set_keep(&opening->scope->set, trigger_fd);
    return perf_filter_attach_stack(opening->scope->filter, trigger_fd, fd, cpu);
}

static int finish_switch(const struct opening *opening, int fd, int cpu)
{
    return perf_filter_set_switch_output(opening->scope->filter, fd, cpu);
}

static int finish_wakeup(const struct opening *opening, int fd, int cpu)
{
    return perf_filter_set_wakeup_output(opening->scope->filter, fd, cpu);
}

static int add_filtered_scheduler_events(const struct opening *opening, struct error *err)
{
    const struct perf_event_spec switches = {.source = PERF_SOURCE_SWITCH, .trigger = PERF_TRIGGER_BPF};
    const struct perf_event_spec wakeups = {.source = PERF_SOURCE_WAKEUP, .trigger = PERF_TRIGGER_BPF};
    int r = add_cpu_wide(opening, &switches, PERF_RING_EXACT, finish_switch, err);
    if (r == 0)
        r = add_cpu_wide(opening, &wakeups, PERF_RING_EXACT, finish_wakeup, err);
    if (r < 0)
        return r;
    r = perf_filter_start_scheduler(opening->scope->filter);
    return r < 0 ? error_set(err, r, "attach the BPF programs") : 0;
}

static int add_scheduler_events(const struct opening *opening, struct error *err)
{
    const struct perf_event_spec specs[] = {
        {.source = PERF_SOURCE_SWITCH, .tracepoint_id = opening->tracepoints.sched_switch},
        {.source = PERF_SOURCE_WAKEUP, .tracepoint_id = opening->tracepoints.sched_wakeup},
        {.source = PERF_SOURCE_WAKEUP, .tracepoint_id = opening->tracepoints.sched_wakeup_new},
    };
    int r = 0;
    if (opening->scheduler_trigger == PERF_TRIGGER_BPF)
        return add_filtered_scheduler_events(opening, err);
    for (size_t i = 0; r == 0 && i < sizeof specs / sizeof specs[0]; i++)
        r = add_cpu_wide(opening, &specs[i], PERF_RING_EXACT, NULL, err);
    return r;
}

/* Without a filter, switch-out stacks of the whole machine would be copied: then only of our threads, at a
 * higher cost. */
static int add_switch_stacks(struct opening *opening, struct error *err)
{
    struct perf_event_spec spec = switch_stack_spec(opening);
    struct perf_capture_choice *choice = &opening->scope->choice;
    if (opening->scope->filter != NULL) {
        choice->switch_stacks = true;
        return add_cpu_wide(opening, &spec, PERF_RING_STACKS, finish_switch_stack, err);
    }
    struct perf_task_event event = {.spec = for_tasks(opening, spec), .ring_class = PERF_RING_STACKS};
    struct perf_task_plan plan = {opening->options->pids, opening->options->pid_count, &event, 1};
    struct error refusal = {0};
    size_t refused = 0;
    if (perf_task_events_open(&opening->scope->set, &plan, &opening->privileges, &opening->scope->opened_tids,
                              &refused, &refusal) < 0) {
        note_why_not(opening, "no stacks of blocked threads: %s", refusal.message);
        return 0;
    }
    choice->switch_stacks = true;
    return 0;
}

/* Returns -EACCES or -EPERM when CPU-wide events are not permitted. */
static int open_cpu_wide(struct opening *opening, struct error *err)
{
    const struct perf_capture_options *options = opening->options;
    struct perf_capture_choice *choice = &opening->scope->choice;
    struct perf_event_set *set = &opening->scope->set;
    struct perf_event_spec dummy = {.source = PERF_SOURCE_DUMMY};

    int r = probe(&dummy, -1, set->cpus[0]);
    if (r < 0)
        return perf_refusal_explain(err, r, &opening->privileges, "open CPU-wide perf events");
    choice->cpu_wide = true;
    choice->kernel_frames = true;
    choose_filter(opening);
    if (options->off_cpu)
        choose_scheduler_events(opening);
    if (options->on_cpu)
        choose_cycles(opening, -1, false);

    bool stacks = options->on_cpu || options->off_cpu;
    struct perf_ring_plan plan = {.tid = -1, .spec = {dummy, dummy}};
    plan.spec[PERF_RING_EXACT].task_records = true;
    plan.spec[PERF_RING_EXACT].switch_records = options->off_cpu && !choice->scheduler_events;
    plan.bytes[PERF_RING_EXACT] =
        share_ring_bytes(exact_total_bytes, set->cpu_count, exact_least_bytes, exact_most_bytes);
    plan.bytes[PERF_RING_STACKS] =
        stacks ? share_ring_bytes(stacks_total_bytes, set->cpu_count, stacks_least_bytes, stacks_most_bytes)
               : 0;
    r = map_rings(opening, &plan, err);
    if (r == 0 && choice->scheduler_events)
        r = add_scheduler_events(opening, err);
    if (r == 0 && options->on_cpu) {
        struct perf_event_spec spec = on_cpu_spec(opening, false);
        r = add_cpu_wide(opening, &spec, PERF_RING_STACKS, finish_on_cpu, err);
    }
    if (r == 0 && options->off_cpu)
        r = add_switch_stacks(opening, err);
    return r;
}

/* One event a thread and CPU does both on-CPU samples and records: each further one costs the target at every
 * switch. */
static int open_per_task(struct opening *opening, struct error *err)
{
    const struct perf_capture_options *options = opening->options;
    struct perf_capture_choice *choice = &opening->scope->choice;
    struct perf_event_set *set = &opening->scope->set;
    pid_t first = options->pids[0];

    struct perf_event_spec dummy = {.source = PERF_SOURCE_DUMMY, .exclude_kernel = true};
    struct perf_event_spec main_spec = {.source = PERF_SOURCE_DUMMY};
    int permitted = probe(&main_spec, first, set->cpus[0]);
    bool exclude_kernel = permitted == -EACCES || permitted == -EPERM;
    choice->kernel_frames = !exclude_kernel;
    choice->switch_stacks = options->off_cpu && !exclude_kernel;
    if (options->off_cpu &&
        exclude_kernel) /* the kernel drops a switch event's sample then: it is taken in the kernel */
        note_why_not(opening,
                     "no stacks of blocked threads, no kernel frames: kernel.perf_event_paranoid is %d",
                     opening->privileges.paranoid);
    else if (exclude_kernel)
        note_why_not(opening, "no kernel frames: kernel.perf_event_paranoid is %d",
                     opening->privileges.paranoid);
    if (options->on_cpu) {
        choose_cycles(opening, first, exclude_kernel);
        main_spec = on_cpu_spec(opening, exclude_kernel);
    }
    main_spec.exclude_kernel = exclude_kernel;
    main_spec.task_records = true;
    main_spec.switch_records = options->off_cpu;

    /* On our own thread: a ring that is mapped on an event of the target would hang up when that thread ends.
     */
    struct perf_ring_plan rings = {.tid = 0, .spec = {dummy, dummy}};
    size_t bytes =
        share_ring_bytes(stacks_total_bytes, set->cpu_count, stacks_least_bytes, stacks_most_bytes);
    rings.bytes[PERF_RING_EXACT] = bytes;
    rings.bytes[PERF_RING_STACKS] = choice->switch_stacks ? bytes : 0;
    int r = map_rings(opening, &rings, err);
    if (r < 0)
        return r;

    struct perf_task_event events[] = {
        {.spec = for_tasks(opening, main_spec), .ring_class = PERF_RING_EXACT},
        {.spec = for_tasks(opening, switch_stack_spec(opening)), .ring_class = PERF_RING_STACKS},
    };
    struct perf_task_plan plan = {options->pids, options->pid_count, events, choice->switch_stacks ? 2 : 1};
    size_t refused;
    r = perf_task_events_open(set, &plan, &opening->privileges, &opening->scope->opened_tids, &refused, err);
    if (r == 0 && refused > 0)
        note_why_not(opening, "%zu threads may not be sampled", refused);
    return r;
}

static bool any_process_lives(const struct perf_capture_options *options)
{
    for (size_t i = 0; i < options->pid_count; i++) {
        if (kill(options->pids[i], 0) == 0 || errno != ESRCH)
            return true;
    }
    return false;
}

int perf_scope_open(const struct perf_capture_options *options, struct perf_scope *ret_scope,
                    struct error *err)
{
    struct perf_scope scope = {0};
    struct opening opening = {.options = options, .scope = &scope};
    struct error cpu_wide_error = {0};
    if (options->pid_count == 0 || options->frequency_hz <= 0.0)
        return error_say(err, -EINVAL, "perf events: no process, or no frequency");
    if (!any_process_lives(options))
        return error_say(err, -ESRCH, "process %d: no such process", options->pids[0]);
    perf_privileges_read(&opening.privileges);

    perf_event_set_init(&scope.set);
    int r = open_cpu_wide(&opening, &cpu_wide_error);
    if (r == -EACCES || r == -EPERM) {
        perf_scope_finish(&scope);
        perf_event_set_init(&scope.set);
        note_why_not(&opening, "no CPU-wide events: kernel.perf_event_paranoid is %d",
                     opening.privileges.paranoid);
        r = open_per_task(&opening, err);
    } else if (r < 0 && err != NULL) {
        *err = cpu_wide_error;
    }
    if (r < 0) {
        perf_scope_finish(&scope);
        return r;
    }
    *ret_scope = scope;
    return 0;
}

void perf_scope_finish(struct perf_scope *scope)
{
    perf_event_set_finish(&scope->set);
    perf_filter_destroy(scope->filter);
    id_map_finish(&scope->opened_tids);
    *scope = (struct perf_scope){0};
}
