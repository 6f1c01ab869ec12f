#include "exporters/speedscope_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/json_stream.h"
#include "exporters/speedscope.h"
#include "profiler/base/memory.h"

enum place {
    PLACE_ROOT = 1,
    PLACE_SHARED,
    PLACE_FRAMES,
    PLACE_FRAME,
    PLACE_OWN,
    PLACE_LOSS,
    PLACE_LOOKS,
    PLACE_LENGTHS,
    PLACE_LENGTH,
    PLACE_STATES,
    PLACE_PROCESSES,
    PLACE_PROCESS,
    PLACE_THREADS,
    PLACE_THREAD,
    PLACE_TIME,
    PLACE_WAITS,
    PLACE_WAIT,
    PLACE_WAIT_STACK,
    PLACE_BINS,
    PLACE_LISTENERS,
    PLACE_LISTENER,
    PLACE_PEERS,
    PLACE_PEER,
    PLACE_LOCKS,
    PLACE_LOCK,
    PLACE_LOCK_OWNER,
    PLACE_LOCK_STACK,
    PLACE_QUOTA,
    PLACE_PROFILES,
    PLACE_PROFILE,
    PLACE_SAMPLES,
    PLACE_SAMPLE,
    PLACE_WEIGHTS,
    PLACE_PROFILE_OWN,
    PLACE_PROFILE_STATES,
    PLACE_EVENTS,
    PLACE_EVENT,
};

enum { MAX_STATES = 64 }; /* a later version may know more than this one */

struct file_event {
    uint32_t type;
    double frame, at;
};

/* The object of each kind that is being read, and where in it. */
struct speedscope_parser {
    struct speedscope_file *file;
    struct json_stream *stream;
    struct wait_length_looks length;
    size_t length_count;
    struct file_frame frame;
    struct file_process process;
    struct file_thread thread;
    struct file_wait wait;
    struct file_listener listener;
    struct file_peer peer;
    struct file_lock lock;
    struct file_profile profile;
    struct file_event event;
    uint32_t stack; /* of the array of frames that is being read; of the open events */
    size_t index;   /* in an array of fixed length */
    double last_at; /* of an evented profile */
};

static const struct json_rule rules[] = {
    {JSON_PLACE_TOP, PLACE_ROOT, NULL},
    {PLACE_ROOT, PLACE_SHARED, "shared"},
    {PLACE_SHARED, PLACE_FRAMES, "frames"},
    {PLACE_FRAMES, PLACE_FRAME, NULL},
    {PLACE_ROOT, PLACE_OWN, "stallgraph"},
    {PLACE_OWN, PLACE_LOSS, "loss"},
    {PLACE_OWN, PLACE_LOOKS, "looks"},
    {PLACE_LOOKS, PLACE_LENGTHS, "byWaitLength"},
    {PLACE_LENGTHS, PLACE_LENGTH, NULL},
    {PLACE_OWN, PLACE_STATES, "states"},
    {PLACE_OWN, PLACE_PROCESSES, "processes"},
    {PLACE_PROCESSES, PLACE_PROCESS, NULL},
    {PLACE_OWN, PLACE_THREADS, "threads"},
    {PLACE_THREADS, PLACE_THREAD, NULL},
    {PLACE_THREAD, PLACE_TIME, "timeNs"},
    {PLACE_OWN, PLACE_WAITS, "waits"},
    {PLACE_WAITS, PLACE_WAIT, NULL},
    {PLACE_WAIT, PLACE_WAIT_STACK, "stack"},
    {PLACE_WAIT, PLACE_BINS, "bins"},
    {PLACE_OWN, PLACE_LISTENERS, "listeners"},
    {PLACE_LISTENERS, PLACE_LISTENER, NULL},
    {PLACE_OWN, PLACE_PEERS, "peers"},
    {PLACE_PEERS, PLACE_PEER, NULL},
    {PLACE_OWN, PLACE_LOCKS, "locks"},
    {PLACE_LOCKS, PLACE_LOCK, NULL},
    {PLACE_LOCK, PLACE_LOCK_OWNER, "ownerStack"},
    {PLACE_LOCK, PLACE_LOCK_STACK, "stack"},
    {PLACE_OWN, PLACE_QUOTA, "cpuQuota"},
    {PLACE_ROOT, PLACE_PROFILES, "profiles"},
    {PLACE_PROFILES, PLACE_PROFILE, NULL},
    {PLACE_PROFILE, PLACE_SAMPLES, "samples"},
    {PLACE_SAMPLES, PLACE_SAMPLE, NULL},
    {PLACE_PROFILE, PLACE_WEIGHTS, "weights"},
    {PLACE_PROFILE, PLACE_PROFILE_OWN, "stallgraph"},
    {PLACE_PROFILE_OWN, PLACE_PROFILE_STATES, "states"},
    {PLACE_PROFILE, PLACE_EVENTS, "events"},
    {PLACE_EVENTS, PLACE_EVENT, NULL},
};

struct record {
    struct speedscope_parser parser;
    struct speedscope_file file;
};

/* Fields are told by their offset from the parser, or from the file; both are in one piece of memory. */
#define PARSER(member) offsetof(struct record, parser.member)
#define FILE_(member) offsetof(struct record, file.member)

static const struct json_field fields[] = {
    {PLACE_ROOT, JSON_STRING, "name", FILE_(name)},
    {PLACE_ROOT, JSON_STRING, "exporter", FILE_(exporter)},
    {PLACE_FRAME, JSON_STRING, "name", PARSER(frame.name)},
    {PLACE_FRAME, JSON_STRING, "file", PARSER(frame.file)},
    {PLACE_FRAME, JSON_STRING, "kind", PARSER(frame.kind)},
    {PLACE_FRAME, JSON_STRING, "wait", PARSER(frame.wait)},
    {PLACE_FRAME, JSON_STRING, "buildId", PARSER(frame.build_id)},
    {PLACE_OWN, JSON_UINT, "version", FILE_(own.version)},
    {PLACE_OWN, JSON_STRING, "title", FILE_(own.title)},
    {PLACE_OWN, JSON_STRING, "commandLine", FILE_(own.command_line)},
    {PLACE_OWN, JSON_STRING, "host", FILE_(own.host)},
    {PLACE_OWN, JSON_STRING, "kernel", FILE_(own.kernel)},
    {PLACE_OWN, JSON_STRING, "engines", FILE_(own.engines)},
    {PLACE_OWN, JSON_DOUBLE, "frequencyHz", FILE_(own.frequency_hz)},
    {PLACE_OWN, JSON_INT, "startUnixSeconds", FILE_(own.start_unix_s)},
    {PLACE_OWN, JSON_INT, "startUnixNanoseconds", FILE_(own.start_unix_ns)},
    {PLACE_OWN, JSON_UINT, "durationNs", FILE_(own.duration_ns)},
    {PLACE_OWN, JSON_UINT, "cpuCount", FILE_(own.cpu_count)},
    {PLACE_LOSS, JSON_UINT, "lostEvents", FILE_(own.loss.lost_events)},
    {PLACE_LOSS, JSON_UINT, "unwoundStacks", FILE_(own.loss.unwound_stacks)},
    {PLACE_LOSS, JSON_UINT, "truncatedStacks", FILE_(own.loss.truncated_stacks)},
    {PLACE_LOSS, JSON_UINT, "unpermittedNs", FILE_(own.loss.unpermitted_ns)},
    {PLACE_LOSS, JSON_UINT, "unplacedWaits", FILE_(own.loss.unplaced_waits)},
    {PLACE_LOOKS, JSON_UINT, "passes", FILE_(own.looks.passes)},
    {PLACE_LOOKS, JSON_UINT, "stacksTaken", FILE_(own.looks.stacks_taken)},
    {PLACE_LOOKS, JSON_UINT, "stacksLeftOut", FILE_(own.looks.stacks_left_out)},
    {PLACE_LOOKS, JSON_UINT, "stacksRaced", FILE_(own.looks.stacks_raced)},
    {PLACE_LOOKS, JSON_UINT, "stacksRecalled", FILE_(own.looks.stacks_recalled)},
    {PLACE_LOOKS, JSON_UINT, "stacksDeep", FILE_(own.looks.stacks_deep)},
    {PLACE_LOOKS, JSON_UINT, "deepFailed", FILE_(own.looks.deep_failed)},
    {PLACE_LOOKS, JSON_UINT, "deepRecalled", FILE_(own.looks.deep_recalled)},
    {PLACE_LENGTH, JSON_UINT, "stacks", PARSER(length.stacks)},
    {PLACE_LENGTH, JSON_UINT, "lost", PARSER(length.lost)},
    {PLACE_QUOTA, JSON_UINT, "periods", FILE_(own.quota.periods)},
    {PLACE_QUOTA, JSON_UINT, "throttledPeriods", FILE_(own.quota.throttled_periods)},
    {PLACE_QUOTA, JSON_UINT, "throttledNs", FILE_(own.quota.throttled_ns)},
    {PLACE_QUOTA, JSON_UINT, "quotaNs", FILE_(own.quota.quota_ns)},
    {PLACE_QUOTA, JSON_UINT, "periodNs", FILE_(own.quota.period_ns)},
    {PLACE_PROCESS, JSON_INT, "pid", PARSER(process.pid)},
    {PLACE_PROCESS, JSON_STRING, "name", PARSER(process.name)},
    {PLACE_THREAD, JSON_UINT, "process", PARSER(thread.process)},
    {PLACE_THREAD, JSON_INT, "tid", PARSER(thread.tid)},
    {PLACE_THREAD, JSON_STRING, "name", PARSER(thread.name)},
    {PLACE_THREAD, JSON_BOOL, "main", PARSER(thread.is_main)},
    {PLACE_THREAD, JSON_UINT, "beginNs", PARSER(thread.begin_ns)},
    {PLACE_THREAD, JSON_UINT, "endNs", PARSER(thread.end_ns)},
    {PLACE_THREAD, JSON_UINT, "lifetimeNs", PARSER(thread.lifetime_ns)},
    {PLACE_THREAD, JSON_UINT, "unsampledNs", PARSER(thread.unsampled_ns)},
    {PLACE_THREAD, JSON_UINT, "lostNs", PARSER(thread.lost_ns)},
    {PLACE_THREAD, JSON_INT, "kernelOnCpuNs", PARSER(thread.kernel_on_cpu_ns)},
    {PLACE_THREAD, JSON_INT, "kernelRunnableNs", PARSER(thread.kernel_runnable_ns)},
    {PLACE_WAIT, JSON_UINT, "count", PARSER(wait.count)},
    {PLACE_WAIT, JSON_UINT, "sumNs", PARSER(wait.sum_ns)},
    {PLACE_LISTENER, JSON_STRING, "address", PARSER(listener.address)},
    {PLACE_LISTENER, JSON_UINT, "looks", PARSER(listener.looks)},
    {PLACE_LISTENER, JSON_UINT, "queuedLooks", PARSER(listener.queued_looks)},
    {PLACE_LISTENER, JSON_UINT, "backlog", PARSER(listener.backlog)},
    {PLACE_LISTENER, JSON_UINT, "queueMax", PARSER(listener.queue_max)},
    {PLACE_LISTENER, JSON_UINT, "queueSum", PARSER(listener.queue_sum)},
    {PLACE_LISTENER, JSON_UINT, "connectionsMax", PARSER(listener.connections_max)},
    {PLACE_LISTENER, JSON_UINT, "connectionsSum", PARSER(listener.connections_sum)},
    {PLACE_LISTENER, JSON_UINT, "unreadMax", PARSER(listener.unread_max)},
    {PLACE_LISTENER, JSON_UINT, "unreadSum", PARSER(listener.unread_sum)},
    {PLACE_PEER, JSON_STRING, "address", PARSER(peer.address)},
    {PLACE_PEER, JSON_UINT, "looks", PARSER(peer.looks)},
    {PLACE_PEER, JSON_UINT, "inFlightMax", PARSER(peer.in_flight_max)},
    {PLACE_PEER, JSON_UINT, "inFlightSum", PARSER(peer.in_flight_sum)},
    {PLACE_PEER, JSON_UINT, "connectionsMax", PARSER(peer.connections_max)},
    {PLACE_PEER, JSON_UINT, "connectionsSum", PARSER(peer.connections_sum)},
    {PLACE_LOCK, JSON_INT, "owner", PARSER(lock.owner)},
    {PLACE_LOCK, JSON_STRING, "ownerState", PARSER(lock.owner_state)},
    {PLACE_LOCK, JSON_UINT, "waitedNs", PARSER(lock.waited_ns)},
    {PLACE_PROFILE, JSON_STRING, "type", PARSER(profile.type)},
    {PLACE_PROFILE, JSON_STRING, "name", PARSER(profile.name)},
    {PLACE_PROFILE, JSON_STRING, "unit", PARSER(profile.unit)},
    {PLACE_PROFILE, JSON_DOUBLE, "startValue", PARSER(profile.start)},
    {PLACE_PROFILE, JSON_DOUBLE, "endValue", PARSER(profile.end)},
    {PLACE_PROFILE_OWN, JSON_INT, "thread", PARSER(profile.thread)},
    {PLACE_EVENT, JSON_STRING, "type", PARSER(event.type)},
    {PLACE_EVENT, JSON_DOUBLE, "frame", PARSER(event.frame)},
    {PLACE_EVENT, JSON_DOUBLE, "at", PARSER(event.at)},
};

static int begin(void *context, int place, struct error *err)
{
    struct record *record = context;
    struct speedscope_parser *parser = &record->parser;

    (void)err;
    switch ((enum place)place) {
    case PLACE_FRAME:
        parser->frame = (struct file_frame){0};
        break;
    case PLACE_PROCESS:
        parser->process = (struct file_process){0};
        break;
    case PLACE_THREAD:
        parser->thread = (struct file_thread){.kernel_on_cpu_ns = -1, .kernel_runnable_ns = -1};
        break;
    case PLACE_WAIT:
        parser->wait = (struct file_wait){0};
        break;
    case PLACE_LISTENER:
        parser->listener = (struct file_listener){0};
        break;
    case PLACE_PEER:
        parser->peer = (struct file_peer){0};
        break;
    case PLACE_LOCK:
        parser->lock = (struct file_lock){.owner = -1};
        break;
    case PLACE_PROFILE:
        parser->profile = (struct file_profile){.thread = SPEEDSCOPE_NO_KEY};
        break;
    case PLACE_EVENTS:
        parser->stack = STACK_EMPTY;
        parser->last_at = parser->profile.start;
        break;
    case PLACE_EVENT:
        parser->event = (struct file_event){.frame = -1};
        break;
    case PLACE_LENGTHS:
        parser->length_count = 0;
        break;
    case PLACE_LENGTH:
        parser->length = (struct wait_length_looks){0};
        break;
    case PLACE_OWN:
        record->file.own.is_there = true;
        break;
    case PLACE_SAMPLE:
    case PLACE_WAIT_STACK:
    case PLACE_LOCK_OWNER:
    case PLACE_LOCK_STACK:
        parser->stack = STACK_EMPTY;
        break;
    case PLACE_TIME:
    case PLACE_BINS:
        parser->index = 0;
        break;
    case PLACE_ROOT:
    case PLACE_SHARED:
    case PLACE_FRAMES:
    case PLACE_LOSS:
    case PLACE_LOOKS:
    case PLACE_QUOTA:
    case PLACE_STATES:
    case PLACE_PROCESSES:
    case PLACE_THREADS:
    case PLACE_WAITS:
    case PLACE_LISTENERS:
    case PLACE_PEERS:
    case PLACE_LOCKS:
    case PLACE_PROFILES:
    case PLACE_PROFILE_STATES:
    case PLACE_PROFILE_OWN:
    case PLACE_SAMPLES:
    case PLACE_WEIGHTS:
        break;
    }
    return 0;
}

static int too_many(struct error *err)
{
    return error_say(err, -EFBIG, "too many items");
}

/* Frames are numbered in 32 bits, and the number of stacks has a limit of its own. */
static int push_frame(struct record *record, double frame, struct error *err)
{
    struct stack_table *stacks = record->file.stacks;

    if (!(frame >= 0 && frame < SPEEDSCOPE_READ_MAX_ITEMS) || frame != (double)(uint32_t)frame)
        return error_say(err, -EBADMSG, "%g is no frame", frame);
    if (stack_table_count(stacks) >= SPEEDSCOPE_READ_MAX_STACKS)
        return too_many(err);
    if (stack_table_get(stacks, record->parser.stack).depth >= SPEEDSCOPE_READ_MAX_DEPTH)
        return error_say(err, -EFBIG, "a stack of more than %d frames", SPEEDSCOPE_READ_MAX_DEPTH);
    record->parser.stack = stack_table_push(stacks, record->parser.stack, (uint32_t)frame);
    return 0;
}

/* What was open since the last event becomes a sample. */
static int take_event(struct record *record, struct error *err)
{
    struct speedscope_parser *parser = &record->parser;
    const struct file_event *event = &parser->event;
    const char *type = string_table_get(record->file.strings, event->type);
    struct stack_node node;

    if (!(event->at >= parser->last_at))
        return error_say(err, -EBADMSG, "an event before the one that it follows");
    if (event->at > parser->last_at) {
        VEC_PUSH(&parser->profile.stacks, parser->stack);
        VEC_PUSH(&parser->profile.weights, event->at - parser->last_at);
    }
    parser->last_at = event->at;
    if (strcmp(type, "O") == 0)
        return push_frame(record, event->frame, err);
    node = stack_table_get(record->file.stacks, parser->stack);
    if (strcmp(type, "C") != 0 || parser->stack == STACK_EMPTY || (double)node.frame != event->frame)
        return error_say(err, -EBADMSG, "an event that closes what is not open");
    parser->stack = node.parent;
    return 0;
}

#define TAKE(vec, item, err)                                                                                 \
    do {                                                                                                     \
        if ((vec)->count >= SPEEDSCOPE_READ_MAX_ITEMS)                                                       \
            return too_many(err);                                                                            \
        VEC_PUSH(vec, item);                                                                                 \
    } while (0)

static int end(void *context, int place, struct error *err)
{
    struct record *record = context;
    struct speedscope_parser *parser = &record->parser;
    struct speedscope_file *file = &record->file;

    switch (place) {
    case PLACE_FRAME:
        TAKE(&file->frames, parser->frame, err);
        break;
    case PLACE_PROCESS:
        TAKE(&file->processes, parser->process, err);
        break;
    case PLACE_THREAD:
        TAKE(&file->threads, parser->thread, err);
        break;
    case PLACE_WAIT:
        TAKE(&file->waits, parser->wait, err);
        break;
    case PLACE_LENGTH:
        if (parser->length_count < WAIT_LENGTH_CLASSES)
            file->own.looks.by_wait_length[parser->length_count++] = parser->length;
        break;
    case PLACE_LISTENER:
        TAKE(&file->listeners, parser->listener, err);
        break;
    case PLACE_PEER:
        TAKE(&file->peers, parser->peer, err);
        break;
    case PLACE_LOCK:
        TAKE(&file->locks, parser->lock, err);
        break;
    case PLACE_PROFILE:
        TAKE(&file->profiles, parser->profile, err);
        parser->profile = (struct file_profile){0};
        break;
    case PLACE_SAMPLE:
        VEC_PUSH(&parser->profile.stacks, parser->stack);
        break;
    case PLACE_WAIT_STACK:
        parser->wait.stack = parser->stack;
        break;
    case PLACE_LOCK_OWNER:
        parser->lock.owner_stack = parser->stack;
        break;
    case PLACE_LOCK_STACK:
        parser->lock.stack = parser->stack;
        break;
    case PLACE_EVENT:
        return take_event(record, err);
    default:
        break;
    }
    return 0;
}

static int take_of_fixed(uint64_t *values, size_t count, struct record *record, struct json_number number,
                         struct error *err)
{
    if (!(number.value >= 0 && number.value < 0x1p64))
        return error_say(err, -EBADMSG, "a number is out of range");
    if (record->parser.index < count)
        values[record->parser.index++] = number.whole;
    return 0;
}

static int take_number(void *context, int place, struct json_number number, struct error *err)
{
    struct record *record = context;
    struct speedscope_parser *parser = &record->parser;
    double value = number.value;

    switch (place) {
    case PLACE_SAMPLE:
    case PLACE_WAIT_STACK:
    case PLACE_LOCK_OWNER:
    case PLACE_LOCK_STACK:
        return push_frame(record, value, err);
    case PLACE_WEIGHTS:
        if (!(value >= 0 && value < 0x1p63))
            return error_say(err, -EBADMSG, "a weight of %g", value);
        VEC_PUSH(&parser->profile.weights, value);
        return 0;
    case PLACE_PROFILE_STATES:
        if (!(value >= SPEEDSCOPE_GAP && value < MAX_STATES))
            return error_say(err, -EBADMSG, "a state of %g", value);
        VEC_PUSH(&parser->profile.states, (int)value);
        return 0;
    case PLACE_TIME:
        return take_of_fixed(parser->thread.time_ns, STATE_COUNT, record, number, err);
    case PLACE_BINS:
        return take_of_fixed(parser->wait.bins, HISTOGRAM_BINS, record, number, err);
    default:
        return 0;
    }
}

static int take_string(void *context, int place, uint32_t text, struct error *err)
{
    struct record *record = context;

    if (place == PLACE_STATES)
        TAKE(&record->file.states, text, err);
    return 0;
}

static const struct json_grammar grammar = {
    .rules = rules,
    .rule_count = sizeof rules / sizeof rules[0],
    .fields = fields,
    .field_count = sizeof fields / sizeof fields[0],
    .begin = begin,
    .end = end,
    .number = take_number,
    .string = take_string,
};

struct speedscope_file *speedscope_file_create(void)
{
    struct record *record = memory_zeroed(1, sizeof *record);

    record->file.strings = string_table_create();
    record->file.stacks = stack_table_create();
    record->file.parser = &record->parser;
    record->parser.stream = json_stream_create(&grammar, record, record->file.strings);
    return &record->file;
}

static void free_profile(struct file_profile *profile)
{
    free(profile->stacks.items);
    free(profile->weights.items);
    free(profile->states.items);
}

void speedscope_file_destroy(struct speedscope_file *file)
{
    struct record *record;

    if (file == NULL)
        return;
    record = (struct record *)((char *)file - offsetof(struct record, file));
    json_stream_destroy(record->parser.stream);
    free_profile(&record->parser.profile);
    for (size_t i = 0; i < file->profiles.count; i++)
        free_profile(&file->profiles.items[i]);
    free(file->profiles.items);
    free(file->frames.items);
    free(file->states.items);
    free(file->processes.items);
    free(file->threads.items);
    free(file->waits.items);
    free(file->listeners.items);
    free(file->peers.items);
    free(file->locks.items);
    string_table_destroy(file->strings);
    stack_table_destroy(file->stacks);
    free(record);
}

int speedscope_file_feed(struct speedscope_file *file, const void *bytes, size_t size, struct error *err)
{
    return json_stream_feed(file->parser->stream, bytes, size, err);
}

int speedscope_file_end(struct speedscope_file *file, struct error *err)
{
    return json_stream_end(file->parser->stream, err);
}
