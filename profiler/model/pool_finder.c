#include "profiler/model/pool_finder.h"

#include <stdlib.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/model/call_tree.h"

/* Of one thread: stacks that were cut at odd places may seem to begin elsewhere. */
enum { MAX_STARTS = 8 };

struct search {
    const struct profile *profile;
    const struct stack_role *roles;
    struct pool_finder *finder;
    struct string_table *names;
    struct id_map group_of_name; /* (program, name) -> group: threads but for where they began */
    uint32_t group_count;
    struct id_map pool_of_start; /* (group, start) -> pool */
    struct id_map first_of_group;
};

/* Where it was seen to begin for the longest time. */
static uint32_t start_of_thread(const struct search *search, const struct profile_thread *thread)
{
    uint32_t starts[MAX_STARTS];
    uint64_t times_ns[MAX_STARTS] = {0};
    size_t count = 0;
    size_t best = 0;

    for (size_t i = 0; i < thread->sample_count; i++) {
        uint32_t start = search->roles[thread->samples[i].stack].start;
        size_t at = 0;

        if (start == STACK_ROLE_NONE)
            continue;
        while (at < count && starts[at] != start)
            at++;
        if (at == MAX_STARTS)
            continue;
        if (at == count)
            starts[count++] = start;
        times_ns[at] += thread->samples[i].weight_ns;
        if (times_ns[at] > times_ns[best])
            best = at;
    }
    return count > 0 ? starts[best] : STACK_ROLE_NONE;
}

static uint32_t group_of_thread(struct search *search, const struct profile_thread *thread,
                                const char *pool_name)
{
    uint32_t process = search->profile->processes[thread->process].name;
    uint32_t name = string_table_intern(search->names, pool_name);
    uint64_t key = (uint64_t)process << 32 | (name << 1) | thread->is_main;
    uint32_t group;

    if (!id_map_get(&search->group_of_name, key, &group)) {
        group = search->group_count++;
        id_map_put(&search->group_of_name, key, group);
    }
    return group;
}

static void put_thread(struct search *search, size_t index, uint32_t start)
{
    const struct profile *profile = search->profile;
    const struct profile_thread *thread = &profile->threads[index];
    AUTO_FREE char *name =
        thread->is_main
            ? string_copy(string_table_get(profile->strings, profile->processes[thread->process].name))
            : thread_pool_name(string_table_get(profile->strings, thread->name));
    uint32_t group = group_of_thread(search, thread, name);
    uint64_t key;
    uint32_t pool;

    if (thread->is_main)
        start = STACK_ROLE_NONE;
    key = (uint64_t)group << 32 | start;
    if (!(start == STACK_ROLE_NONE && id_map_get(&search->first_of_group, group, &pool)) &&
        !id_map_get(&search->pool_of_start, key, &pool)) {
        pool = (uint32_t)search->finder->count;
        VEC_PUSH(search->finder, ((struct thread_pool){.process = profile->processes[thread->process].name,
                                                       .start = start,
                                                       .is_main = thread->is_main,
                                                       .name = string_copy(name)}));
        id_map_put(&search->pool_of_start, key, pool);
        if (!id_map_get(&search->first_of_group, group, &pool))
            id_map_put(&search->first_of_group, group, (uint32_t)search->finder->count - 1);
        pool = (uint32_t)search->finder->count - 1;
    }
    search->finder->pool_of_thread[index] = pool;
}

void pool_finder_init(struct pool_finder *finder, const struct profile *profile,
                      const struct stack_role *roles)
{
    struct search search = {
        .profile = profile, .roles = roles, .finder = finder, .names = string_table_create()};
    AUTO_FREE uint32_t *starts = memory_zeroed(profile->thread_count, sizeof *starts);

    *finder = (struct pool_finder){.pool_of_thread =
                                       memory_zeroed(profile->thread_count, sizeof *finder->pool_of_thread)};
    for (size_t i = 0; i < profile->thread_count; i++) {
        starts[i] = start_of_thread(&search, &profile->threads[i]);
        if (starts[i] != STACK_ROLE_NONE)
            put_thread(&search, i, starts[i]);
    }
    /* Then those of which it is not known: they join the others of their name. */
    for (size_t i = 0; i < profile->thread_count; i++)
        if (starts[i] == STACK_ROLE_NONE)
            put_thread(&search, i, STACK_ROLE_NONE);
    id_map_finish(&search.group_of_name);
    id_map_finish(&search.pool_of_start);
    id_map_finish(&search.first_of_group);
    string_table_destroy(search.names);
}

void pool_finder_finish(struct pool_finder *finder)
{
    if (finder == NULL)
        return;
    for (size_t i = 0; i < finder->count; i++)
        free(finder->items[i].name);
    free(finder->items);
    free(finder->pool_of_thread);
    *finder = (struct pool_finder){0};
}
