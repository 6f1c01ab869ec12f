/* CPU quotas, from the counts of the control groups: how much they held the target up, and, where no engine sees whether a
 * thread is held, which waits for a CPU were that. The kernel counts held time when it is over, as it does run delay. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/collect/cpu_quota.h"
#include "profiler/session_internal.h"

enum { NO_LEVEL = UINT32_MAX, MAX_LEVELS = 64 };

static const uint64_t read_interval_ns = 100 * NS_PER_MS;
/* A thread that is let go must still get a CPU before its wait is a span. */
static const uint64_t settle_ns = NS_PER_S;

/* A control group with quotas. Those that it lies in may have one too. */
struct level {
    char *folder;
    uint32_t parent; /* NO_LEVEL = none that has quotas */
    int stat_fd;
    struct cpu_quota_stat first, last; /* as they were read at first and last */
    uint64_t read_ns;
    uint64_t grown_ns; /* when held time was counted last; 0 = not yet */
    /* What was counted then: how much of how long. */
    uint64_t held_ns, of_ns;
};

/* Within [since_ns, until_ns) the threads of a group were held for limit_ns. */
struct spell {
    uint32_t level;
    uint64_t since_ns, until_ns, limit_ns;
};

struct session_throttle {
    bool marks; /* the engine does not see it by itself */
    struct cpu_quota_mounts mounts;
    VEC_OF(struct level) levels;
    VEC_OF(uint32_t) level_of_process; /* by process id */
    VEC_OF(struct spell) spells;       /* not marked yet */
    uint64_t next_ns;
};

static uint64_t minimum(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint32_t find_level(const struct session_throttle *throttle, const char *folder)
{
    for (size_t i = 0; i < throttle->levels.count; i++)
        if (strcmp(throttle->levels.items[i].folder, folder) == 0)
            return (uint32_t)i;
    return NO_LEVEL;
}

/* NO_LEVEL: no quota can be set there, or it cannot be read. */
static uint32_t add_level(struct session_throttle *throttle, const char *folder, uint64_t now_ns)
{
    struct level level = {.parent = NO_LEVEL, .read_ns = now_ns};

    if (throttle->levels.count >= MAX_LEVELS)
        return NO_LEVEL;
    level.stat_fd = cpu_quota_open_stat(folder);
    if (level.stat_fd < 0)
        return NO_LEVEL;
    if (cpu_quota_read_stat(level.stat_fd, &level.first) < 0) {
        close(level.stat_fd);
        return NO_LEVEL;
    }
    level.last = level.first;
    level.folder = string_copy(folder);
    VEC_PUSH(&throttle->levels, level);
    return (uint32_t)throttle->levels.count - 1;
}

/* The innermost level of the process's group and of those that it lies in. */
static uint32_t place_process(struct session_throttle *throttle, pid_t pid, uint64_t now_ns)
{
    char *folder;
    size_t top_length;
    uint32_t innermost = NO_LEVEL;
    uint32_t below = NO_LEVEL;

    if (cpu_quota_find_folder(&throttle->mounts, pid, &folder, &top_length) < 0)
        return NO_LEVEL;
    for (;;) {
        char *slash = strrchr(folder, '/');
        uint32_t known = find_level(throttle, folder);
        uint32_t level = known != NO_LEVEL ? known : add_level(throttle, folder, now_ns);

        if (innermost == NO_LEVEL)
            innermost = level;
        if (below != NO_LEVEL && level != NO_LEVEL)
            throttle->levels.items[below].parent = level;
        if (known != NO_LEVEL || slash == NULL || (size_t)(slash - folder) < top_length)
            break;
        if (level != NO_LEVEL)
            below = level;
        *slash = '\0';
    }
    free(folder);
    return innermost;
}

static void place_processes(struct session *session, uint64_t now_ns)
{
    struct session_throttle *throttle = session->throttle;
    uint32_t count = process_table_process_count(session->processes);

    for (uint32_t i = (uint32_t)throttle->level_of_process.count; i < count; i++) {
        uint32_t level = place_process(throttle, process_table_process(session->processes, i)->pid, now_ns);

        VEC_PUSH(&throttle->level_of_process, level);
    }
}

/* The time is summed over CPUs, of which there may be many; it cannot have begun before what was counted last was over. */
static void note_held(struct session_throttle *throttle, uint32_t index, uint64_t held_ns, uint64_t now_ns)
{
    struct level *level = &throttle->levels.items[index];
    uint64_t since_ns = level->read_ns > held_ns ? level->read_ns - held_ns : 0;

    if (since_ns < level->grown_ns)
        since_ns = level->grown_ns;
    level->grown_ns = now_ns;
    level->of_ns = now_ns - since_ns;
    level->held_ns = minimum(held_ns, level->of_ns);
    if (throttle->marks)
        VEC_PUSH(&throttle->spells,
                 ((struct spell){
                     .level = index, .since_ns = since_ns, .until_ns = now_ns, .limit_ns = level->held_ns}));
}

static void read_levels(struct session_throttle *throttle, uint64_t now_ns)
{
    for (size_t i = 0; i < throttle->levels.count; i++) {
        struct level *level = &throttle->levels.items[i];
        struct cpu_quota_stat now;

        if (cpu_quota_read_stat(level->stat_fd, &now) < 0)
            continue; /* the group is gone, with all that was in it */
        if (now.throttled_ns > level->last.throttled_ns)
            note_held(throttle, (uint32_t)i, now.throttled_ns - level->last.throttled_ns, now_ns);
        level->last = now;
        level->read_ns = now_ns;
    }
}

static bool lies_in(const struct session_throttle *throttle, uint32_t level, uint32_t outer)
{
    for (int i = 0; i < MAX_LEVELS && level != NO_LEVEL && level != outer; i++)
        level = throttle->levels.items[level].parent;
    return level == outer;
}

static uint32_t throttled_stack(void *context, uint32_t stack)
{
    return session_throttled_stack(context, stack);
}

static void mark(struct session *session, const struct spell *spell)
{
    const struct span_change change = {
        .since_ns = spell->since_ns,
        .until_ns = spell->until_ns,
        .limit_ns = spell->limit_ns,
        .state = STATE_RUNNABLE,
        .stack = throttled_stack,
        .context = session,
    };
    const struct session_throttle *throttle = session->throttle;
    uint32_t count = process_table_thread_count(session->processes);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t process = process_table_thread(session->processes, i)->process;

        if (process >= throttle->level_of_process.count ||
            !lies_in(throttle, throttle->level_of_process.items[process], spell->level))
            continue;
        if (session->timeline != NULL)
            timeline_change(session->timeline, i, &change);
        else
            calibration_change(session->calibration, i, &change);
    }
}

static void mark_until(struct session *session, uint64_t until_ns)
{
    struct session_throttle *throttle = session->throttle;
    size_t done = 0;

    while (done < throttle->spells.count && throttle->spells.items[done].until_ns <= until_ns)
        mark(session, &throttle->spells.items[done++]);
    for (size_t i = done; i < throttle->spells.count; i++)
        throttle->spells.items[i - done] = throttle->spells.items[i];
    throttle->spells.count -= done;
}

void session_throttle_begin(struct session *session)
{
    struct session_throttle *throttle = memory_zeroed(1, sizeof *throttle);

    session->throttle = throttle;
    throttle->marks = session->timeline != NULL || session->tick.backend == &tick_proc;
    throttle->next_ns = throttle->marks ? session->window_start_ns + read_interval_ns : UINT64_MAX;
    cpu_quota_find_mounts(&throttle->mounts);
    place_processes(session, session->window_start_ns);
}

void session_throttle_turn(struct session *session, uint64_t now_ns)
{
    struct session_throttle *throttle = session->throttle;

    if (now_ns < throttle->next_ns)
        return;
    throttle->next_ns = now_ns + read_interval_ns;
    read_levels(throttle, now_ns);
    place_processes(session, now_ns);
    mark_until(session, now_ns - settle_ns);
}

/* Threads that are held when the window ends will be counted after it. What the last whole period was is taken for this one
 * too, unless that was long ago. */
static void note_unfinished(struct session_throttle *throttle, uint64_t end_ns)
{
    for (size_t i = 0; i < throttle->levels.count; i++) {
        const struct level *level = &throttle->levels.items[i];
        uint64_t open_ns = end_ns - level->grown_ns;

        if (level->grown_ns == 0 || level->grown_ns >= end_ns || open_ns > 2 * level->of_ns)
            continue;
        VEC_PUSH(&throttle->spells,
                 ((struct spell){.level = (uint32_t)i,
                                 .since_ns = level->grown_ns,
                                 .until_ns = end_ns,
                                 .limit_ns = (uint64_t)((double)open_ns * (double)level->held_ns /
                                                        (double)level->of_ns)}));
    }
}

/* The level that held the target up most; where none did, the innermost of the first process that has a quota. */
static void fill_profile(struct session *session)
{
    const struct session_throttle *throttle = session->throttle;
    struct profile_quota *quota = &session->profile->quota;

    for (size_t i = 0; i < throttle->levels.count; i++) {
        const struct level *level = &throttle->levels.items[i];
        uint64_t held_ns = level->last.throttled_ns - level->first.throttled_ns;
        struct cpu_quota_limit limit = {0};

        cpu_quota_read_limit(level->folder, &limit);
        if ((limit.quota_ns == 0 && held_ns == 0) ||
            ((quota->quota_ns != 0 || quota->throttled_ns != 0) && held_ns <= quota->throttled_ns))
            continue;
        *quota = (struct profile_quota){
            .periods = level->last.periods - level->first.periods,
            .throttled_periods = level->last.throttled_periods - level->first.throttled_periods,
            .throttled_ns = held_ns,
            .quota_ns = limit.quota_ns,
            .period_ns = limit.quota_ns != 0 ? limit.period_ns : 0,
        };
    }
}

void session_throttle_end(struct session *session)
{
    struct session_throttle *throttle = session->throttle;

    read_levels(throttle, session->window_end_ns);
    if (throttle->marks) {
        place_processes(session, session->window_end_ns);
        note_unfinished(throttle, session->window_end_ns);
        mark_until(session, UINT64_MAX);
    }
    fill_profile(session);
}

void session_throttle_close(struct session *session)
{
    struct session_throttle *throttle = session->throttle;

    if (throttle == NULL)
        return;
    for (size_t i = 0; i < throttle->levels.count; i++) {
        close(throttle->levels.items[i].stat_fd);
        free(throttle->levels.items[i].folder);
    }
    free(throttle->levels.items);
    free(throttle->level_of_process.items);
    free(throttle->spells.items);
    cpu_quota_free_mounts(&throttle->mounts);
    free(throttle);
    session->throttle = NULL;
}
