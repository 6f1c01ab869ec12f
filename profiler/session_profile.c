#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/session_internal.h"
#include "profiler/wait/driver.h"
#include "profiler/wait/service_name.h"
#include "profiler/wait/wait_name.h"
#include "profiler/wait/wait_refine.h"

enum { MAX_STACK_FRAMES = UNWIND_MAX_FRAMES + 256, NO_FRAME = UINT32_MAX };

/* The state of making one profile: names are asked once a location, stacks are made once a (stack, state). */
struct maker {
    struct session *session;
    struct profile *profile;
    struct symbolizer *symbolizer;
    uint32_t *frame_of_location;                      /* NO_FRAME = not asked yet */
    struct id_map stack_of_span;                      /* (stack, state) -> stack of the profile */
    uint32_t locations[MAX_STACK_FRAMES];             /* scratch: one stack, leaf first */
    struct wait_function functions[MAX_STACK_FRAMES]; /* scratch: names of a part of it */
    struct session_idle *idle;
};

static uint32_t synthetic_frame(struct maker *maker, enum frame_kind kind, enum wait_kind wait,
                                const char *text)
{
    const struct frame frame = {
        .name = string_table_intern(maker->profile->strings, text),
        .kind = kind,
        .wait = wait,
    };

    return profile_intern_frame(maker->profile, &frame);
}

static bool is_wait_text(const char *text)
{
    return strncmp(text, "[wait: ", 7) == 0;
}

static uint32_t make_frame(struct maker *maker, const struct location *location)
{
    struct string_table *strings = maker->profile->strings;
    struct symbol symbol;
    struct frame frame;

    if (location->kind == LOCATION_SYNTHETIC) {
        const char *text = string_table_get(strings, location->owner);
        bool is_wait = is_wait_text(text);

        return synthetic_frame(maker, is_wait ? FRAME_WAIT : FRAME_SYNTHETIC,
                               is_wait ? wait_kind_of_text(text) : WAIT_NONE, text);
    }
    symbolizer_resolve(maker->symbolizer, location, &symbol);
    frame = (struct frame){
        .name = string_table_intern(strings, symbol.name),
        .module = string_table_intern(strings, symbol.module),
        .build_id = string_table_intern(strings, symbol.build_id),
        .kind = location->kind == LOCATION_KERNEL ? FRAME_KERNEL : FRAME_USER,
    };
    return profile_intern_frame(maker->profile, &frame);
}

static uint32_t frame_of(struct maker *maker, uint32_t location)
{
    if (maker->frame_of_location[location] == NO_FRAME)
        maker->frame_of_location[location] =
            make_frame(maker, location_table_get(maker->session->locations, location));
    return maker->frame_of_location[location];
}

/* Leaf first into maker->locations; returns how many. */
static size_t list_locations(struct maker *maker, uint32_t stack)
{
    size_t count = 0;

    while (stack != STACK_EMPTY && count < MAX_STACK_FRAMES) {
        struct stack_node node = stack_table_get(maker->session->stacks, stack);

        maker->locations[count++] = node.frame;
        stack = node.parent;
    }
    return count;
}

/* From first on. */
static size_t count_kernel_locations(const struct maker *maker, size_t first, size_t count)
{
    size_t kernel = 0;

    while (first + kernel < count &&
           location_table_get(maker->session->locations, maker->locations[first + kernel])->kind ==
               LOCATION_KERNEL)
        kernel++;
    return kernel;
}

static bool leaf_is_wait(const struct maker *maker, size_t count)
{
    const struct location *leaf;

    if (count == 0)
        return false;
    leaf = location_table_get(maker->session->locations, maker->locations[0]);
    return leaf->kind == LOCATION_SYNTHETIC &&
           is_wait_text(string_table_get(maker->profile->strings, leaf->owner));
}

/* Names of the locations in [first, first + count), into maker->functions; returns how many. */
static size_t list_functions(struct maker *maker, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t id = frame_of(maker, maker->locations[first + i]); /* may move profile->frames */
        const struct frame *frame = &maker->profile->frames[id];

        maker->functions[i] =
            (struct wait_function){.name = string_table_get(maker->profile->strings, frame->name),
                                   .module = string_table_get(maker->profile->strings, frame->module)};
    }
    return count;
}

static void name_by_kernel(struct maker *maker, size_t first, size_t count, struct wait_name *ret_wait)
{
    enum { NAMES_LIMIT = 64 };
    const char *names[NAMES_LIMIT];

    count = list_functions(maker, first, count < NAMES_LIMIT ? count : NAMES_LIMIT);
    for (size_t i = 0; i < count; i++)
        names[i] = maker->functions[i].name;
    wait_from_kernel_frames(names, count, ret_wait);
}

/* What the stack in maker->locations waits for: told by its own leaf where it has one, else by its kernel frames. They
 * know better only of page faults: one may happen within a system call, and not all that is none is one. */
static void name_wait(struct maker *maker, size_t kernel_count, bool has_wait, struct wait_name *ret_wait)
{
    static const char page_fault[] = "[wait: page fault]";
    const struct location *leaf;
    struct wait_name by_kernel;

    name_by_kernel(maker, has_wait ? 1 : 0, kernel_count, &by_kernel);
    *ret_wait = by_kernel;
    if (!has_wait || strcmp(by_kernel.text, page_fault) == 0)
        return;
    leaf = location_table_get(maker->session->locations, maker->locations[0]);
    session_wait_text(maker->session, string_table_get(maker->profile->strings, leaf->owner), ret_wait->text,
                      sizeof ret_wait->text);
    if (kernel_count > 0 && strcmp(ret_wait->text, page_fault) == 0 &&
        strcmp(by_kernel.text, "[wait: syscall]") != 0)
        *ret_wait = by_kernel;
}

/* The client library nearest to the leaf, or NULL. */
static const struct driver *find_driver(const struct maker *maker, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct driver *driver = driver_of_frame(maker->functions[i].module, maker->functions[i].name);

        if (driver != NULL)
            return driver;
    }
    return NULL;
}

static bool has_named_service(const struct driver *driver, const char *wait_text)
{
    char service[WAIT_TEXT_BYTES];
    const char *database;
    const char *drivers;

    service_of_wait(wait_text, service, sizeof service);
    database = service_database(service);
    drivers = service_database(driver->service);
    return database != NULL && drivers != NULL && strcmp(database, drivers) == 0;
}

static uint32_t wait_frame(struct maker *maker, size_t count, size_t kernel_count, bool has_wait)
{
    size_t first = (has_wait ? 1 : 0) + kernel_count;
    const struct driver *driver;
    struct wait_name wait;
    char text[WAIT_TEXT_BYTES];
    enum wait_kind kind;

    name_wait(maker, kernel_count, has_wait, &wait);
    list_functions(maker, first, count - first);
    wait_refine(wait.text, maker->functions, count - first, text, sizeof text);
    kind = wait_kind_of_text(text);
    driver = find_driver(maker, count - first);
    /* A lock within a native client is its own; a managed one waits on a lock for what the runtime's thread
     * reads. */
    if (driver == NULL || (!driver->managed && (kind == WAIT_LOCK || kind == WAIT_SLEEP)))
        return synthetic_frame(maker, FRAME_WAIT, kind, text);
    if (has_named_service(driver, text))
        return synthetic_frame(maker, FRAME_WAIT, WAIT_DATABASE, text);
    driver_tag_wait(text, driver, wait.text, sizeof wait.text);
    return synthetic_frame(maker, FRAME_WAIT, WAIT_DATABASE, wait.text);
}

static uint32_t stack_without_code(struct maker *maker, enum thread_state state)
{
    uint32_t frame = 0;

    switch (state) {
    case STATE_ON_CPU:
        frame = synthetic_frame(maker, FRAME_SYNTHETIC, WAIT_NONE, "[unsampled]");
        break;
    case STATE_RUNNABLE:
        frame = synthetic_frame(maker, FRAME_WAIT, WAIT_RUNNABLE, "[runnable]");
        break;
    case STATE_STOPPED:
        frame = synthetic_frame(maker, FRAME_WAIT, WAIT_STOPPED, "[stopped]");
        break;
    case STATE_BLOCKED:
    case STATE_IDLE:
    case STATE_UNKNOWN:
    case STATE_COUNT:
        frame = synthetic_frame(maker, FRAME_SYNTHETIC, WAIT_NONE, "[lost]");
        break;
    }
    return stack_table_push(maker->profile->stacks, STACK_EMPTY, frame);
}

/* Takes the mark away. */
static bool take_throttled(const struct maker *maker, uint32_t *stack)
{
    struct stack_node leaf = stack_table_get(maker->session->stacks, *stack);
    const struct location *location = location_table_get(maker->session->locations, leaf.frame);

    if (location->kind != LOCATION_SYNTHETIC ||
        strcmp(string_table_get(maker->profile->strings, location->owner), SESSION_THROTTLED) != 0)
        return false;
    *stack = leaf.parent;
    return true;
}

static bool keep_kernel(const struct maker *maker, enum thread_state state)
{
    enum session_kernel_frames kernel = maker->session->options->kernel;

    return kernel == SESSION_KERNEL_ALL || (kernel == SESSION_KERNEL_ON_CPU && state == STATE_ON_CPU);
}

static uint32_t make_stack(struct maker *maker, uint32_t raw_stack, enum thread_state state)
{
    struct stack_table *stacks = maker->profile->stacks;
    bool throttled = take_throttled(maker, &raw_stack);
    size_t count = list_locations(maker, raw_stack);
    bool has_wait = leaf_is_wait(maker, count);
    size_t first = has_wait ? 1 : 0; /* its place is taken by the frame that is made below */
    size_t kernel_count = count_kernel_locations(maker, first, count);
    uint32_t stack = STACK_EMPTY;

    if (!keep_kernel(maker, state))
        first += kernel_count;
    for (size_t i = count; i-- > first;)
        stack = stack_table_push(stacks, stack, frame_of(maker, maker->locations[i]));
    switch (state) {
    case STATE_BLOCKED:
    case STATE_IDLE:
        stack = stack_table_push(stacks, stack, wait_frame(maker, count, kernel_count, has_wait));
        break;
    case STATE_RUNNABLE:
        stack = stack_table_push(
            stacks, stack,
            synthetic_frame(maker, FRAME_WAIT, WAIT_RUNNABLE, throttled ? SESSION_THROTTLED : "[runnable]"));
        break;
    case STATE_STOPPED:
        stack =
            stack_table_push(stacks, stack, synthetic_frame(maker, FRAME_WAIT, WAIT_STOPPED, "[stopped]"));
        break;
    case STATE_ON_CPU:
    case STATE_UNKNOWN:
    case STATE_COUNT:
        break;
    }
    return stack;
}

static bool is_without_stack(const struct span *span)
{
    return span->stack == SPAN_NO_STACK || span->stack == CALIBRATION_LOST_STACK ||
           span->stack == STACK_EMPTY;
}

static uint32_t stack_of_span(struct maker *maker, const struct span *span)
{
    uint64_t key = (uint64_t)span->stack << 8 | (uint64_t)span->state;
    uint32_t stack;

    if (id_map_get(&maker->stack_of_span, key, &stack))
        return stack;
    if (is_without_stack(span))
        stack = stack_without_code(maker, span->state);
    else
        stack = make_stack(maker, span->stack, span->state);
    id_map_put(&maker->stack_of_span, key, stack);
    return stack;
}

static uint32_t final_stack(void *context, uint32_t raw_stack, enum thread_state state)
{
    struct maker *maker = context;

    return stack_of_span(maker, &(struct span){.stack = raw_stack, .state = state});
}

static bool is_wanted(const struct session *session, enum thread_state state)
{
    switch (session->options->mode) {
    case SESSION_WALL:
        return true;
    case SESSION_ON_CPU:
        return state == STATE_ON_CPU;
    case SESSION_OFF_CPU:
        return state != STATE_ON_CPU;
    }
    return true;
}

/* To what is told; false where nothing is left. */
static bool clip_span(const struct session *session, struct span *span)
{
    uint64_t end_ns = span->start_ns + span->duration_ns;

    if (span->start_ns >= session->report_start_ns)
        return true;
    if (end_ns <= session->report_start_ns)
        return false;
    span->start_ns = session->report_start_ns;
    span->duration_ns = end_ns - session->report_start_ns;
    return true;
}

static void add_samples(struct maker *maker, uint32_t thread, struct profile_thread *profile_thread)
{
    size_t count;
    const struct span *spans = maker->session->timeline != NULL
                                   ? timeline_spans(maker->session->timeline, thread, &count)
                                   : calibration_spans(maker->session->calibration, thread, &count);
    struct ledger *ledger = &profile_thread->ledger;

    session_idle_begin_thread(maker->idle, spans, count);
    for (size_t i = 0; i < count; i++) {
        struct span clipped = spans[i];
        const struct span *span = &clipped;
        enum thread_state state = span->state;

        if (!clip_span(maker->session, &clipped))
            continue;

        ledger->lifetime_ns += span->duration_ns;
        if (!is_wanted(maker->session, span->state))
            continue; /* nor is it loss */
        if (span->state == STATE_UNKNOWN ||
            (is_without_stack(span) && (span->state == STATE_BLOCKED || span->state == STATE_IDLE)))
            ledger->lost_ns += span->duration_ns;
        if (span->state == STATE_ON_CPU && is_without_stack(span))
            ledger->unsampled_ns += span->duration_ns;
        if (state == STATE_BLOCKED && !is_without_stack(span) &&
            session_idle_is(maker->idle, span->stack, stack_of_span(maker, span)))
            state = STATE_IDLE;
        profile_add_sample(maker->profile, thread,
                           &(struct sample){.start_ns = span->start_ns - maker->session->report_start_ns,
                                            .weight_ns = span->duration_ns,
                                            .stack = stack_of_span(maker, span),
                                            .state = state});
    }
}

static void make_thread(struct maker *maker, uint32_t id)
{
    const struct session *session = maker->session;
    const struct thread *thread = process_table_thread(session->processes, id);
    const struct thread_record *known = &session->threads.items[id];
    uint64_t end_ns = thread->alive ? session->window_end_ns : thread->end_ns;
    struct profile_thread *profile_thread;

    /* Thread ids of the process table and indices of the profile are the same numbers. */
    profile_add_thread(maker->profile, thread->process, thread->tid, thread->comm, thread->is_main);
    profile_thread = &maker->profile->threads[id];
    profile_thread->begin_ns =
        thread->begin_ns > session->report_start_ns ? thread->begin_ns - session->report_start_ns : 0;
    profile_thread->end_ns = end_ns > session->report_start_ns ? end_ns - session->report_start_ns : 0;
    if (profile_thread->end_ns < profile_thread->begin_ns)
        profile_thread->end_ns = profile_thread->begin_ns;
    if (known->begin_known && known->end_known) {
        profile_thread->ledger.has_kernel_counters = true;
        profile_thread->ledger.kernel_on_cpu_ns = known->end.on_cpu_ns - known->begin.on_cpu_ns;
        profile_thread->ledger.kernel_runnable_ns = known->end.runnable_ns - known->begin.runnable_ns;
    }
    add_samples(maker, id, profile_thread);
}

void session_make_profile(struct session *session)
{
    const struct symbolizer_context context = {
        .binaries = session->binaries,
        .processes = session->processes,
        .open_in_target = session_open_in_target,
        .inner_pid = session_inner_pid,
        .open_context = session,
    };
    struct maker *maker = memory_zeroed(1, sizeof *maker);
    uint32_t location_count = location_table_count(session->locations);

    maker->session = session;
    maker->profile = session->profile;
    maker->symbolizer = symbolizer_create(&context);
    maker->idle = session_idle_create(session);
    maker->frame_of_location = memory_resize(NULL, location_count, sizeof *maker->frame_of_location);
    for (uint32_t i = 0; i < location_count; i++)
        maker->frame_of_location[i] = NO_FRAME;
    for (uint32_t i = 0; i < process_table_process_count(session->processes); i++) {
        const struct process *process = process_table_process(session->processes, i);

        profile_add_process(session->profile, process->pid, process->executable);
    }
    for (uint32_t i = 0; i < process_table_thread_count(session->processes); i++)
        make_thread(maker, i);
    session_counts_take(session, final_stack, maker);
    session_locks_take(session, final_stack, maker);
    session_idle_destroy(maker->idle);
    symbolizer_destroy(maker->symbolizer);
    free(maker->frame_of_location);
    id_map_finish(&maker->stack_of_span);
    free(maker);
}
