#include "exporters/speedscope_read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/speedscope.h"
#include "exporters/speedscope_own.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/memory.h"

/* A length of time beyond this is nobody's: 292 years. */
#define MAX_TIME_NS 0x1p63

enum { NO_FRAME = UINT32_MAX };

struct maker {
    const struct speedscope_file *file;
    struct profile *profile;
    uint32_t *frames; /* by the file's index; NO_FRAME: a mark, which stands for nothing */
    uint32_t *stacks; /* by the file's stack */
    enum thread_state states[STATE_COUNT]; /* by the file's number */
    size_t state_count;
    struct error *err;
};

static const char *text_of(const struct maker *maker, uint32_t id)
{
    return string_table_get(maker->file->strings, id);
}

static uint32_t intern(struct maker *maker, uint32_t id)
{
    return string_table_intern(maker->profile->strings, text_of(maker, id));
}

static uint32_t clamp(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static uint32_t make_frame(struct maker *maker, const struct file_frame *from)
{
    const char *kind = text_of(maker, from->kind);
    struct frame frame = {
        .name = intern(maker, from->name),
        .module = intern(maker, from->file),
        .build_id = intern(maker, from->build_id),
        .kind = FRAME_USER,
    };

    if (strcmp(kind, SPEEDSCOPE_MARK_KIND) == 0) {
        if (strcmp(text_of(maker, from->name), SPEEDSCOPE_MARK_LEFT_OUT) != 0)
            return NO_FRAME;
        frame.kind = FRAME_SYNTHETIC;
    }
    frame_kind_parse(kind, &frame.kind);
    wait_kind_parse(text_of(maker, from->wait), &frame.wait);
    return profile_intern_frame(maker->profile, &frame);
}

/* The mark of frames that were left out becomes a frame only when a stack has it. */
static void make_frames(struct maker *maker)
{
    const struct speedscope_file *file = maker->file;
    uint32_t stack_count = stack_table_count(file->stacks);
    AUTO_FREE bool *is_used = memory_zeroed(file->frames.count, sizeof *is_used);

    for (uint32_t s = 1; s < stack_count; s++) {
        uint32_t frame = stack_table_get(file->stacks, s).frame;

        if (frame < file->frames.count)
            is_used[frame] = true;
    }
    maker->frames = memory_zeroed(file->frames.count, sizeof *maker->frames);
    for (size_t i = 0; i < file->frames.count; i++) {
        const struct file_frame *frame = &file->frames.items[i];
        bool is_mark = strcmp(text_of(maker, frame->kind), SPEEDSCOPE_MARK_KIND) == 0;

        maker->frames[i] = is_mark && !is_used[i] ? NO_FRAME : make_frame(maker, frame);
    }
}

static int make_stacks(struct maker *maker)
{
    const struct speedscope_file *file = maker->file;
    uint32_t count = stack_table_count(file->stacks);

    maker->stacks = memory_zeroed(count, sizeof *maker->stacks);
    for (uint32_t s = 1; s < count; s++) { /* parent < child */
        struct stack_node node = stack_table_get(file->stacks, s);
        uint32_t parent = maker->stacks[node.parent];

        if (node.frame >= file->frames.count)
            return error_say(maker->err, -EBADMSG, "a stack has frame %" PRIu32 " of %zu", node.frame,
                             file->frames.count);
        maker->stacks[s] = maker->frames[node.frame] == NO_FRAME
                               ? parent
                               : stack_table_push(maker->profile->stacks, parent, maker->frames[node.frame]);
    }
    return 0;
}

static void make_meta(struct maker *maker)
{
    const struct file_own *own = &maker->file->own;
    struct profile_meta *meta = &maker->profile->meta;

    profile_set_text(&meta->title, text_of(maker, own->title));
    profile_set_text(&meta->command_line, text_of(maker, own->command_line));
    profile_set_text(&meta->host, text_of(maker, own->host));
    profile_set_text(&meta->kernel, text_of(maker, own->kernel));
    profile_set_text(&meta->engines, text_of(maker, own->engines));
    meta->frequency_hz = own->frequency_hz;
    if (own->start_unix_s > INT64_MIN / (int64_t)NS_PER_S &&
        own->start_unix_s < INT64_MAX / (int64_t)NS_PER_S && own->start_unix_ns >= 0 &&
        own->start_unix_ns < (int64_t)NS_PER_S)
        meta->start_unix_ns = own->start_unix_s * (int64_t)NS_PER_S + own->start_unix_ns;
    meta->duration_ns = own->duration_ns;
    meta->cpu_count = clamp(own->cpu_count);
    maker->profile->loss = own->loss;
    maker->profile->looks = own->looks;
    maker->profile->quota = own->quota;
}

/* Names of states that this version does not know are unknown. */
static void make_states(struct maker *maker)
{
    for (size_t i = 0; i < maker->file->states.count && i < STATE_COUNT; i++) {
        maker->states[i] = STATE_UNKNOWN;
        thread_state_parse(text_of(maker, maker->file->states.items[i]), &maker->states[i]);
        maker->state_count++;
    }
}

static int make_threads(struct maker *maker)
{
    const struct speedscope_file *file = maker->file;

    for (size_t i = 0; i < file->processes.count; i++)
        profile_add_process(maker->profile, (pid_t)file->processes.items[i].pid,
                            text_of(maker, file->processes.items[i].name));
    for (size_t i = 0; i < file->threads.count; i++) {
        const struct file_thread *from = &file->threads.items[i];
        struct profile_thread *thread;

        if (from->process >= file->processes.count)
            return error_say(maker->err, -EBADMSG, "thread %zu is of process %" PRIu64 " of %zu", i,
                             from->process, file->processes.count);
        profile_add_thread(maker->profile, (uint32_t)from->process, (pid_t)from->tid,
                           text_of(maker, from->name), from->is_main);
        thread = &maker->profile->threads[i];
        thread->begin_ns = from->begin_ns;
        thread->end_ns = from->end_ns;
    }
    return 0;
}

/* When the samples are there, since each of them has added to it. */
static void make_ledgers(struct maker *maker)
{
    for (size_t i = 0; i < maker->file->threads.count; i++) {
        const struct file_thread *from = &maker->file->threads.items[i];
        struct ledger *ledger = &maker->profile->threads[i].ledger;

        *ledger = (struct ledger){
            .lifetime_ns = from->lifetime_ns,
            .unsampled_ns = from->unsampled_ns,
            .lost_ns = from->lost_ns,
        };
        for (size_t state = 0; state < maker->state_count; state++)
            ledger->time_ns[maker->states[state]] += from->time_ns[state];
        if (from->kernel_on_cpu_ns >= 0 && from->kernel_runnable_ns >= 0) {
            ledger->has_kernel_counters = true;
            ledger->kernel_on_cpu_ns = (uint64_t)from->kernel_on_cpu_ns;
            ledger->kernel_runnable_ns = (uint64_t)from->kernel_runnable_ns;
        }
    }
}

static void make_waits(struct maker *maker)
{
    for (size_t i = 0; i < maker->file->waits.count; i++) {
        const struct file_wait *from = &maker->file->waits.items[i];
        struct histogram histogram = {.count = from->count, .sum_ns = from->sum_ns};

        memcpy(histogram.bins, from->bins, sizeof histogram.bins);
        profile_add_counted_wait(maker->profile, maker->stacks[from->stack], &histogram);
    }
}

static void make_sockets(struct maker *maker)
{
    for (size_t i = 0; i < maker->file->listeners.count; i++) {
        const struct file_listener *from = &maker->file->listeners.items[i];

        profile_add_listener(maker->profile, &(struct profile_listener){
                                                 .address = intern(maker, from->address),
                                                 .looks = clamp(from->looks),
                                                 .queued_looks = clamp(from->queued_looks),
                                                 .backlog = clamp(from->backlog),
                                                 .queue_max = clamp(from->queue_max),
                                                 .queue_sum = from->queue_sum,
                                                 .connections_max = clamp(from->connections_max),
                                                 .connections_sum = from->connections_sum,
                                                 .unread_max = clamp(from->unread_max),
                                                 .unread_sum = from->unread_sum,
                                             });
    }
    for (size_t i = 0; i < maker->file->peers.count; i++) {
        const struct file_peer *from = &maker->file->peers.items[i];

        profile_add_peer(maker->profile, &(struct profile_peer){
                                             .address = intern(maker, from->address),
                                             .looks = clamp(from->looks),
                                             .in_flight_max = clamp(from->in_flight_max),
                                             .in_flight_sum = from->in_flight_sum,
                                             .connections_max = clamp(from->connections_max),
                                             .connections_sum = from->connections_sum,
                                         });
    }
}

static void make_locks(struct maker *maker)
{
    for (size_t i = 0; i < maker->file->locks.count; i++) {
        const struct file_lock *from = &maker->file->locks.items[i];
        bool known = from->owner >= 0 && (uint64_t)from->owner < maker->profile->thread_count;
        struct lock_wait wait = {
            .stack = maker->stacks[from->stack],
            .owner = known ? (uint32_t)from->owner : LOCK_OWNER_UNKNOWN,
            .owner_stack = known ? maker->stacks[from->owner_stack] : STACK_EMPTY,
            .owner_state = STATE_UNKNOWN,
            .waited_ns = from->waited_ns,
        };

        if (known)
            thread_state_parse(text_of(maker, from->owner_state), &wait.owner_state);
        profile_add_lock_wait(maker->profile, &wait);
    }
}

/* In nanoseconds; a thing that is no time counts as a microsecond, so that no count is lost in folded text. */
static double unit_ns(const struct maker *maker, uint32_t unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"nanoseconds", 1}, {"microseconds", 1e3}, {"milliseconds", 1e6}, {"seconds", 1e9}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].name, text_of(maker, unit)) == 0)
            return units[i].ns;
    return 1e3;
}

static int check_profile(const struct maker *maker, size_t index)
{
    const struct file_profile *from = &maker->file->profiles.items[index];
    double sum = 0;

    if (from->stacks.count != from->weights.count)
        return error_say(maker->err, -EBADMSG, "profile %zu has %zu samples and %zu weights", index,
                         from->stacks.count, from->weights.count);
    if (from->thread >= 0 && from->states.count != from->stacks.count)
        return error_say(maker->err, -EBADMSG, "profile %zu has %zu samples and %zu states", index,
                         from->stacks.count, from->states.count);
    for (size_t i = 0; i < from->weights.count; i++)
        sum += from->weights.items[i];
    if (!(sum * unit_ns(maker, from->unit) < MAX_TIME_NS))
        return error_say(maker->err, -EBADMSG, "profile %zu is longer than a life", index);
    return 0;
}

/* start_ns: of the first sample. Positions are rounded, not weights, so that they add up. */
static int add_samples(struct maker *maker, size_t index, uint32_t thread, double start_ns)
{
    const struct file_profile *from = &maker->file->profiles.items[index];
    double scale_ns = unit_ns(maker, from->unit);
    double position_ns = start_ns;

    for (size_t i = 0; i < from->stacks.count; i++) {
        double next_ns = position_ns + from->weights.items[i] * scale_ns;
        uint64_t begin = (uint64_t)llround(position_ns);
        struct sample sample = {.start_ns = begin,
                                .weight_ns = (uint64_t)llround(next_ns) - begin,
                                .stack = maker->stacks[from->stacks.items[i]],
                                .state = STATE_ON_CPU};
        int state = from->thread >= 0 ? from->states.items[i] : 0;

        position_ns = next_ns;
        if (from->thread >= 0 && state >= 0 && (size_t)state >= maker->state_count)
            return error_say(maker->err, -EBADMSG, "profile %zu has state %d of %zu", index, state,
                             maker->state_count);
        if (from->thread >= 0 && state >= 0)
            sample.state = maker->states[state];
        /* A gap: the thread was not there. */
        if (state < 0 || (from->thread < 0 && from->stacks.items[i] == STACK_EMPTY))
            continue;
        profile_add_sample(maker->profile, thread, &sample);
    }
    return 0;
}

static int make_own(struct maker *maker)
{
    const struct speedscope_file *file = maker->file;
    AUTO_FREE bool *seen = memory_zeroed(file->threads.count, sizeof *seen);
    int r = make_threads(maker);

    make_meta(maker);
    make_states(maker);
    for (size_t i = 0; r == 0 && i < file->profiles.count; i++) {
        int64_t thread = file->profiles.items[i].thread;

        if (thread == SPEEDSCOPE_ALL_THREADS)
            continue; /* derived from the others */
        if (thread < 0 || (uint64_t)thread >= file->threads.count || seen[thread])
            return error_say(maker->err, -EBADMSG, "profile %zu is of thread %" PRId64 " of %zu", i, thread,
                             file->threads.count);
        seen[thread] = true;
        r = check_profile(maker, i);
        if (r == 0)
            r = add_samples(maker, i, (uint32_t)thread, 0);
    }
    if (r < 0)
        return r;
    make_ledgers(maker);
    make_waits(maker);
    make_sockets(maker);
    make_locks(maker);
    return 0;
}

/* Each profile is a thread; the earliest start is the window's. */
static int make_foreign(struct maker *maker, const char *name)
{
    const struct speedscope_file *file = maker->file;
    const char *title = file->name != 0 ? text_of(maker, file->name) : name;
    uint32_t process = profile_add_process(maker->profile, 0, title);
    double first_ns = INFINITY;
    double last_ns = 0;

    for (size_t i = 0; i < file->profiles.count; i++) {
        double start_ns = file->profiles.items[i].start * unit_ns(maker, file->profiles.items[i].unit);

        first_ns = start_ns < first_ns ? start_ns : first_ns;
    }
    for (size_t i = 0; i < file->profiles.count; i++) {
        const struct file_profile *from = &file->profiles.items[i];
        double start_ns = from->start * unit_ns(maker, from->unit) - first_ns;
        struct profile_thread *thread;
        int r = check_profile(maker, i);

        if (r == 0 && !(start_ns >= 0 && start_ns < MAX_TIME_NS / 2))
            r = error_say(maker->err, -EBADMSG, "profile %zu starts at %g", i, from->start);
        if (r < 0)
            return r;
        profile_add_thread(maker->profile, process, (pid_t)(i + 1), text_of(maker, from->name), false);
        r = add_samples(maker, i, (uint32_t)i, start_ns);
        if (r < 0)
            return r;
        thread = &maker->profile->threads[i];
        thread->begin_ns = (uint64_t)llround(start_ns);
        thread->end_ns = thread->sample_count > 0 ? thread->samples[thread->sample_count - 1].start_ns +
                                                        thread->samples[thread->sample_count - 1].weight_ns
                                                  : thread->begin_ns;
        last_ns = (double)thread->end_ns > last_ns ? (double)thread->end_ns : last_ns;
    }
    profile_set_text(&maker->profile->meta.title, title);
    maker->profile->meta.duration_ns = (uint64_t)last_ns;
    return 0;
}

int speedscope_read(const struct speedscope_file *file, const char *name, struct profile **ret_profile,
                    struct error *err)
{
    struct maker maker = {.file = file, .profile = profile_create(), .err = err};
    int r;

    make_frames(&maker);
    r = make_stacks(&maker);
    if (r == 0 && !file->own.is_there && file->profiles.count == 0)
        r = error_say(err, -EBADMSG, "there is no profile in it");
    if (r == 0 && file->own.is_there && file->own.version > SPEEDSCOPE_VERSION)
        r = error_say(err, -EBADMSG, "it is of version %" PRIu64 ", and this program knows %d",
                      file->own.version, SPEEDSCOPE_VERSION);
    if (r == 0)
        r = file->own.is_there ? make_own(&maker) : make_foreign(&maker, name);
    free(maker.frames);
    free(maker.stacks);
    if (r < 0) {
        profile_destroy(maker.profile);
        return r;
    }
    *ret_profile = maker.profile;
    return 0;
}
