#include "profiler/model/summary.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/model/crowd.h"
#include "profiler/model/pool_finder.h"
#include "profiler/model/stack_roles.h"

/* A pool is held up when so many of its threads are blocked at once. */
enum { HELD_PERCENT = 90, CROWD_OF_WAITERS = 2 };

/* The timelines are gone through once for each, so only the largest are measured. */
enum { MEASURED_POOLS = 64, MEASURED_LOCKS = 8 };

struct builder {
    const struct profile *profile;
    struct summary *summary;
    struct stack_role *roles;
    struct pool_finder pools;
    VEC_OF(struct summary_wait) waits;
    VEC_OF(struct summary_place) places;
    struct id_map wait_of_frame;
    struct id_map pair_of_pool_and_wait; /* (pool, wait) -> pair, so that a place's key fits in 64 bits */
    uint32_t pair_count;
    struct id_map place_of_pair; /* (pair, function) -> place */
};

static uint64_t pair_key(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static uint32_t wait_of(struct builder *builder, uint32_t frame)
{
    uint32_t index;

    if (id_map_get(&builder->wait_of_frame, frame, &index))
        return index;
    index = (uint32_t)builder->waits.count;
    VEC_PUSH(&builder->waits, ((struct summary_wait){.frame = frame, .function = SUMMARY_NONE}));
    id_map_put(&builder->wait_of_frame, frame, index);
    return index;
}

static struct summary_place *place_of(struct builder *builder, uint32_t pool, uint32_t wait,
                                      uint32_t function)
{
    uint32_t pair;
    uint32_t index;

    if (!id_map_get(&builder->pair_of_pool_and_wait, pair_key(pool, wait), &pair)) {
        pair = builder->pair_count++;
        id_map_put(&builder->pair_of_pool_and_wait, pair_key(pool, wait), pair);
    }
    if (!id_map_get(&builder->place_of_pair, pair_key(pair, function), &index)) {
        index = (uint32_t)builder->places.count;
        VEC_PUSH(&builder->places,
                 ((struct summary_place){.pool = pool, .wait = wait, .function = function}));
        id_map_put(&builder->place_of_pair, pair_key(pair, function), index);
    }
    return &builder->places.items[index];
}

static bool is_throttled(const struct profile *profile, uint32_t frame)
{
    return strcmp(summary_frame_name(profile, frame), "[throttled]") == 0;
}

static void add_sample(struct builder *builder, uint32_t pool_index, const struct sample *sample)
{
    const struct stack_role *role = &builder->roles[sample->stack];
    struct summary *summary = builder->summary;
    struct summary_pool *pool = &summary->pools[pool_index];
    struct summary_place *place;
    uint32_t wait;

    summary->all_ns += sample->weight_ns;
    summary->state_ns[sample->state] += sample->weight_ns;
    pool->time_ns[sample->state] += sample->weight_ns;
    if (sample->state == STATE_ON_CPU || role->leaf == STACK_ROLE_NONE)
        return;
    if (sample->state == STATE_RUNNABLE && is_throttled(builder->profile, role->leaf))
        summary->throttled_ns += sample->weight_ns;
    if (sample->state == STATE_BLOCKED && builder->profile->frames[role->leaf].kind != FRAME_WAIT)
        pool->unnamed_ns += sample->weight_ns;
    wait = wait_of(builder, role->leaf);
    if (sample->state == STATE_IDLE)
        builder->waits.items[wait].idle_ns += sample->weight_ns;
    else
        builder->waits.items[wait].blocked_ns += sample->weight_ns;
    place = place_of(builder, pool_index, wait, role->function);
    if (sample->state == STATE_IDLE)
        place->idle_ns += sample->weight_ns;
    else if (sample->state == STATE_BLOCKED)
        place->blocked_ns += sample->weight_ns;
}

static void add_thread(struct builder *builder, size_t index)
{
    const struct profile_thread *thread = &builder->profile->threads[index];
    struct summary *summary = builder->summary;
    struct summary_pool *pool = &summary->pools[builder->pools.pool_of_thread[index]];

    pool->threads++;
    pool->at_begin += thread->begin_ns == 0 && thread->end_ns > 0;
    pool->at_middle += thread->begin_ns <= summary->window_ns / 2 && thread->end_ns > summary->window_ns / 2;
    pool->at_end += thread->end_ns >= summary->window_ns;
    pool->lifetime_ns += thread->ledger.lifetime_ns;
    summary->lifetime_ns += thread->ledger.lifetime_ns;
    summary->unsampled_ns += thread->ledger.unsampled_ns;
    summary->lost_ns += thread->ledger.lost_ns;
    for (size_t i = 0; i < thread->sample_count; i++)
        add_sample(builder, builder->pools.pool_of_thread[index], &thread->samples[i]);
}

static void make_pools(struct builder *builder)
{
    struct summary *summary = builder->summary;

    pool_finder_init(&builder->pools, builder->profile, builder->roles);
    summary->pool_count = builder->pools.count;
    summary->pools = memory_zeroed(summary->pool_count, sizeof *summary->pools);
    for (size_t i = 0; i < summary->pool_count; i++) {
        summary->pools[i] = (struct summary_pool){.process = builder->pools.items[i].process,
                                                  .start = builder->pools.items[i].start,
                                                  .is_main = builder->pools.items[i].is_main,
                                                  .name = string_copy(builder->pools.items[i].name),
                                                  .wait = SUMMARY_NONE,
                                                  .function = SUMMARY_NONE};
    }
}

/* How long the pool had next to no thread left. */
static void measure_pool(struct builder *builder, uint32_t index)
{
    const struct profile *profile = builder->profile;
    struct summary_pool *pool = &builder->summary->pools[index];
    struct crowd crowd = {0};

    for (size_t t = 0; t < profile->thread_count; t++) {
        const struct profile_thread *thread = &profile->threads[t];

        if (builder->pools.pool_of_thread[t] != index)
            continue;
        crowd_add(&crowd, CROWD_ALIVE, thread->begin_ns, thread->end_ns);
        for (size_t i = 0; i < thread->sample_count; i++)
            if (thread->samples[i].state == STATE_BLOCKED)
                crowd_add(&crowd, CROWD_HELD, thread->samples[i].start_ns,
                          thread->samples[i].start_ns + thread->samples[i].weight_ns);
    }
    pool->held_ns = crowd_time_ns(&crowd, HELD_PERCENT, 1);
    crowd_finish(&crowd);
}

static void measure_pools(struct builder *builder)
{
    for (uint32_t i = 0; i < builder->summary->pool_count && i < MEASURED_POOLS; i++) {
        const struct summary_pool *pool = &builder->summary->pools[i];

        /* Below, it cannot have been held for a noteworthy part of the time: not worth the sorting. */
        if (pool->time_ns[STATE_BLOCKED] > pool->lifetime_ns / 10)
            measure_pool(builder, i);
    }
}

static void measure_lock(const struct builder *builder, struct summary_wait *wait)
{
    const struct profile *profile = builder->profile;
    struct crowd crowd = {0};

    for (size_t t = 0; t < profile->thread_count; t++) {
        const struct profile_thread *thread = &profile->threads[t];

        for (size_t i = 0; i < thread->sample_count; i++)
            if (thread->samples[i].state == STATE_BLOCKED &&
                builder->roles[thread->samples[i].stack].leaf == wait->frame)
                crowd_add(&crowd, CROWD_HELD, thread->samples[i].start_ns,
                          thread->samples[i].start_ns + thread->samples[i].weight_ns);
    }
    wait->crowded_ns = crowd_time_ns(&crowd, 0, CROWD_OF_WAITERS);
    crowd_finish(&crowd);
}

static void measure_locks(struct builder *builder)
{
    int measured = 0;

    for (size_t i = 0; i < builder->summary->wait_count && measured < MEASURED_LOCKS; i++) {
        struct summary_wait *wait = &builder->summary->waits[i];

        if (builder->profile->frames[wait->frame].wait != WAIT_LOCK || wait->blocked_ns == 0)
            continue;
        measure_lock(builder, wait);
        measured++;
    }
}

/* The function that waits for the most of each wait. Over all pools, so first each function's part is added up. */
static void find_functions(struct builder *builder)
{
    struct id_map sum_of_pair = {0};
    AUTO_FREE uint64_t *sums_ns = memory_zeroed(builder->places.count, sizeof *sums_ns);
    uint32_t count = 0;

    for (size_t i = 0; i < builder->places.count; i++) {
        const struct summary_place *place = &builder->places.items[i];
        struct summary_wait *wait = &builder->waits.items[place->wait];
        uint64_t key = pair_key(place->wait, place->function);
        uint32_t at;

        if (!id_map_get(&sum_of_pair, key, &at)) {
            at = count++;
            id_map_put(&sum_of_pair, key, at);
        }
        sums_ns[at] += place->blocked_ns;
        if (sums_ns[at] > wait->function_ns) {
            wait->function_ns = sums_ns[at];
            wait->function = place->function;
        }
    }
    id_map_finish(&sum_of_pair);
}

/* What each pool is blocked in most. */
static void find_pool_waits(struct builder *builder)
{
    struct summary *summary = builder->summary;
    AUTO_FREE uint64_t *pair_ns = memory_zeroed(builder->pair_count, sizeof *pair_ns);
    AUTO_FREE uint64_t *place_ns = memory_zeroed(summary->pool_count, sizeof *place_ns);

    for (size_t i = 0; i < builder->places.count; i++) {
        const struct summary_place *place = &builder->places.items[i];
        struct summary_pool *pool = &summary->pools[place->pool];
        uint32_t pair = 0;

        id_map_get(&builder->pair_of_pool_and_wait, pair_key(place->pool, place->wait), &pair);
        pair_ns[pair] += place->blocked_ns;
        if (pair_ns[pair] > pool->wait_ns) {
            pool->wait_ns = pair_ns[pair];
            pool->wait = place->wait;
        }
    }
    for (size_t i = 0; i < builder->places.count; i++) {
        const struct summary_place *place = &builder->places.items[i];

        if (place->wait == summary->pools[place->pool].wait && place->blocked_ns > place_ns[place->pool]) {
            place_ns[place->pool] = place->blocked_ns;
            summary->pools[place->pool].function = place->function;
        }
    }
}

static void find_cpu_function(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    AUTO_FREE uint64_t *time_ns = memory_zeroed(profile->frame_count, sizeof *time_ns);
    struct summary *summary = builder->summary;

    for (size_t t = 0; t < profile->thread_count; t++) {
        for (size_t i = 0; i < profile->threads[t].sample_count; i++) {
            const struct sample *sample = &profile->threads[t].samples[i];
            uint32_t function = builder->roles[sample->stack].function;

            if (sample->state != STATE_ON_CPU || function == STACK_ROLE_NONE)
                continue;
            time_ns[function] += sample->weight_ns;
            if (time_ns[function] > summary->cpu_function_ns) {
                summary->cpu_function_ns = time_ns[function];
                summary->cpu_function = function;
            }
        }
    }
}

static void add_counts(struct builder *builder)
{
    const struct profile *profile = builder->profile;

    for (size_t i = 0; i < profile->counted_wait_count; i++) {
        uint32_t leaf = builder->roles[profile->counted_waits[i].stack].leaf;
        uint32_t wait;

        if (leaf == STACK_ROLE_NONE)
            continue;
        wait = wait_of(builder, leaf); /* may move the waits */
        histogram_add(&builder->waits.items[wait].counts, &profile->counted_waits[i].histogram);
    }
}

/* Sorting moves what others refer to by index: old indices, in their new order. */
struct ranked {
    uint64_t weight_ns;
    uint32_t index;
};

static int compare_ranks(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;

    if (a->weight_ns != b->weight_ns)
        return a->weight_ns > b->weight_ns ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void sort_waits(struct builder *builder)
{
    struct summary *summary = builder->summary;
    size_t count = builder->waits.count;
    AUTO_FREE struct ranked *order = memory_zeroed(count, sizeof *order);
    AUTO_FREE uint32_t *new_index = memory_zeroed(count, sizeof *new_index);

    summary->wait_count = count;
    summary->waits = memory_zeroed(count, sizeof *summary->waits);
    for (uint32_t i = 0; i < count; i++)
        order[i] = (struct ranked){builder->waits.items[i].blocked_ns, i};
    qsort(order, count, sizeof *order, compare_ranks);
    for (uint32_t i = 0; i < count; i++) {
        summary->waits[i] = builder->waits.items[order[i].index];
        new_index[order[i].index] = i;
    }
    for (size_t i = 0; i < builder->places.count; i++)
        builder->places.items[i].wait = new_index[builder->places.items[i].wait];
    for (size_t i = 0; i < summary->pool_count; i++)
        if (summary->pools[i].wait != SUMMARY_NONE)
            summary->pools[i].wait = new_index[summary->pools[i].wait];
}

static uint64_t pool_busy_ns(const struct summary_pool *pool)
{
    uint64_t busy_ns = 0;

    for (int state = 0; state < STATE_COUNT; state++)
        busy_ns += state != STATE_IDLE ? pool->time_ns[state] : 0;
    return busy_ns;
}

static void sort_pools(struct builder *builder)
{
    struct summary *summary = builder->summary;
    size_t count = summary->pool_count;
    AUTO_FREE struct ranked *order = memory_zeroed(count, sizeof *order);
    AUTO_FREE uint32_t *new_index = memory_zeroed(count, sizeof *new_index);
    struct summary_pool *sorted = memory_zeroed(count, sizeof *sorted);

    for (uint32_t i = 0; i < count; i++)
        order[i] = (struct ranked){pool_busy_ns(&summary->pools[i]), i};
    qsort(order, count, sizeof *order, compare_ranks);
    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = summary->pools[order[i].index];
        new_index[order[i].index] = i;
    }
    free(summary->pools);
    summary->pools = sorted;
    for (size_t i = 0; i < builder->places.count; i++)
        builder->places.items[i].pool = new_index[builder->places.items[i].pool];
    for (size_t i = 0; i < builder->profile->thread_count; i++)
        builder->pools.pool_of_thread[i] = new_index[builder->pools.pool_of_thread[i]];
}

struct summary *summary_create(const struct profile *profile)
{
    struct builder builder = {.profile = profile, .summary = memory_zeroed(1, sizeof(struct summary))};
    struct summary *summary = builder.summary;

    summary->window_ns = profile->meta.duration_ns;
    summary->cpu_function = SUMMARY_NONE;
    builder.roles = stack_roles_create(profile);
    make_pools(&builder);
    for (size_t i = 0; i < profile->thread_count; i++)
        add_thread(&builder, i);
    find_functions(&builder);
    find_pool_waits(&builder);
    find_cpu_function(&builder);
    summary->locks = lock_summary_list(profile, builder.roles, &summary->lock_count);
    add_counts(&builder);
    sort_waits(&builder);
    sort_pools(&builder);
    measure_pools(&builder);
    measure_locks(&builder);
    summary->places = builder.places.items;
    summary->place_count = builder.places.count;
    free(builder.roles);
    free(builder.waits.items);
    pool_finder_finish(&builder.pools);
    id_map_finish(&builder.wait_of_frame);
    id_map_finish(&builder.pair_of_pool_and_wait);
    id_map_finish(&builder.place_of_pair);
    return summary;
}

void summary_destroy(struct summary *summary)
{
    if (summary == NULL)
        return;
    for (size_t i = 0; i < summary->pool_count; i++)
        free(summary->pools[i].name);
    free(summary->pools);
    free(summary->waits);
    free(summary->places);
    free(summary->locks);
    free(summary);
}

uint64_t summary_busy_ns(const struct summary *summary)
{
    return summary->all_ns - summary->state_ns[STATE_IDLE];
}

const char *summary_frame_name(const struct profile *profile, uint32_t frame)
{
    return frame == SUMMARY_NONE ? "" : string_table_get(profile->strings, profile->frames[frame].name);
}
