/* pprof's profile.proto, gzipped, as `go tool pprof` and others read it. A sample of the file is all the time of one
 * thread in one state with one stack:
 *
 *   values  samples/count 3, on-cpu 0, runnable 0, blocked 1250000000, idle 0, wall 1250000000 (nanoseconds)
 *   stack   poll <- PQexec <- handle <- start_thread, with the wait as its leaf
 *   labels  process srv, pid 1234, thread worker-*, tid 1240, state blocked, wait database
 *
 * Fields and their numbers: proto/profile.proto of github.com/google/pprof. */
#include <errno.h>
#include <stdlib.h>

#include "exporters/exporter.h"
#include "exporters/gzip_file.h"
#include "exporters/output.h"
#include "exporters/protobuf_writer.h"
#include "exporters/text_safe.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};
enum value_type_field { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum sample_field { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum label_field { LABEL_KEY = 1, LABEL_STR = 2 };
enum mapping_field { MAPPING_ID = 1, MAPPING_FILENAME = 5, MAPPING_BUILD_ID = 6, MAPPING_HAS_FUNCTIONS = 7 };
enum location_field { LOCATION_ID = 1, LOCATION_MAPPING_ID = 2, LOCATION_LINE = 4 };
enum line_field { LINE_FUNCTION_ID = 1 };
enum function_field { FUNCTION_ID = 1, FUNCTION_NAME = 2 };

enum value {
    VALUE_SAMPLES,
    VALUE_ON_CPU,
    VALUE_RUNNABLE,
    VALUE_BLOCKED,
    VALUE_IDLE,
    VALUE_WALL,
    VALUE_COUNT
};

static const char *const value_names[VALUE_COUNT] = {
    [VALUE_SAMPLES] = "samples", [VALUE_ON_CPU] = "on-cpu", [VALUE_RUNNABLE] = "runnable",
    [VALUE_BLOCKED] = "blocked", [VALUE_IDLE] = "idle",     [VALUE_WALL] = "wall",
};

/* Stand behind the profile's frames. */
enum mark { MARK_IDLE, MARK_NO_STACK, MARK_COUNT };

static const char *const mark_names[MARK_COUNT] = {"[idle]", "[no stack]"};

/* Whose time it is: with THREADS_MERGE a process's name (string id), else a thread (index). */
struct row {
    uint32_t owner;
    uint32_t stack;
    uint64_t runs[STATE_COUNT];
    uint64_t time_ns[STATE_COUNT];
};

struct mapping {
    uint32_t module; /* string ids of the profile */
    uint32_t build_id;
};

struct pprof {
    const struct profile *profile;
    const struct call_tree_options *options;
    struct protobuf_writer proto;
    struct string_table *strings; /* of the file; its ids count from 0, the empty string, as pprof wants */
    struct id_map row_ids;        /* (owner, stack) -> row */
    VEC_OF(struct row) rows;      /* in the order in which they first come: no id of a table decides it */
    uint32_t *location_ids;       /* by frame, marks included; 0 = not used yet */
    VEC_OF(uint32_t) locations;   /* their frames; location and function i + 1 are of locations[i] */
    struct id_map mapping_ids;    /* (module, build id) -> mapping */
    VEC_OF(struct mapping) mappings;
    VEC_OF(uint64_t) path; /* scratch */
};

/* A terminal shows these names: no control characters. */
static uint32_t intern(struct pprof *file, const char *raw)
{
    AUTO_FREE char *text = text_safe(raw, TEXT_XML);

    return string_table_intern(file->strings, text);
}

static uint32_t intern_of_profile(struct pprof *file, uint32_t string)
{
    return intern(file, string_table_get(file->profile->strings, string));
}

static struct row *row_of(struct pprof *file, uint32_t owner, uint32_t stack)
{
    uint64_t key = (uint64_t)owner << 32 | stack;
    uint32_t id = 0;

    if (!id_map_get(&file->row_ids, key, &id)) {
        id = (uint32_t)file->rows.count;
        id_map_put(&file->row_ids, key, id);
        VEC_PUSH(&file->rows, ((struct row){.owner = owner, .stack = stack}));
    }
    return &file->rows.items[id];
}

static void add_up(struct pprof *file)
{
    const struct profile *profile = file->profile;

    for (uint32_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        uint32_t owner =
            file->options->threads == THREADS_MERGE ? profile->processes[thread->process].name : i;

        for (size_t k = 0; k < thread->sample_count; k++) {
            const struct sample *sample = &thread->samples[k];

            if (sample->state == STATE_IDLE && file->options->idle == IDLE_HIDE)
                continue;
            struct row *row = row_of(file, owner, sample->stack);

            row->runs[sample->state]++;
            row->time_ns[sample->state] += sample->weight_ns;
        }
    }
}

static uint32_t mark_frame(const struct pprof *file, enum mark mark)
{
    return (uint32_t)file->profile->frame_count + mark;
}

static uint64_t location_of(struct pprof *file, uint32_t frame)
{
    if (file->location_ids[frame] == 0) {
        VEC_PUSH(&file->locations, frame);
        file->location_ids[frame] = (uint32_t)file->locations.count;
    }
    return file->location_ids[frame];
}

/* Leaf first. */
static void write_stack(struct pprof *file, uint32_t stack, bool below_idle)
{
    file->path.count = 0;
    for (uint32_t s = stack; s != STACK_EMPTY;) {
        struct stack_node node = stack_table_get(file->profile->stacks, s);

        VEC_PUSH(&file->path, location_of(file, node.frame));
        s = node.parent;
    }
    if (stack == STACK_EMPTY)
        VEC_PUSH(&file->path, location_of(file, mark_frame(file, MARK_NO_STACK)));
    if (below_idle)
        VEC_PUSH(&file->path, location_of(file, mark_frame(file, MARK_IDLE)));
    protobuf_packed(&file->proto, SAMPLE_LOCATION_ID, file->path.items, file->path.count);
}

static void write_values(struct pprof *file, const struct row *row, enum thread_state state)
{
    static const enum value value_of_state[STATE_COUNT] = {
        [STATE_ON_CPU] = VALUE_ON_CPU, [STATE_RUNNABLE] = VALUE_RUNNABLE, [STATE_BLOCKED] = VALUE_BLOCKED,
        [STATE_IDLE] = VALUE_IDLE,     [STATE_STOPPED] = VALUE_WALL,      [STATE_UNKNOWN] = VALUE_WALL,
    };
    uint64_t values[VALUE_COUNT] = {[VALUE_SAMPLES] = row->runs[state], [VALUE_WALL] = row->time_ns[state]};

    values[value_of_state[state]] = row->time_ns[state];
    protobuf_packed(&file->proto, SAMPLE_VALUE, values, VALUE_COUNT);
}

static void write_label(struct pprof *file, const char *key, const char *text)
{
    protobuf_begin(&file->proto, SAMPLE_LABEL);
    protobuf_uint(&file->proto, LABEL_KEY, intern(file, key));
    protobuf_uint(&file->proto, LABEL_STR, intern(file, text));
    protobuf_end(&file->proto);
}

/* Ids are texts: pprof takes a number for a quantity, and gives it a unit. */
static void write_label_id(struct pprof *file, const char *key, pid_t id)
{
    AUTO_FREE char *text = string_format("%d", (int)id);

    write_label(file, key, text);
}

static void write_owner_labels(struct pprof *file, uint32_t owner)
{
    const struct profile *profile = file->profile;

    if (file->options->threads == THREADS_MERGE) {
        write_label(file, "process", string_table_get(profile->strings, owner));
        return;
    }
    const struct profile_thread *thread = &profile->threads[owner];
    const struct profile_process *process = &profile->processes[thread->process];
    const char *thread_name = string_table_get(profile->strings, thread->name);
    AUTO_FREE char *pool = thread_pool_name(thread_name);
    AUTO_FREE char *pool_text = string_format("%s%s", pool, thread->is_main ? " [main]" : "");

    write_label(file, "process", string_table_get(profile->strings, process->name));
    write_label_id(file, "pid", process->pid);
    write_label(file, "thread", file->options->threads == THREADS_POOL ? pool_text : thread_name);
    write_label_id(file, "tid", thread->tid);
}

static void write_sample(struct pprof *file, const struct row *row, enum thread_state state)
{
    const struct profile *profile = file->profile;
    enum wait_kind wait = WAIT_NONE;

    protobuf_begin(&file->proto, PROFILE_SAMPLE);
    write_stack(file, row->stack, state == STATE_IDLE && file->options->idle == IDLE_SEPARATE);
    write_values(file, row, state);
    write_owner_labels(file, row->owner);
    write_label(file, "state", thread_state_name(state));
    if (row->stack != STACK_EMPTY)
        wait = profile->frames[stack_table_get(profile->stacks, row->stack).frame].wait;
    if (wait != WAIT_NONE)
        write_label(file, "wait", wait_kind_name(wait));
    protobuf_end(&file->proto);
}

static void write_samples(struct pprof *file)
{
    for (size_t i = 0; i < file->rows.count; i++) {
        for (int state = 0; state < STATE_COUNT; state++) {
            if (file->rows.items[i].time_ns[state] > 0)
                write_sample(file, &file->rows.items[i], (enum thread_state)state);
        }
    }
}

/* Id of the mapping of a frame, 0 for frames of no module. */
static uint32_t mapping_of(struct pprof *file, const struct frame *frame)
{
    uint64_t key = (uint64_t)frame->module << 32 | frame->build_id;
    uint32_t id = 0;

    if (frame->module == 0)
        return 0;
    if (!id_map_get(&file->mapping_ids, key, &id)) {
        VEC_PUSH(&file->mappings, ((struct mapping){frame->module, frame->build_id}));
        id = (uint32_t)file->mappings.count;
        id_map_put(&file->mapping_ids, key, id);
    }
    return id;
}

/* A frame is a function of a module: one location and one function each, of equal ids, without an address. The
 * function's system_name stays empty: pprof shortens names that equal it. */
static void write_location(struct pprof *file, uint32_t id, uint32_t frame)
{
    const struct profile *profile = file->profile;
    bool is_mark = frame >= profile->frame_count;
    uint32_t name = is_mark ? intern(file, mark_names[frame - profile->frame_count])
                            : intern_of_profile(file, profile->frames[frame].name);

    protobuf_begin(&file->proto, PROFILE_LOCATION);
    protobuf_uint(&file->proto, LOCATION_ID, id);
    if (!is_mark)
        protobuf_uint(&file->proto, LOCATION_MAPPING_ID, mapping_of(file, &profile->frames[frame]));
    protobuf_begin(&file->proto, LOCATION_LINE);
    protobuf_uint(&file->proto, LINE_FUNCTION_ID, id);
    protobuf_end(&file->proto);
    protobuf_end(&file->proto);
    protobuf_begin(&file->proto, PROFILE_FUNCTION);
    protobuf_uint(&file->proto, FUNCTION_ID, id);
    protobuf_uint(&file->proto, FUNCTION_NAME, name);
    protobuf_end(&file->proto);
}

static void write_mappings(struct pprof *file)
{
    for (size_t i = 0; i < file->mappings.count; i++) {
        const struct mapping *mapping = &file->mappings.items[i];

        protobuf_begin(&file->proto, PROFILE_MAPPING);
        protobuf_uint(&file->proto, MAPPING_ID, i + 1);
        protobuf_uint(&file->proto, MAPPING_FILENAME, intern_of_profile(file, mapping->module));
        if (mapping->build_id != 0)
            protobuf_uint(&file->proto, MAPPING_BUILD_ID, intern_of_profile(file, mapping->build_id));
        protobuf_bool(&file->proto, MAPPING_HAS_FUNCTIONS, true);
        protobuf_end(&file->proto);
    }
}

static void write_value_type(struct pprof *file, enum profile_field field, const char *type, const char *unit)
{
    protobuf_begin(&file->proto, field);
    protobuf_uint(&file->proto, VALUE_TYPE_TYPE, intern(file, type));
    protobuf_uint(&file->proto, VALUE_TYPE_UNIT, intern(file, unit));
    protobuf_end(&file->proto);
}

static void gather_comment(struct pprof *file, const char *what, const char *text)
{
    AUTO_FREE char *line = string_format("%s: %s", what, text);

    if (text[0] != '\0')
        VEC_PUSH(&file->path, intern(file, line));
}

static void write_meta(struct pprof *file)
{
    const struct profile_meta *meta = &file->profile->meta;

    protobuf_int(&file->proto, PROFILE_TIME_NANOS, meta->start_unix_ns);
    protobuf_uint(&file->proto, PROFILE_DURATION_NANOS, meta->duration_ns);
    if (meta->frequency_hz > 0) {
        write_value_type(file, PROFILE_PERIOD_TYPE, value_names[VALUE_ON_CPU], "nanoseconds");
        protobuf_uint(&file->proto, PROFILE_PERIOD, (uint64_t)((double)NS_PER_S / meta->frequency_hz));
    }
    file->path.count = 0;
    gather_comment(file, "target", meta->title);
    gather_comment(file, "command", meta->command_line);
    gather_comment(file, "engines", meta->engines);
    gather_comment(file, "host", meta->host);
    gather_comment(file, "kernel", meta->kernel);
    protobuf_packed(&file->proto, PROFILE_COMMENT, file->path.items, file->path.count);
    protobuf_uint(&file->proto, PROFILE_DEFAULT_SAMPLE_TYPE, intern(file, value_names[VALUE_WALL]));
}

static void write_all(struct pprof *file)
{
    for (int value = 0; value < VALUE_COUNT; value++)
        write_value_type(file, PROFILE_SAMPLE_TYPE, value_names[value],
                         value == VALUE_SAMPLES ? "count" : "nanoseconds");
    add_up(file);
    write_samples(file);
    for (size_t i = 0; i < file->locations.count; i++)
        write_location(file, (uint32_t)i + 1, file->locations.items[i]);
    write_mappings(file);
    write_meta(file);
    /* Last, for only now all strings are known; the first is the empty one. */
    for (uint32_t i = 0; i < string_table_count(file->strings); i++)
        protobuf_string(&file->proto, PROFILE_STRING_TABLE, string_table_get(file->strings, i));
}

static void finish(struct pprof *file)
{
    protobuf_finish(&file->proto);
    string_table_destroy(file->strings);
    id_map_finish(&file->row_ids);
    id_map_finish(&file->mapping_ids);
    free(file->rows.items);
    free(file->location_ids);
    free(file->locations.items);
    free(file->mappings.items);
    free(file->path.items);
}

static int pprof_write(const struct profile *profile, const struct export_options *options, FILE *out,
                       struct error *err)
{
    struct pprof file = {.profile = profile, .options = &options->tree, .proto = {.out = gzip_wrap(out)}};
    FILE *packed = file.proto.out;
    int r;

    if (packed == NULL)
        return error_set(err, -errno, "compress the profile");
    file.strings = string_table_create();
    file.location_ids = memory_zeroed(profile->frame_count + MARK_COUNT, sizeof *file.location_ids);
    write_all(&file);
    finish(&file);
    r = output_check(packed, err);
    if (fclose(packed) != 0 && r == 0)
        r = error_set(err, -errno, "write the profile");
    return r < 0 ? r : output_check(out, err);
}

const struct exporter exporter_pprof = {
    .name = "pprof",
    .extension = ".pb.gz",
    .packs_itself = true,
    .help = "gzipped profile.proto, for go tool pprof and others",
    .write = pprof_write,
};
