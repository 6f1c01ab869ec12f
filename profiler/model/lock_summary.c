#include "profiler/model/lock_summary.h"

#include <stdlib.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

static uint32_t index_of(struct id_map *map, uint64_t key, uint32_t *count)
{
    uint32_t index;

    if (!id_map_get(map, key, &index)) {
        index = (*count)++;
        id_map_put(map, key, index);
    }
    return index;
}

static int compare_waits(const void *left, const void *right)
{
    const struct lock_summary *a = left;
    const struct lock_summary *b = right;

    if (a->waited_ns != b->waited_ns)
        return a->waited_ns > b->waited_ns ? -1 : 1;
    return a->frame < b->frame ? -1 : a->frame > b->frame;
}

struct lock_summary *lock_summary_list(const struct profile *profile, const struct stack_role *roles,
                                       size_t *ret_count)
{
    size_t limit = profile->lock_wait_count;
    struct lock_summary *locks = memory_zeroed(limit, sizeof *locks);
    AUTO_FREE uint64_t *times_ns =
        memory_zeroed(limit, sizeof *times_ns); /* by (lock, what the holder did) */
    struct id_map lock_of_frame = {0};
    struct id_map deed_of_key = {0};
    struct id_map time_of_pair = {0};
    uint32_t lock_count = 0;
    uint32_t deed_count = 0;
    uint32_t time_count = 0;

    for (size_t i = 0; i < limit; i++) {
        const struct lock_wait *wait = &profile->lock_waits[i];
        const struct stack_role *owner_role = &roles[wait->owner_stack];
        uint32_t frame = roles[wait->stack].leaf;
        uint32_t lock = index_of(&lock_of_frame, frame, &lock_count);
        uint32_t deed = index_of(
            &deed_of_key,
            hash_mix((uint64_t)owner_role->leaf << 32 | owner_role->function, (uint64_t)wait->owner_state),
            &deed_count);
        uint32_t time;

        locks[lock].frame = frame;
        locks[lock].waited_ns += wait->waited_ns;
        /* One that was seen last where it waits for the very lock has got it since: what it does now, nobody saw. */
        if (wait->owner == LOCK_OWNER_UNKNOWN || owner_role->leaf == frame) {
            locks[lock].unknown_ns += wait->waited_ns;
            continue;
        }
        time = index_of(&time_of_pair, (uint64_t)lock << 32 | deed, &time_count);
        times_ns[time] += wait->waited_ns;
        if (times_ns[time] <= locks[lock].owner_ns)
            continue;
        locks[lock].owner_ns = times_ns[time];
        locks[lock].owner = wait->owner;
        locks[lock].owner_state = wait->owner_state;
        locks[lock].owner_leaf = owner_role->leaf;
        locks[lock].owner_function = owner_role->function;
    }
    id_map_finish(&lock_of_frame);
    id_map_finish(&deed_of_key);
    id_map_finish(&time_of_pair);
    if (lock_count > 0)
        qsort(locks, lock_count, sizeof *locks, compare_waits);
    *ret_count = lock_count;
    return locks;
}
