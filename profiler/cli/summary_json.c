#include "profiler/cli/summary_json.h"

#include "exporters/json_writer.h"
#include "profiler/model/summary.h"
#include "profiler/model/verdict.h"

enum { SUMMARY_VERSION = 1 };

struct page {
    struct json_writer json;
    const struct profile *profile;
    const struct summary *summary;
};

static void number(struct page *page, const char *key, double value)
{
    json_key(&page->json, key);
    json_double(&page->json, value);
}

static void text(struct page *page, const char *key, const char *value)
{
    if (value[0] != '\0')
        json_key_string(&page->json, key, value);
}

static void frame(struct page *page, const char *key, uint32_t id)
{
    text(page, key, summary_frame_name(page->profile, id));
}

static void index_of(struct page *page, const char *key, uint32_t index)
{
    if (index != SUMMARY_NONE)
        json_key_uint(&page->json, key, index);
}

static double mean(uint64_t sum, uint64_t count)
{
    return count > 0 ? (double)sum / (double)count : 0;
}

static void begin_list(struct page *page, const char *key)
{
    json_line(&page->json);
    json_key(&page->json, key);
    json_begin_array(&page->json);
}

static void begin_item(struct page *page)
{
    json_line(&page->json);
    json_begin_object(&page->json);
}

static void write_times(struct page *page, const uint64_t time_ns[STATE_COUNT])
{
    json_key(&page->json, "timeNs");
    json_begin_object(&page->json);
    for (int state = 0; state < STATE_COUNT; state++)
        json_key_uint(&page->json, thread_state_name((enum thread_state)state), time_ns[state]);
    json_end_object(&page->json);
}

static void write_backlog(struct page *page, const struct verdict *verdict)
{
    const struct verdict_backlog *backlog = &verdict->backlog;

    json_key(&page->json, "backlog");
    json_begin_object(&page->json);
    number(page, "queueMean", backlog->queue_mean);
    json_key_uint(&page->json, "queueMax", backlog->queue_max);
    number(page, "unreadMean", backlog->unread_mean);
    number(page, "connectionsMean", backlog->connections_mean);
    json_key(&page->json, "growing");
    json_bool(&page->json, backlog->growing);
    json_end_object(&page->json);
}

static void write_size(struct page *page, const struct verdict *verdict)
{
    json_key_uint(&page->json, "threadsAtBegin", verdict->threads_at_begin);
    json_key_uint(&page->json, "threadsAtEnd", verdict->threads_at_end);
}

static void write_figures(struct page *page, const struct verdict *verdict)
{
    switch (verdict->kind) {
    case VERDICT_POOL_STARVED:
        number(page, "windowShare", verdict->window_share);
        number(page, "waitShare", verdict->wait_share);
        number(page, "threads", verdict->threads);
        number(page, "onCpuShare", verdict->on_cpu_share);
        number(page, "runnableShare", verdict->runnable_share);
        write_size(page, verdict);
        write_backlog(page, verdict);
        break;
    case VERDICT_LOCK_SERIALISES:
        number(page, "windowShare", verdict->window_share);
        number(page, "waitShare", verdict->wait_share);
        number(page, "threads", verdict->threads);
        break;
    case VERDICT_MANY_CALLS:
        json_key_uint(&page->json, "calls", verdict->calls);
        json_key_uint(&page->json, "requests", verdict->requests);
        json_key_uint(&page->json, "meanNs", verdict->mean_ns);
        number(page, "waitShare", verdict->wait_share);
        break;
    case VERDICT_CPU_THROTTLED:
    case VERDICT_DEPENDENCY:
        number(page, "waitShare", verdict->wait_share);
        number(page, "threads", verdict->threads);
        break;
    case VERDICT_CPU_BOUND:
        number(page, "cpusUsed", verdict->threads);
        number(page, "onCpuShare", verdict->on_cpu_share);
        number(page, "runnableShare", verdict->runnable_share);
        break;
    case VERDICT_POOL_GROWING:
        write_size(page, verdict);
        break;
    case VERDICT_KIND_COUNT:
        break;
    }
}

static void write_verdicts(struct page *page)
{
    struct verdict verdicts[VERDICTS_MAX];
    size_t count = verdict_list(page->profile, page->summary, verdicts);
    const char *obstacle = verdict_obstacle(page->profile, page->summary);

    begin_list(page, "verdicts");
    for (size_t i = 0; i < count; i++) {
        begin_item(page);
        json_key_string(&page->json, "kind", verdict_kind_name(verdicts[i].kind));
        index_of(page, "pool", verdicts[i].pool);
        index_of(page, "wait", verdicts[i].wait);
        if (verdicts[i].pool != SUMMARY_NONE)
            text(page, "poolName", page->summary->pools[verdicts[i].pool].name);
        if (verdicts[i].wait != SUMMARY_NONE)
            frame(page, "waitText", page->summary->waits[verdicts[i].wait].frame);
        frame(page, "function", verdicts[i].function);
        write_figures(page, &verdicts[i]);
        json_end_object(&page->json);
    }
    json_end_array(&page->json);
    if (obstacle != NULL)
        json_key_string(&page->json, "noVerdictBecause", obstacle);
}

static void write_waits(struct page *page)
{
    begin_list(page, "waits");
    for (size_t i = 0; i < page->summary->wait_count; i++) {
        const struct summary_wait *wait = &page->summary->waits[i];

        begin_item(page);
        frame(page, "wait", wait->frame);
        json_key_string(&page->json, "kind", wait_kind_name(page->profile->frames[wait->frame].wait));
        json_key_uint(&page->json, "blockedNs", wait->blocked_ns);
        json_key_uint(&page->json, "idleNs", wait->idle_ns);
        number(page, "threads", mean(wait->blocked_ns, page->summary->window_ns));
        frame(page, "function", wait->function);
        if (wait->function != SUMMARY_NONE)
            json_key_uint(&page->json, "functionNs", wait->function_ns);
        if (wait->counts.count > 0) {
            json_key_uint(&page->json, "count", wait->counts.count);
            json_key_uint(&page->json, "meanNs", histogram_mean_ns(&wait->counts));
            json_key_uint(&page->json, "p99Ns", histogram_percentile_ns(&wait->counts, 0.99));
        }
        json_end_object(&page->json);
    }
    json_end_array(&page->json);
}

static void write_locks(struct page *page)
{
    begin_list(page, "locks");
    for (size_t i = 0; i < page->summary->lock_count; i++) {
        const struct lock_summary *lock = &page->summary->locks[i];

        begin_item(page);
        frame(page, "lock", lock->frame);
        json_key_uint(&page->json, "waitedNs", lock->waited_ns);
        json_key_uint(&page->json, "unknownNs", lock->unknown_ns);
        if (lock->owner_ns > 0) {
            json_key_uint(&page->json, "ownerNs", lock->owner_ns);
            json_key_string(&page->json, "ownerState", thread_state_name(lock->owner_state));
            frame(page, "ownerIn", lock->owner_leaf);
            frame(page, "ownerFunction", lock->owner_function);
            text(page, "ownerName",
                 string_table_get(page->profile->strings, page->profile->threads[lock->owner].name));
            json_key(&page->json, "ownerTid");
            json_int(&page->json, page->profile->threads[lock->owner].tid);
        }
        json_end_object(&page->json);
    }
    json_end_array(&page->json);
}

static void write_quota(struct page *page)
{
    const struct profile_quota *quota = &page->profile->quota;

    if (quota->periods == 0)
        return;
    json_line(&page->json);
    json_key(&page->json, "cpuQuota");
    json_begin_object(&page->json);
    json_key_uint(&page->json, "periods", quota->periods);
    json_key_uint(&page->json, "throttledPeriods", quota->throttled_periods);
    json_key_uint(&page->json, "throttledNs", quota->throttled_ns);
    json_key_uint(&page->json, "quotaNs", quota->quota_ns);
    json_key_uint(&page->json, "periodNs", quota->period_ns);
    json_end_object(&page->json);
}

static void write_pools(struct page *page)
{
    begin_list(page, "pools");
    for (size_t i = 0; i < page->summary->pool_count; i++) {
        const struct summary_pool *pool = &page->summary->pools[i];

        begin_item(page);
        text(page, "process", string_table_get(page->profile->strings, pool->process));
        text(page, "name", pool->name);
        json_key(&page->json, "main");
        json_bool(&page->json, pool->is_main);
        frame(page, "start", pool->start);
        json_key_uint(&page->json, "threads", pool->threads);
        json_key_uint(&page->json, "atBegin", pool->at_begin);
        json_key_uint(&page->json, "atEnd", pool->at_end);
        json_key_uint(&page->json, "heldNs", pool->held_ns);
        write_times(page, pool->time_ns);
        index_of(page, "wait", pool->wait);
        frame(page, "function", pool->function);
        json_end_object(&page->json);
    }
    json_end_array(&page->json);
}

static void write_sockets(struct page *page)
{
    const struct profile *profile = page->profile;

    begin_list(page, "listeners");
    for (size_t i = 0; i < profile->listener_count; i++) {
        const struct profile_listener *listener = &profile->listeners[i];

        begin_item(page);
        text(page, "address", string_table_get(profile->strings, listener->address));
        json_key_uint(&page->json, "looks", listener->looks);
        json_key_uint(&page->json, "backlog", listener->backlog);
        number(page, "queueMean", mean(listener->queue_sum, listener->looks));
        json_key_uint(&page->json, "queueMax", listener->queue_max);
        number(page, "connectionsMean", mean(listener->connections_sum, listener->looks));
        json_key_uint(&page->json, "connectionsMax", listener->connections_max);
        number(page, "unreadMean", mean(listener->unread_sum, listener->looks));
        json_key_uint(&page->json, "unreadMax", listener->unread_max);
        json_end_object(&page->json);
    }
    json_end_array(&page->json);
    begin_list(page, "peers");
    for (size_t i = 0; i < profile->peer_count; i++) {
        const struct profile_peer *peer = &profile->peers[i];

        begin_item(page);
        text(page, "address", string_table_get(profile->strings, peer->address));
        json_key_uint(&page->json, "looks", peer->looks);
        number(page, "inFlightMean", mean(peer->in_flight_sum, peer->looks));
        json_key_uint(&page->json, "inFlightMax", peer->in_flight_max);
        number(page, "connectionsMean", mean(peer->connections_sum, peer->looks));
        json_end_object(&page->json);
    }
    json_end_array(&page->json);
}

static void write_loss(struct page *page)
{
    const struct profile_loss *loss = &page->profile->loss;

    json_line(&page->json);
    json_key(&page->json, "loss");
    json_begin_object(&page->json);
    json_key_uint(&page->json, "lostNs", page->summary->lost_ns);
    json_key_uint(&page->json, "unsampledNs", page->summary->unsampled_ns);
    json_key_uint(&page->json, "lostEvents", loss->lost_events);
    json_key_uint(&page->json, "truncatedStacks", loss->truncated_stacks);
    json_key_uint(&page->json, "unwoundStacks", loss->unwound_stacks);
    json_key_uint(&page->json, "unpermittedNs", loss->unpermitted_ns);
    json_key_uint(&page->json, "unplacedWaits", loss->unplaced_waits);
    json_end_object(&page->json);
}

void summary_json_print(FILE *out, const struct profile *profile)
{
    struct summary *summary = summary_create(profile);
    struct page page = {.json = {.out = out}, .profile = profile, .summary = summary};

    json_begin_object(&page.json);
    json_key_uint(&page.json, "version", SUMMARY_VERSION);
    json_key_string(&page.json, "title", profile->meta.title);
    json_key_uint(&page.json, "durationNs", summary->window_ns);
    json_key_uint(&page.json, "threads", profile->thread_count);
    json_key_uint(&page.json, "threadTimeNs", summary->all_ns);
    write_times(&page, summary->state_ns);
    write_verdicts(&page);
    write_waits(&page);
    write_locks(&page);
    write_pools(&page);
    write_sockets(&page);
    write_quota(&page);
    write_loss(&page);
    json_end_object(&page.json);
    fputc('\n', out);
    summary_destroy(summary);
}
