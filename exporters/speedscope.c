#include "exporters/speedscope.h"

#include <stdlib.h>

#include "exporters/all_threads.h"
#include "exporters/exporter.h"
#include "exporters/json_writer.h"
#include "exporters/output.h"
#include "exporters/text_safe.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

/* The exporter's own frames stand behind those of the profile. All three are always there: whether one is
 * used shows only after the frames have been written. */
enum mark { MARK_IDLE, MARK_LEFT_OUT, MARK_NO_STACK, MARK_COUNT };

static const char *const mark_names[MARK_COUNT] = {
    [MARK_IDLE] = SPEEDSCOPE_MARK_IDLE,
    [MARK_LEFT_OUT] = SPEEDSCOPE_MARK_LEFT_OUT,
    [MARK_NO_STACK] = SPEEDSCOPE_MARK_NO_STACK,
};

/* One sample of the file. */
struct row {
    uint32_t stack;
    int state; /* SPEEDSCOPE_GAP: no frames */
    uint64_t weight;
};

struct speedscope {
    const struct profile *profile;
    enum idle_mode idle;
    struct json_writer json;
    uint64_t unit_ns;
    VEC_OF(struct row) rows;     /* of the profile that is being written */
    uint64_t position_ns;        /* where its next row starts */
    VEC_OF(uint32_t) frame_path; /* scratch */
};

/* Weights are differences of rounded positions, so that they add up to the rounded end whatever the unit. */
static void add_row(struct speedscope *file, uint32_t stack, int state, uint64_t weight_ns)
{
    uint64_t start = file->position_ns / file->unit_ns;
    struct row *last = file->rows.count > 0 ? &file->rows.items[file->rows.count - 1] : NULL;

    file->position_ns += weight_ns;
    uint64_t weight = file->position_ns / file->unit_ns - start;

    if (weight == 0)
        return;
    if (last != NULL && last->stack == stack && last->state == state)
        last->weight += weight;
    else
        VEC_PUSH(&file->rows, ((struct row){.stack = stack, .state = state, .weight = weight}));
}

static uint32_t mark_frame(const struct speedscope *file, enum mark mark)
{
    return (uint32_t)file->profile->frame_count + mark;
}

static void write_frames_of_row(struct speedscope *file, const struct row *row, bool below_idle)
{
    struct json_writer *json = &file->json;
    size_t depth = 0;

    json_begin_array(json);
    if (row->state == SPEEDSCOPE_GAP) {
        json_end_array(json);
        return;
    }
    if (below_idle)
        json_uint(json, mark_frame(file, MARK_IDLE));
    file->frame_path.count = 0;
    for (uint32_t s = row->stack; s != STACK_EMPTY;) {
        struct stack_node node = stack_table_get(file->profile->stacks, s);

        VEC_PUSH(&file->frame_path, node.frame);
        s = node.parent;
    }
    depth = file->frame_path.count;
    if (depth == 0)
        json_uint(json, mark_frame(file, MARK_NO_STACK));
    for (size_t i = depth; i-- > 0;) { /* i counts from the leaf */
        if (depth > SPEEDSCOPE_MAX_DEPTH && i >= SPEEDSCOPE_KEPT_LEAVES &&
            depth - i > SPEEDSCOPE_MAX_DEPTH - SPEEDSCOPE_KEPT_LEAVES) {
            json_uint(json, mark_frame(file, MARK_LEFT_OUT));
            i = SPEEDSCOPE_KEPT_LEAVES;
            continue;
        }
        json_uint(json, file->frame_path.items[i]);
    }
    json_end_array(json);
}

/* Writes the rows that have been gathered, and forgets them. */
static void write_profile(struct speedscope *file, const char *name, int64_t thread, bool separate_idle)
{
    struct json_writer *json = &file->json;

    json_line(json);
    json_begin_object(json);
    json_key_string(json, "type", "sampled");
    json_key_string(json, "name", name);
    json_key_string(json, "unit", file->unit_ns == 1 ? "nanoseconds" : "microseconds");
    json_key_uint(json, "startValue", 0);
    json_key_uint(json, "endValue", file->position_ns / file->unit_ns);
    json_key(json, "samples");
    json_begin_array(json);
    for (size_t i = 0; i < file->rows.count; i++) {
        const struct row *row = &file->rows.items[i];

        json_line(json);
        write_frames_of_row(file, row, separate_idle && row->state == STATE_IDLE);
    }
    json_end_array(json);
    json_line(json);
    json_key(json, "weights");
    json_begin_array(json);
    for (size_t i = 0; i < file->rows.count; i++)
        json_uint(json, file->rows.items[i].weight);
    json_end_array(json);
    json_line(json);
    json_key(json, "stallgraph");
    json_begin_object(json);
    json_key(json, "thread");
    json_int(json, thread);
    json_key(json, "states");
    json_begin_array(json);
    for (size_t i = 0; i < file->rows.count; i++)
        json_int(json, file->rows.items[i].state);
    json_end_array(json);
    json_end_object(json);
    json_end_object(json);
    file->rows.count = 0;
    file->position_ns = 0;
}

static void write_all_threads(struct speedscope *file)
{
    struct all_threads all = {0};

    all_threads_init(&all, file->profile, file->idle);
    for (size_t i = 0; i < all.count; i++)
        add_row(file, all.items[i].stack, (int)all.items[i].state, all.items[i].weight_ns);
    all_threads_finish(&all);
    write_profile(file, "All threads", SPEEDSCOPE_ALL_THREADS, file->idle == IDLE_SEPARATE);
}

/* The end that all threads' profiles share. */
static uint64_t window_end_ns(const struct profile *profile)
{
    uint64_t end_ns = profile->meta.duration_ns;

    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];

        if (thread->sample_count > 0) {
            const struct sample *last = &thread->samples[thread->sample_count - 1];

            if (last->start_ns + last->weight_ns > end_ns)
                end_ns = last->start_ns + last->weight_ns;
        }
    }
    return end_ns;
}

static void write_thread(struct speedscope *file, size_t index, uint64_t end_ns)
{
    const struct profile *profile = file->profile;
    const struct profile_thread *thread = &profile->threads[index];
    AUTO_FREE char *raw_name = string_format(
        "%s/%s (tid %d)", string_table_get(profile->strings, profile->processes[thread->process].name),
        string_table_get(profile->strings, thread->name), (int)thread->tid);
    AUTO_FREE char *name = text_safe(raw_name, TEXT_JSON);

    for (size_t i = 0; i < thread->sample_count; i++) {
        const struct sample *sample = &thread->samples[i];

        if (sample->state == STATE_IDLE && file->idle == IDLE_HIDE)
            continue;
        if (sample->start_ns > file->position_ns)
            add_row(file, STACK_EMPTY, SPEEDSCOPE_GAP, sample->start_ns - file->position_ns);
        add_row(file, sample->stack, (int)sample->state, sample->weight_ns);
    }
    if (end_ns > file->position_ns)
        add_row(file, STACK_EMPTY, SPEEDSCOPE_GAP, end_ns - file->position_ns);
    write_profile(file, name, (int64_t)index, false);
}

static void write_frames(struct speedscope *file)
{
    const struct profile *profile = file->profile;
    struct json_writer *json = &file->json;

    for (size_t i = 0; i < profile->frame_count; i++) {
        const struct frame *frame = &profile->frames[i];
        AUTO_FREE char *name = text_safe(string_table_get(profile->strings, frame->name), TEXT_JSON);

        json_line(json);
        json_begin_object(json);
        json_key_string(json, "name", name);
        if (frame->module != 0)
            json_key_string(json, "file", string_table_get(profile->strings, frame->module));
        if (frame->kind != FRAME_USER)
            json_key_string(json, "kind", frame_kind_name(frame->kind));
        if (frame->wait != WAIT_NONE)
            json_key_string(json, "wait", wait_kind_name(frame->wait));
        if (frame->build_id != 0)
            json_key_string(json, "buildId", string_table_get(profile->strings, frame->build_id));
        json_end_object(json);
    }
    for (int mark = 0; mark < MARK_COUNT; mark++) {
        json_line(json);
        json_begin_object(json);
        json_key_string(json, "name", mark_names[mark]);
        json_key_string(json, "kind", SPEEDSCOPE_MARK_KIND);
        json_end_object(json);
    }
}

static void write_threads(struct json_writer *json, const struct profile *profile)
{
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        const struct ledger *ledger = &thread->ledger;

        json_line(json);
        json_begin_object(json);
        json_key_uint(json, "process", thread->process);
        json_key(json, "tid");
        json_int(json, thread->tid);
        json_key_string(json, "name", string_table_get(profile->strings, thread->name));
        json_key(json, "main");
        json_bool(json, thread->is_main);
        json_key_uint(json, "beginNs", thread->begin_ns);
        json_key_uint(json, "endNs", thread->end_ns);
        json_key_uint(json, "lifetimeNs", ledger->lifetime_ns);
        json_key(json, "timeNs");
        json_begin_array(json);
        for (int state = 0; state < STATE_COUNT; state++)
            json_uint(json, ledger->time_ns[state]);
        json_end_array(json);
        json_key_uint(json, "unsampledNs", ledger->unsampled_ns);
        json_key_uint(json, "lostNs", ledger->lost_ns);
        if (ledger->has_kernel_counters) {
            json_key_uint(json, "kernelOnCpuNs", ledger->kernel_on_cpu_ns);
            json_key_uint(json, "kernelRunnableNs", ledger->kernel_runnable_ns);
        }
        json_end_object(json);
    }
}

static void write_wait_lengths(struct json_writer *json, const struct profile_looks *looks)
{
    json_key(json, "byWaitLength");
    json_begin_array(json);
    for (size_t i = 0; i < WAIT_LENGTH_CLASSES; i++) {
        json_begin_object(json);
        if (wait_length_below_ns(i) != UINT64_MAX)
            json_key_uint(json, "belowNs", wait_length_below_ns(i));
        json_key_uint(json, "stacks", looks->by_wait_length[i].stacks);
        json_key_uint(json, "lost", looks->by_wait_length[i].lost);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_looks(struct json_writer *json, const struct profile_looks *looks)
{
    if (looks->passes == 0)
        return;
    json_key(json, "looks");
    json_begin_object(json);
    json_key_uint(json, "passes", looks->passes);
    json_key_uint(json, "stacksTaken", looks->stacks_taken);
    json_key_uint(json, "stacksLeftOut", looks->stacks_left_out);
    json_key_uint(json, "stacksRaced", looks->stacks_raced);
    json_key_uint(json, "stacksRecalled", looks->stacks_recalled);
    json_key_uint(json, "stacksDeep", looks->stacks_deep);
    json_key_uint(json, "deepFailed", looks->deep_failed);
    json_key_uint(json, "deepRecalled", looks->deep_recalled);
    write_wait_lengths(json, looks);
    json_end_object(json);
}

static void write_quota(struct json_writer *json, const struct profile_quota *quota)
{
    if (quota->quota_ns == 0 && quota->periods == 0)
        return;
    json_key(json, "cpuQuota");
    json_begin_object(json);
    json_key_uint(json, "periods", quota->periods);
    json_key_uint(json, "throttledPeriods", quota->throttled_periods);
    json_key_uint(json, "throttledNs", quota->throttled_ns);
    json_key_uint(json, "quotaNs", quota->quota_ns);
    json_key_uint(json, "periodNs", quota->period_ns);
    json_end_object(json);
}

static void write_meta(struct json_writer *json, const struct profile_meta *meta,
                       const struct profile_loss *loss)
{
    /* Split: nanoseconds since 1970 are more than a double holds. Floored, so that the second part is never
     * negative. */
    int64_t nanoseconds = meta->start_unix_ns % (int64_t)NS_PER_S;
    int64_t seconds = meta->start_unix_ns / (int64_t)NS_PER_S;

    if (nanoseconds < 0) {
        nanoseconds += (int64_t)NS_PER_S;
        seconds--;
    }
    json_key_uint(json, "version", SPEEDSCOPE_VERSION);
    json_key_string(json, "title", meta->title);
    json_key_string(json, "commandLine", meta->command_line);
    json_key_string(json, "host", meta->host);
    json_key_string(json, "kernel", meta->kernel);
    json_key_string(json, "engines", meta->engines);
    json_key(json, "frequencyHz");
    json_double(json, meta->frequency_hz);
    json_key(json, "startUnixSeconds");
    json_int(json, seconds);
    json_key(json, "startUnixNanoseconds");
    json_int(json, nanoseconds);
    json_key_uint(json, "durationNs", meta->duration_ns);
    json_key(json, "loss");
    json_begin_object(json);
    json_key_uint(json, "lostEvents", loss->lost_events);
    json_key_uint(json, "unwoundStacks", loss->unwound_stacks);
    json_key_uint(json, "truncatedStacks", loss->truncated_stacks);
    json_key_uint(json, "unpermittedNs", loss->unpermitted_ns);
    json_key_uint(json, "unplacedWaits", loss->unplaced_waits);
    json_end_object(json);
    json_line(json);
}

/* Root first; the depth is what the walk has counted. */
static void write_stack(struct json_writer *json, const struct profile *profile, uint32_t stack)
{
    uint32_t depth = stack_table_get(profile->stacks, stack).depth;
    AUTO_FREE uint32_t *frames = memory_zeroed(depth, sizeof *frames);

    for (uint32_t i = depth; i-- > 0;) {
        struct stack_node node = stack_table_get(profile->stacks, stack);

        frames[i] = node.frame;
        stack = node.parent;
    }
    json_begin_array(json);
    for (uint32_t i = 0; i < depth; i++)
        json_uint(json, frames[i]);
    json_end_array(json);
}

static void write_waits(struct json_writer *json, const struct profile *profile)
{
    for (size_t i = 0; i < profile->counted_wait_count; i++) {
        const struct counted_wait *wait = &profile->counted_waits[i];

        json_line(json);
        json_begin_object(json);
        json_key(json, "stack");
        write_stack(json, profile, wait->stack);
        json_key_uint(json, "count", wait->histogram.count);
        json_key_uint(json, "sumNs", wait->histogram.sum_ns);
        json_key(json, "bins");
        json_begin_array(json);
        for (int bin = 0; bin < HISTOGRAM_BINS; bin++)
            json_uint(json, wait->histogram.bins[bin]);
        json_end_array(json);
        json_end_object(json);
    }
}

static void write_locks(struct json_writer *json, const struct profile *profile)
{
    for (size_t i = 0; i < profile->lock_wait_count; i++) {
        const struct lock_wait *wait = &profile->lock_waits[i];

        json_line(json);
        json_begin_object(json);
        json_key(json, "stack");
        write_stack(json, profile, wait->stack);
        json_key_uint(json, "waitedNs", wait->waited_ns);
        if (wait->owner != LOCK_OWNER_UNKNOWN) {
            json_key_uint(json, "owner", wait->owner);
            json_key_string(json, "ownerState", thread_state_name(wait->owner_state));
            json_key(json, "ownerStack");
            write_stack(json, profile, wait->owner_stack);
        }
        json_end_object(json);
    }
}

static void write_stallgraph(struct json_writer *json, const struct profile *profile)
{
    json_begin_object(json);
    write_meta(json, &profile->meta, &profile->loss);
    write_looks(json, &profile->looks);
    write_quota(json, &profile->quota);
    json_key(json, "states");
    json_begin_array(json);
    for (int state = 0; state < STATE_COUNT; state++)
        json_string(json, thread_state_name((enum thread_state)state));
    json_end_array(json);
    json_key(json, "processes");
    json_begin_array(json);
    for (size_t i = 0; i < profile->process_count; i++) {
        json_line(json);
        json_begin_object(json);
        json_key(json, "pid");
        json_int(json, profile->processes[i].pid);
        json_key_string(json, "name", string_table_get(profile->strings, profile->processes[i].name));
        json_end_object(json);
    }
    json_end_array(json);
    json_line(json);
    json_key(json, "threads");
    json_begin_array(json);
    write_threads(json, profile);
    json_end_array(json);
    if (profile->counted_wait_count > 0) {
        json_line(json);
        json_key(json, "waits");
        json_begin_array(json);
        write_waits(json, profile);
        json_end_array(json);
    }
    if (profile->lock_wait_count > 0) {
        json_line(json);
        json_key(json, "locks");
        json_begin_array(json);
        write_locks(json, profile);
        json_end_array(json);
    }
    json_end_object(json);
}

/* The unit in which no sum of this file passes 2^53. */
static uint64_t choose_unit_ns(const struct profile *profile)
{
    uint64_t sum_ns = 0;

    for (size_t i = 0; i < profile->thread_count; i++) {
        for (size_t k = 0; k < profile->threads[i].sample_count; k++)
            sum_ns += profile->threads[i].samples[k].weight_ns;
    }
    return sum_ns <= UINT64_C(1) << 53 ? 1 : NS_PER_US;
}

static int speedscope_write(const struct profile *profile, const struct export_options *options, FILE *out,
                            struct error *err)
{
    struct speedscope file = {.profile = profile, .idle = options->tree.idle, .json = {.out = out}};
    struct json_writer *json = &file.json;
    AUTO_FREE char *title = text_safe(profile->meta.title, TEXT_JSON);
    uint64_t end_ns = window_end_ns(profile);

    file.unit_ns = choose_unit_ns(profile);
    json_begin_object(json);
    json_key_string(json, "$schema", SPEEDSCOPE_SCHEMA);
    json_key_string(json, "name", title);
    json_key_string(json, "exporter", "stallgraph@" STALLGRAPH_VERSION);
    json_key_uint(json, "activeProfileIndex", 0);
    json_line(json);
    json_key(json, "stallgraph");
    write_stallgraph(json, profile);
    json_line(json);
    json_key(json, "shared");
    json_begin_object(json);
    json_key(json, "frames");
    json_begin_array(json);
    write_frames(&file);
    json_end_array(json);
    json_end_object(json);
    json_line(json);
    json_key(json, "profiles");
    json_begin_array(json);
    write_all_threads(&file);
    for (size_t i = 0; i < profile->thread_count; i++)
        write_thread(&file, i, end_ns);
    json_end_array(json);
    json_end_object(json);
    putc('\n', out);
    free(file.rows.items);
    free(file.frame_path.items);
    return output_check(out, err);
}

const struct exporter exporter_speedscope = {
    .name = "speedscope",
    .extension = ".speedscope.json",
    .help = "speedscope JSON: all threads together, and each in time order",
    .write = speedscope_write,
};
