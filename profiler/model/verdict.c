#include "profiler/model/verdict.h"

#include <stdlib.h>

#include "profiler/base/clock.h"
#include "profiler/model/stack_roles.h"
#include "profiler/model/wait_role.h"

/* Thin evidence: too short a window, too little time in it, or too much of it without a stack. */
#define LEAST_WINDOW_NS (200 * NS_PER_MS)
#define LEAST_BUSY_NS (50 * NS_PER_MS)
#define MOST_LOST_SHARE 0.25
/* The states of a thread add up to its life, unless a part was filtered out (--mode), or the file is not ours. */
#define WHOLE_SHARE 0.9

/* Starved: its threads are held for half of the window, and wait for a CPU for next to nothing of their time. */
#define STARVED_WINDOW_SHARE 0.5
#define STARVED_RUNNABLE_SHARE 0.1
#define STARVED_ON_CPU_SHARE 0.25
#define STARVED_UNNAMED_SHARE 0.25
enum { STARVED_LEAST_THREADS = 2 };
#define BACKLOG_QUEUE_MEAN 0.1
#define BACKLOG_UNREAD_MEAN 0.5

#define LOCK_WINDOW_SHARE 0.5
#define LOCK_BUSY_SHARE 0.25

#define DEPENDENCY_BUSY_SHARE 0.5
#define DEPENDENCY_LEAST_THREADS 0.3

/* It uses most of a CPU at least, and does next to nothing else, or has all CPUs, or wants more. */
#define CPU_LEAST_USED 0.7
#define CPU_MACHINE_SHARE 0.8
#define CPU_BUSY_SHARE 0.9
#define CPU_RUNNABLE_SHARE 0.25
/* Or it gets little, since others have the CPUs that it queues for. */
#define CPU_QUEUED_THREADS 1.0
#define CPU_QUEUED_SHARE 0.4

#define THROTTLED_BUSY_SHARE 0.1

#define GROWING_FACTOR 1.2
enum { GROWING_LEAST = 2 };

#define MANY_CALLS_LEAST 10.0 /* a request */
#define MANY_CALLS_MOST_MEAN_NS (10 * NS_PER_MS)
#define MANY_CALLS_BUSY_SHARE 0.2
enum { MANY_CALLS_LEAST_REQUESTS = 5 };

/* The largest. */
enum { POOLS_JUDGED = 16, WAITS_JUDGED = 8 };

struct judge {
    const struct profile *profile;
    const struct summary *summary;
    struct verdict *verdicts;
    size_t count;
    struct verdict spare; /* takes what is more than fits */
};

static const char *const names[VERDICT_KIND_COUNT] = {
    [VERDICT_CPU_THROTTLED] = "cpu-throttled",     [VERDICT_POOL_STARVED] = "pool-starved",
    [VERDICT_LOCK_SERIALISES] = "lock-serialises", [VERDICT_MANY_CALLS] = "many-database-calls",
    [VERDICT_DEPENDENCY] = "waits-on-dependency",  [VERDICT_CPU_BOUND] = "cpu-bound",
    [VERDICT_POOL_GROWING] = "pool-growing",
};

const char *verdict_kind_name(enum verdict_kind kind)
{
    return names[kind];
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

const char *verdict_obstacle(const struct profile *profile, const struct summary *summary)
{
    if (summary->all_ns == 0)
        return "nothing was sampled";
    if (share(summary->all_ns, summary->lifetime_ns) < WHOLE_SHARE)
        return "the profile holds only a part of the threads' time";
    if (summary->window_ns < LEAST_WINDOW_NS)
        return "the window is too short";
    if (share(profile->loss.unpermitted_ns, summary->all_ns) > MOST_LOST_SHARE)
        return "most stacks were not permitted to be seen";
    if (share(summary->lost_ns + summary->unsampled_ns, summary_busy_ns(summary)) > MOST_LOST_SHARE)
        return "too much of the time has no stack";
    return NULL;
}

static struct verdict *add(struct judge *judge, enum verdict_kind kind)
{
    struct verdict *verdict = judge->count < VERDICTS_MAX ? &judge->verdicts[judge->count++] : &judge->spare;

    *verdict =
        (struct verdict){.kind = kind, .pool = SUMMARY_NONE, .wait = SUMMARY_NONE, .function = SUMMARY_NONE};
    return verdict;
}

static double waiting_threads(const struct judge *judge, const struct summary_wait *wait)
{
    return share(wait->blocked_ns, judge->summary->window_ns);
}

static bool is_growing(const struct summary_pool *pool)
{
    return pool->at_begin > 0 && pool->at_end >= pool->at_begin + GROWING_LEAST &&
           (double)pool->at_end >= GROWING_FACTOR * (double)pool->at_begin &&
           pool->at_middle > pool->at_begin && pool->at_end > pool->at_middle;
}

static struct verdict_backlog find_backlog(const struct judge *judge, const struct summary_pool *pool)
{
    struct verdict_backlog backlog = {.growing = is_growing(pool)};

    for (size_t i = 0; i < judge->profile->listener_count; i++) {
        const struct profile_listener *listener = &judge->profile->listeners[i];

        backlog.queue_mean += share(listener->queue_sum, listener->looks);
        backlog.unread_mean += share(listener->unread_sum, listener->looks);
        backlog.connections_mean += share(listener->connections_sum, listener->looks);
        if (listener->queue_max > backlog.queue_max)
            backlog.queue_max = listener->queue_max;
    }
    return backlog;
}

static bool has_backlog(const struct verdict_backlog *backlog, size_t threads)
{
    return backlog->queue_mean >= BACKLOG_QUEUE_MEAN || backlog->unread_mean >= BACKLOG_UNREAD_MEAN ||
           backlog->growing || backlog->connections_mean >= (double)threads;
}

static void judge_pool(struct judge *judge, uint32_t index)
{
    const struct summary_pool *pool = &judge->summary->pools[index];
    uint64_t all_ns = pool->lifetime_ns;
    double window_share = share(pool->held_ns, judge->summary->window_ns);
    struct verdict_backlog backlog = find_backlog(judge, pool);
    size_t threads = pool->at_begin > pool->at_end ? pool->at_begin : pool->at_end;
    struct verdict *verdict;

    if (threads < STARVED_LEAST_THREADS || pool->wait == SUMMARY_NONE ||
        window_share < STARVED_WINDOW_SHARE ||
        share(pool->time_ns[STATE_RUNNABLE], all_ns) > STARVED_RUNNABLE_SHARE ||
        share(pool->time_ns[STATE_ON_CPU], all_ns) > STARVED_ON_CPU_SHARE ||
        share(pool->unnamed_ns, pool->time_ns[STATE_BLOCKED]) > STARVED_UNNAMED_SHARE ||
        judge->profile->frames[judge->summary->waits[pool->wait].frame].kind != FRAME_WAIT ||
        !has_backlog(&backlog, threads))
        return;
    verdict = add(judge, VERDICT_POOL_STARVED);
    verdict->pool = index;
    verdict->wait = pool->wait;
    verdict->function = pool->function;
    verdict->window_share = window_share;
    verdict->wait_share = share(pool->wait_ns, pool->time_ns[STATE_BLOCKED]);
    verdict->threads = share(pool->wait_ns, judge->summary->window_ns);
    verdict->on_cpu_share = share(pool->time_ns[STATE_ON_CPU], all_ns);
    verdict->runnable_share = share(pool->time_ns[STATE_RUNNABLE], all_ns);
    verdict->backlog = backlog;
    verdict->threads_at_begin = pool->at_begin;
    verdict->threads_at_end = pool->at_end;
}

static void judge_growth(struct judge *judge, uint32_t index)
{
    const struct summary_pool *pool = &judge->summary->pools[index];
    struct verdict *verdict;

    if (pool->is_main || !is_growing(pool))
        return;
    verdict = add(judge, VERDICT_POOL_GROWING);
    verdict->pool = index;
    verdict->threads_at_begin = pool->at_begin;
    verdict->threads_at_end = pool->at_end;
}

static bool is_starving(const struct judge *judge, uint32_t wait)
{
    for (size_t i = 0; i < judge->count; i++)
        if (judge->verdicts[i].kind == VERDICT_POOL_STARVED && judge->verdicts[i].wait == wait)
            return true;
    return false;
}

static void fill_wait(const struct judge *judge, struct verdict *verdict, uint32_t index)
{
    const struct summary_wait *wait = &judge->summary->waits[index];

    verdict->wait = index;
    verdict->function = wait->function;
    verdict->wait_share = share(wait->blocked_ns, summary_busy_ns(judge->summary));
    verdict->threads = waiting_threads(judge, wait);
}

static void judge_lock(struct judge *judge, uint32_t index)
{
    const struct summary_wait *wait = &judge->summary->waits[index];
    const char *text = summary_frame_name(judge->profile, wait->frame);
    double window_share = share(wait->crowded_ns, judge->summary->window_ns);
    struct verdict *verdict;

    if (wait_role_of_text(text) != WAIT_ROLE_LOCK || window_share < LOCK_WINDOW_SHARE ||
        share(wait->blocked_ns, summary_busy_ns(judge->summary)) < LOCK_BUSY_SHARE)
        return;
    verdict = add(judge, VERDICT_LOCK_SERIALISES);
    fill_wait(judge, verdict, index);
    verdict->window_share = window_share;
}

static bool is_dependency(const struct judge *judge, uint32_t frame)
{
    return wait_role_of_text(summary_frame_name(judge->profile, frame)) == WAIT_ROLE_OUTBOUND ||
           judge->profile->frames[frame].wait == WAIT_DATABASE;
}

static void judge_dependency(struct judge *judge, uint32_t index)
{
    const struct summary_wait *wait = &judge->summary->waits[index];

    if (!is_dependency(judge, wait->frame) || is_starving(judge, index) ||
        share(wait->blocked_ns, summary_busy_ns(judge->summary)) < DEPENDENCY_BUSY_SHARE ||
        waiting_threads(judge, wait) < DEPENDENCY_LEAST_THREADS)
        return;
    fill_wait(judge, add(judge, VERDICT_DEPENDENCY), index);
}

static bool is_cpu_bound(const struct judge *judge, uint64_t runnable_ns)
{
    const struct summary *summary = judge->summary;
    uint64_t on_cpu_ns = summary->state_ns[STATE_ON_CPU];
    uint64_t busy_ns = summary_busy_ns(summary);
    double used = share(on_cpu_ns, summary->window_ns);
    uint32_t machine = judge->profile->meta.cpu_count;

    if (share(runnable_ns, summary->window_ns) >= CPU_QUEUED_THREADS &&
        share(runnable_ns, busy_ns) >= CPU_QUEUED_SHARE)
        return true;
    return used >= CPU_LEAST_USED && (share(on_cpu_ns + runnable_ns, busy_ns) >= CPU_BUSY_SHARE ||
                                      share(runnable_ns, busy_ns) >= CPU_RUNNABLE_SHARE ||
                                      (machine > 0 && used >= CPU_MACHINE_SHARE * (double)machine));
}

static void judge_cpu(struct judge *judge)
{
    const struct summary *summary = judge->summary;
    uint64_t busy_ns = summary_busy_ns(summary);
    uint64_t runnable_ns = summary->state_ns[STATE_RUNNABLE] - summary->throttled_ns;
    struct verdict *verdict;

    if (!is_cpu_bound(judge, runnable_ns))
        return;
    verdict = add(judge, VERDICT_CPU_BOUND);
    verdict->function = summary->cpu_function;
    verdict->threads = share(summary->state_ns[STATE_ON_CPU], summary->window_ns);
    verdict->on_cpu_share = share(summary->state_ns[STATE_ON_CPU], busy_ns);
    verdict->runnable_share = share(runnable_ns, busy_ns);
}

static void judge_throttling(struct judge *judge)
{
    const struct summary *summary = judge->summary;
    double throttled = share(summary->throttled_ns, summary_busy_ns(summary));
    struct verdict *verdict;

    if (throttled < THROTTLED_BUSY_SHARE)
        return;
    verdict = add(judge, VERDICT_CPU_THROTTLED);
    verdict->wait_share = throttled;
    verdict->threads = share(summary->throttled_ns, summary->window_ns);
}

/* Waits for work, or for a database, of the threads that began in one function: requests taken, and calls made. */
struct call_count {
    uint64_t calls, requests, call_ns;
    uint32_t function; /* makes the most calls */
    uint64_t function_calls;
    uint32_t wait; /* for the most calls; frame */
};

static uint32_t wait_of_frame(const struct summary *summary, uint32_t frame)
{
    for (uint32_t i = 0; i < summary->wait_count; i++)
        if (summary->waits[i].frame == frame)
            return i;
    return SUMMARY_NONE;
}

/* Whether threads wait for work there. */
static bool is_home(const struct summary *summary, uint32_t wait, uint32_t function)
{
    for (size_t i = 0; i < summary->place_count; i++) {
        const struct summary_place *place = &summary->places[i];

        if (place->wait == wait && place->function == function && place->idle_ns > place->blocked_ns)
            return true;
    }
    return false;
}

static struct call_count count_calls(const struct judge *judge, const struct stack_role *roles,
                                     uint32_t start)
{
    const struct profile *profile = judge->profile;
    struct call_count count = {.function = SUMMARY_NONE, .wait = SUMMARY_NONE};

    for (size_t i = 0; i < profile->counted_wait_count; i++) {
        const struct counted_wait *counted = &profile->counted_waits[i];
        const struct stack_role *role = &roles[counted->stack];

        if (role->start != start || role->leaf == STACK_ROLE_NONE)
            continue;
        if (profile->frames[role->leaf].wait == WAIT_DATABASE) {
            count.calls += counted->histogram.count;
            count.call_ns += counted->histogram.sum_ns;
            if (counted->histogram.count > count.function_calls) {
                count.function_calls = counted->histogram.count;
                count.function = role->function;
                count.wait = role->leaf;
            }
        } else if (is_home(judge->summary, wait_of_frame(judge->summary, role->leaf), role->function)) {
            count.requests += counted->histogram.count;
        }
    }
    return count;
}

/* Requests are known where the threads wait for work between them; a pool that never does tells no number. */
static void judge_calls(struct judge *judge, const struct stack_role *roles, uint32_t start)
{
    struct call_count count = count_calls(judge, roles, start);
    uint32_t wait = count.wait != SUMMARY_NONE ? wait_of_frame(judge->summary, count.wait) : SUMMARY_NONE;
    struct verdict *verdict;

    if (wait == SUMMARY_NONE || count.requests < MANY_CALLS_LEAST_REQUESTS ||
        share(count.calls, count.requests) < MANY_CALLS_LEAST ||
        count.call_ns / count.calls > MANY_CALLS_MOST_MEAN_NS ||
        share(judge->summary->waits[wait].blocked_ns, summary_busy_ns(judge->summary)) <
            MANY_CALLS_BUSY_SHARE)
        return;
    verdict = add(judge, VERDICT_MANY_CALLS);
    fill_wait(judge, verdict, wait);
    verdict->function = count.function;
    verdict->calls = count.calls;
    verdict->requests = count.requests;
    verdict->mean_ns = count.call_ns / count.calls;
}

static bool is_first_of_start(const struct summary *summary, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (summary->pools[i].start == summary->pools[index].start)
            return false;
    return true;
}

static void judge_all_calls(struct judge *judge)
{
    struct stack_role *roles;

    if (judge->profile->counted_wait_count == 0)
        return;
    roles = stack_roles_create(judge->profile);
    for (size_t i = 0; i < judge->summary->pool_count && i < POOLS_JUDGED; i++)
        if (judge->summary->pools[i].start != SUMMARY_NONE && is_first_of_start(judge->summary, i))
            judge_calls(judge, roles, judge->summary->pools[i].start);
    free(roles);
}

size_t verdict_list(const struct profile *profile, const struct summary *summary,
                    struct verdict ret_verdicts[VERDICTS_MAX])
{
    struct judge judge = {.profile = profile, .summary = summary, .verdicts = ret_verdicts};

    if (verdict_obstacle(profile, summary) != NULL || summary_busy_ns(summary) < LEAST_BUSY_NS)
        return 0;
    judge_throttling(&judge);
    for (uint32_t i = 0; i < summary->pool_count && i < POOLS_JUDGED; i++)
        judge_pool(&judge, i);
    for (uint32_t i = 0; i < summary->wait_count && i < WAITS_JUDGED; i++)
        judge_lock(&judge, i);
    judge_all_calls(&judge);
    for (uint32_t i = 0; i < summary->wait_count && i < WAITS_JUDGED; i++)
        judge_dependency(&judge, i);
    judge_cpu(&judge);
    for (uint32_t i = 0; i < summary->pool_count && i < POOLS_JUDGED; i++)
        judge_growth(&judge, i);
    return judge.count;
}
