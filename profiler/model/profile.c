#include "profiler/model/profile.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

enum { NO_FRAME = UINT32_MAX };

/* How frames are found again, and the room behind the public arrays. */
struct profile_index {
    struct id_map first_frame_by_hash;
    uint32_t *next_same_hash; /* by frame id; NO_FRAME ends a chain */
    size_t next_capacity;
    size_t frame_capacity;
    size_t process_capacity;
    size_t thread_capacity;
    struct id_map counted_wait_by_stack;
    size_t counted_wait_capacity;
    size_t lock_wait_capacity;
    size_t listener_capacity;
    size_t peer_capacity;
};

static const char *const state_names[STATE_COUNT] = {
    [STATE_ON_CPU] = "on-cpu", [STATE_RUNNABLE] = "runnable", [STATE_BLOCKED] = "blocked",
    [STATE_IDLE] = "idle",     [STATE_STOPPED] = "stopped",   [STATE_UNKNOWN] = "unknown",
};

static const char *const kind_names[FRAME_KIND_COUNT] = {
    [FRAME_USER] = "user",
    [FRAME_KERNEL] = "kernel",
    [FRAME_WAIT] = "wait",
    [FRAME_SYNTHETIC] = "synthetic",
};

static bool find_name(const char *const *names, size_t count, const char *name, size_t *ret_index)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

const char *thread_state_name(enum thread_state state)
{
    return state_names[state];
}

bool thread_state_parse(const char *name, enum thread_state *ret_state)
{
    size_t index;

    if (!find_name(state_names, STATE_COUNT, name, &index))
        return false;
    *ret_state = (enum thread_state)index;
    return true;
}

const char *frame_kind_name(enum frame_kind kind)
{
    return kind_names[kind];
}

bool frame_kind_parse(const char *name, enum frame_kind *ret_kind)
{
    size_t index;

    if (!find_name(kind_names, FRAME_KIND_COUNT, name, &index))
        return false;
    *ret_kind = (enum frame_kind)index;
    return true;
}

struct profile *profile_create(void)
{
    struct profile *profile = memory_zeroed(1, sizeof *profile);

    profile->strings = string_table_create();
    profile->stacks = stack_table_create();
    profile->index = memory_zeroed(1, sizeof *profile->index);
    profile->meta.title = string_copy("");
    profile->meta.command_line = string_copy("");
    profile->meta.host = string_copy("");
    profile->meta.kernel = string_copy("");
    profile->meta.engines = string_copy("");
    return profile;
}

void profile_destroy(struct profile *profile)
{
    if (profile == NULL)
        return;
    for (size_t i = 0; i < profile->thread_count; i++)
        free(profile->threads[i].samples);
    free(profile->threads);
    free(profile->processes);
    free(profile->frames);
    string_table_destroy(profile->strings);
    stack_table_destroy(profile->stacks);
    id_map_finish(&profile->index->first_frame_by_hash);
    id_map_finish(&profile->index->counted_wait_by_stack);
    free(profile->counted_waits);
    free(profile->lock_waits);
    free(profile->listeners);
    free(profile->peers);
    free(profile->index->next_same_hash);
    free(profile->index);
    free(profile->meta.title);
    free(profile->meta.command_line);
    free(profile->meta.host);
    free(profile->meta.kernel);
    free(profile->meta.engines);
    free(profile);
}

static bool frame_equal(const struct frame *a, const struct frame *b)
{
    return a->name == b->name && a->module == b->module && a->build_id == b->build_id && a->kind == b->kind &&
           a->wait == b->wait;
}

uint32_t profile_intern_frame(struct profile *profile, const struct frame *frame)
{
    struct profile_index *index = profile->index;
    uint64_t hash = hash_mix(hash_mix(frame->name, (uint64_t)frame->module << 32 | frame->build_id),
                             (uint64_t)frame->kind << 32 | frame->wait);
    uint32_t first = NO_FRAME;
    uint32_t id;

    if (id_map_get(&index->first_frame_by_hash, hash, &first)) {
        for (id = first; id != NO_FRAME; id = index->next_same_hash[id])
            if (frame_equal(&profile->frames[id], frame))
                return id;
    }
    id = (uint32_t)profile->frame_count;
    profile->frames = vec_reserve(profile->frames, &index->frame_capacity, profile->frame_count + 1,
                                  sizeof *profile->frames);
    index->next_same_hash = vec_reserve(index->next_same_hash, &index->next_capacity,
                                        profile->frame_count + 1, sizeof *index->next_same_hash);
    profile->frames[id] = *frame;
    index->next_same_hash[id] = first;
    profile->frame_count++;
    id_map_put(&index->first_frame_by_hash, hash, id);
    return id;
}

uint32_t profile_add_process(struct profile *profile, pid_t pid, const char *name)
{
    profile->processes = vec_reserve(profile->processes, &profile->index->process_capacity,
                                     profile->process_count + 1, sizeof *profile->processes);
    profile->processes[profile->process_count] = (struct profile_process){
        .pid = pid,
        .name = string_table_intern(profile->strings, name),
    };
    return (uint32_t)profile->process_count++;
}

uint32_t profile_add_thread(struct profile *profile, uint32_t process, pid_t tid, const char *name,
                            bool is_main)
{
    profile->threads = vec_reserve(profile->threads, &profile->index->thread_capacity,
                                   profile->thread_count + 1, sizeof *profile->threads);
    profile->threads[profile->thread_count] = (struct profile_thread){
        .process = process,
        .tid = tid,
        .name = string_table_intern(profile->strings, name),
        .is_main = is_main,
    };
    return (uint32_t)profile->thread_count++;
}

void profile_add_sample(struct profile *profile, uint32_t thread_index, const struct sample *sample)
{
    struct profile_thread *thread = &profile->threads[thread_index];
    struct sample *last = thread->sample_count > 0 ? &thread->samples[thread->sample_count - 1] : NULL;

    if (sample->weight_ns == 0)
        return;
    thread->ledger.time_ns[sample->state] += sample->weight_ns;
    if (last != NULL && last->stack == sample->stack && last->state == sample->state &&
        last->start_ns + last->weight_ns == sample->start_ns) {
        last->weight_ns += sample->weight_ns;
        return;
    }
    thread->samples = vec_reserve(thread->samples, &thread->sample_capacity, thread->sample_count + 1,
                                  sizeof *thread->samples);
    thread->samples[thread->sample_count++] = *sample;
}

void profile_add_counted_wait(struct profile *profile, uint32_t stack, const struct histogram *histogram)
{
    struct profile_index *index = profile->index;
    uint32_t at;

    if (!id_map_get(&index->counted_wait_by_stack, stack, &at)) {
        at = (uint32_t)profile->counted_wait_count;
        profile->counted_waits = vec_reserve(profile->counted_waits, &index->counted_wait_capacity,
                                             profile->counted_wait_count + 1, sizeof *profile->counted_waits);
        profile->counted_waits[profile->counted_wait_count++] = (struct counted_wait){.stack = stack};
        id_map_put(&index->counted_wait_by_stack, stack, at);
    }
    histogram_add(&profile->counted_waits[at].histogram, histogram);
}

void profile_add_lock_wait(struct profile *profile, const struct lock_wait *wait)
{
    profile->lock_waits = vec_reserve(profile->lock_waits, &profile->index->lock_wait_capacity,
                                      profile->lock_wait_count + 1, sizeof *profile->lock_waits);
    profile->lock_waits[profile->lock_wait_count++] = *wait;
}

void profile_add_listener(struct profile *profile, const struct profile_listener *listener)
{
    profile->listeners = vec_reserve(profile->listeners, &profile->index->listener_capacity,
                                     profile->listener_count + 1, sizeof *profile->listeners);
    profile->listeners[profile->listener_count++] = *listener;
}

void profile_add_peer(struct profile *profile, const struct profile_peer *peer)
{
    profile->peers = vec_reserve(profile->peers, &profile->index->peer_capacity, profile->peer_count + 1,
                                 sizeof *profile->peers);
    profile->peers[profile->peer_count++] = *peer;
}

void profile_set_text(char **field, const char *text)
{
    char *copy = string_copy(text);

    free(*field);
    *field = copy;
}
