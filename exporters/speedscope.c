#include "exporters/speedscope.h"

#include <stdlib.h>

#include "exporters/all_threads.h"
#include "exporters/exporter.h"
#include "exporters/json_writer.h"
#include "exporters/output.h"
#include "exporters/speedscope_own.h"
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
    speedscope_write_own(json, profile);
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
