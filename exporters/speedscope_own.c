#include "exporters/speedscope_own.h"

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/memory.h"

/* Root first; the depth is what the walk has counted. */
static void write_stack(struct json_writer *json, const struct profile *profile, uint32_t stack)
{
    uint32_t depth = stack_table_get(profile->stacks, stack).depth;
    AUTO_FREE uint32_t *frames = memory_zeroed(depth, sizeof *frames);

    for (uint32_t i = depth; i-- > 0;) {
        struct stack_node node = stack_table_get(profile->stacks, stack);

        frames[i] = node.frame;
        stack = node.parent;
    }
    json_begin_array(json);
    for (uint32_t i = 0; i < depth; i++)
        json_uint(json, frames[i]);
    json_end_array(json);
}

static void write_threads(struct json_writer *json, const struct profile *profile)
{
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        const struct ledger *ledger = &thread->ledger;

        json_line(json);
        json_begin_object(json);
        json_key_uint(json, "process", thread->process);
        json_key(json, "tid");
        json_int(json, thread->tid);
        json_key_string(json, "name", string_table_get(profile->strings, thread->name));
        json_key(json, "main");
        json_bool(json, thread->is_main);
        json_key_uint(json, "beginNs", thread->begin_ns);
        json_key_uint(json, "endNs", thread->end_ns);
        json_key_uint(json, "lifetimeNs", ledger->lifetime_ns);
        json_key(json, "timeNs");
        json_begin_array(json);
        for (int state = 0; state < STATE_COUNT; state++)
            json_uint(json, ledger->time_ns[state]);
        json_end_array(json);
        json_key_uint(json, "unsampledNs", ledger->unsampled_ns);
        json_key_uint(json, "lostNs", ledger->lost_ns);
        if (ledger->has_kernel_counters) {
            json_key_uint(json, "kernelOnCpuNs", ledger->kernel_on_cpu_ns);
            json_key_uint(json, "kernelRunnableNs", ledger->kernel_runnable_ns);
        }
        json_end_object(json);
    }
}

static void write_wait_lengths(struct json_writer *json, const struct profile_looks *looks)
{
    json_key(json, "byWaitLength");
    json_begin_array(json);
    for (size_t i = 0; i < WAIT_LENGTH_CLASSES; i++) {
        json_begin_object(json);
        if (wait_length_below_ns(i) != UINT64_MAX)
            json_key_uint(json, "belowNs", wait_length_below_ns(i));
        json_key_uint(json, "stacks", looks->by_wait_length[i].stacks);
        json_key_uint(json, "lost", looks->by_wait_length[i].lost);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_looks(struct json_writer *json, const struct profile_looks *looks)
{
    if (looks->passes == 0)
        return;
    json_key(json, "looks");
    json_begin_object(json);
    json_key_uint(json, "passes", looks->passes);
    json_key_uint(json, "stacksTaken", looks->stacks_taken);
    json_key_uint(json, "stacksLeftOut", looks->stacks_left_out);
    json_key_uint(json, "stacksRaced", looks->stacks_raced);
    json_key_uint(json, "stacksRecalled", looks->stacks_recalled);
    json_key_uint(json, "stacksDeep", looks->stacks_deep);
    json_key_uint(json, "deepFailed", looks->deep_failed);
    json_key_uint(json, "deepRecalled", looks->deep_recalled);
    write_wait_lengths(json, looks);
    json_end_object(json);
}

static void write_quota(struct json_writer *json, const struct profile_quota *quota)
{
    if (quota->quota_ns == 0 && quota->periods == 0)
        return;
    json_key(json, "cpuQuota");
    json_begin_object(json);
    json_key_uint(json, "periods", quota->periods);
    json_key_uint(json, "throttledPeriods", quota->throttled_periods);
    json_key_uint(json, "throttledNs", quota->throttled_ns);
    json_key_uint(json, "quotaNs", quota->quota_ns);
    json_key_uint(json, "periodNs", quota->period_ns);
    json_end_object(json);
}

static void write_meta(struct json_writer *json, const struct profile_meta *meta,
                       const struct profile_loss *loss)
{
    /* Split: nanoseconds since 1970 are more than a double holds. Floored, so that the second part is never
     * negative. */
    int64_t nanoseconds = meta->start_unix_ns % (int64_t)NS_PER_S;
    int64_t seconds = meta->start_unix_ns / (int64_t)NS_PER_S;

    if (nanoseconds < 0) {
        nanoseconds += (int64_t)NS_PER_S;
        seconds--;
    }
    json_key_uint(json, "version", SPEEDSCOPE_VERSION);
    json_key_string(json, "title", meta->title);
    json_key_string(json, "commandLine", meta->command_line);
    json_key_string(json, "host", meta->host);
    json_key_string(json, "kernel", meta->kernel);
    json_key_string(json, "engines", meta->engines);
    json_key(json, "frequencyHz");
    json_double(json, meta->frequency_hz);
    json_key(json, "startUnixSeconds");
    json_int(json, seconds);
    json_key(json, "startUnixNanoseconds");
    json_int(json, nanoseconds);
    json_key_uint(json, "durationNs", meta->duration_ns);
    if (meta->cpu_count > 0)
        json_key_uint(json, "cpuCount", meta->cpu_count);
    json_key(json, "loss");
    json_begin_object(json);
    json_key_uint(json, "lostEvents", loss->lost_events);
    json_key_uint(json, "unwoundStacks", loss->unwound_stacks);
    json_key_uint(json, "truncatedStacks", loss->truncated_stacks);
    json_key_uint(json, "unpermittedNs", loss->unpermitted_ns);
    json_key_uint(json, "unplacedWaits", loss->unplaced_waits);
    json_end_object(json);
    json_line(json);
}

static void write_listeners(struct json_writer *json, const struct profile *profile)
{
    if (profile->listener_count == 0)
        return;
    json_line(json);
    json_key(json, "listeners");
    json_begin_array(json);
    for (size_t i = 0; i < profile->listener_count; i++) {
        const struct profile_listener *listener = &profile->listeners[i];

        json_line(json);
        json_begin_object(json);
        json_key_string(json, "address", string_table_get(profile->strings, listener->address));
        json_key_uint(json, "looks", listener->looks);
        json_key_uint(json, "queuedLooks", listener->queued_looks);
        json_key_uint(json, "backlog", listener->backlog);
        json_key_uint(json, "queueMax", listener->queue_max);
        json_key_uint(json, "queueSum", listener->queue_sum);
        json_key_uint(json, "connectionsMax", listener->connections_max);
        json_key_uint(json, "connectionsSum", listener->connections_sum);
        json_key_uint(json, "unreadMax", listener->unread_max);
        json_key_uint(json, "unreadSum", listener->unread_sum);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_peers(struct json_writer *json, const struct profile *profile)
{
    if (profile->peer_count == 0)
        return;
    json_line(json);
    json_key(json, "peers");
    json_begin_array(json);
    for (size_t i = 0; i < profile->peer_count; i++) {
        const struct profile_peer *peer = &profile->peers[i];

        json_line(json);
        json_begin_object(json);
        json_key_string(json, "address", string_table_get(profile->strings, peer->address));
        json_key_uint(json, "looks", peer->looks);
        json_key_uint(json, "inFlightMax", peer->in_flight_max);
        json_key_uint(json, "inFlightSum", peer->in_flight_sum);
        json_key_uint(json, "connectionsMax", peer->connections_max);
        json_key_uint(json, "connectionsSum", peer->connections_sum);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_waits(struct json_writer *json, const struct profile *profile)
{
    for (size_t i = 0; i < profile->counted_wait_count; i++) {
        const struct counted_wait *wait = &profile->counted_waits[i];

        json_line(json);
        json_begin_object(json);
        json_key(json, "stack");
        write_stack(json, profile, wait->stack);
        json_key_uint(json, "count", wait->histogram.count);
        json_key_uint(json, "sumNs", wait->histogram.sum_ns);
        json_key(json, "bins");
        json_begin_array(json);
        for (int bin = 0; bin < HISTOGRAM_BINS; bin++)
            json_uint(json, wait->histogram.bins[bin]);
        json_end_array(json);
        json_end_object(json);
    }
}

static void write_locks(struct json_writer *json, const struct profile *profile)
{
    for (size_t i = 0; i < profile->lock_wait_count; i++) {
        const struct lock_wait *wait = &profile->lock_waits[i];

        json_line(json);
        json_begin_object(json);
        json_key(json, "stack");
        write_stack(json, profile, wait->stack);
        json_key_uint(json, "waitedNs", wait->waited_ns);
        if (wait->owner != LOCK_OWNER_UNKNOWN) {
            json_key_uint(json, "owner", wait->owner);
            json_key_string(json, "ownerState", thread_state_name(wait->owner_state));
            json_key(json, "ownerStack");
            write_stack(json, profile, wait->owner_stack);
        }
        json_end_object(json);
    }
}

void speedscope_write_own(struct json_writer *json, const struct profile *profile)
{
    json_begin_object(json);
    write_meta(json, &profile->meta, &profile->loss);
    write_looks(json, &profile->looks);
    write_quota(json, &profile->quota);
    json_key(json, "states");
    json_begin_array(json);
    for (int state = 0; state < STATE_COUNT; state++)
        json_string(json, thread_state_name((enum thread_state)state));
    json_end_array(json);
    json_key(json, "processes");
    json_begin_array(json);
    for (size_t i = 0; i < profile->process_count; i++) {
        json_line(json);
        json_begin_object(json);
        json_key(json, "pid");
        json_int(json, profile->processes[i].pid);
        json_key_string(json, "name", string_table_get(profile->strings, profile->processes[i].name));
        json_end_object(json);
    }
    json_end_array(json);
    json_line(json);
    json_key(json, "threads");
    json_begin_array(json);
    write_threads(json, profile);
    json_end_array(json);
    write_listeners(json, profile);
    write_peers(json, profile);
    if (profile->counted_wait_count > 0) {
        json_line(json);
        json_key(json, "waits");
        json_begin_array(json);
        write_waits(json, profile);
        json_end_array(json);
    }
    if (profile->lock_wait_count > 0) {
        json_line(json);
        json_key(json, "locks");
        json_begin_array(json);
        write_locks(json, profile);
        json_end_array(json);
    }
    json_end_object(json);
}
