#include "profiler/cli/summary_text.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "exporters/human.h"
#include "profiler/base/clock.h"
#include "profiler/cli/plain_text.h"
#include "profiler/cli/verdict_text.h"
#include "profiler/model/summary.h"

enum { WAITS_SHOWN = 6, POOLS_SHOWN = 6, SOCKETS_SHOWN = 3, LOCKS_SHOWN = 3, POOL_NAME_WIDTH = 32 };

static double seconds(uint64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static double mean(uint64_t sum, uint64_t count)
{
    return count > 0 ? (double)sum / (double)count : 0;
}

static void print_states(FILE *out, const struct summary *summary)
{
    const char *separator = "";

    fprintf(out, "thread time: ");
    for (int state = 0; state < STATE_COUNT; state++) {
        if (summary->state_ns[state] == 0)
            continue;
        fprintf(out, "%s%s %.1f s (%.1f %%)", separator, thread_state_name((enum thread_state)state),
                seconds(summary->state_ns[state]), percent(summary->state_ns[state], summary->all_ns));
        separator = ", ";
    }
    fputc('\n', out);
}

/* "; 12,345 waits, mean 3.2 ms, p99 40 ms" */
static void print_counts(FILE *out, const struct histogram *counts)
{
    if (counts->count == 0)
        return;
    fprintf(out, "; %s waits, mean %s, p99 %s", human_count(counts->count).text,
            human_time_us(histogram_mean_ns(counts) / NS_PER_US).text,
            human_time_us(histogram_percentile_ns(counts, 0.99) / NS_PER_US).text);
}

static void print_wait(FILE *out, const struct profile *profile, const struct summary *summary,
                       const struct summary_wait *wait)
{
    fprintf(out, "  %6.1f %% %7.1f %% %8.1f  ", percent(wait->blocked_ns, summary->all_ns),
            percent(wait->blocked_ns, summary_busy_ns(summary)),
            mean(wait->blocked_ns, profile->meta.duration_ns));
    plain_text_print(out, summary_frame_name(profile, wait->frame));
    if (wait->function != SUMMARY_NONE) {
        fprintf(out, "  in ");
        plain_text_print(out, summary_frame_name(profile, wait->function));
        if (wait->function_ns < wait->blocked_ns - wait->blocked_ns / 20)
            fprintf(out, " (%.0f %%)", percent(wait->function_ns, wait->blocked_ns));
    }
    print_counts(out, &wait->counts);
    fputc('\n', out);
}

static void print_waits(FILE *out, const struct profile *profile, const struct summary *summary)
{
    size_t shown = 0;
    uint64_t rest_ns = 0;

    for (size_t i = 0; i < summary->wait_count && summary->waits[i].blocked_ns > 0; i++) {
        if (shown == 0)
            fprintf(out, "   of all  not idle  threads  waits\n");
        if (shown < WAITS_SHOWN)
            print_wait(out, profile, summary, &summary->waits[i]);
        else
            rest_ns += summary->waits[i].blocked_ns;
        shown++;
    }
    if (shown > WAITS_SHOWN)
        fprintf(out, "  %6.1f %% %7.1f %% %8.1f  %zu others\n", percent(rest_ns, summary->all_ns),
                percent(rest_ns, summary_busy_ns(summary)), mean(rest_ns, profile->meta.duration_ns),
                shown - WAITS_SHOWN);
}

static void print_pool(FILE *out, const struct profile *profile, const struct summary_pool *pool)
{
    uint64_t all_ns = 0;
    size_t length = strlen(pool->name) + (pool->is_main ? strlen(" [main]") : 0);

    for (int state = 0; state < STATE_COUNT; state++)
        all_ns += pool->time_ns[state];
    if (pool->at_begin == pool->at_end && pool->at_end == pool->threads)
        fprintf(out, "  %7zu          ", pool->threads);
    else
        fprintf(out, "  %7zu -> %-5zu ", pool->at_begin, pool->at_end);
    fprintf(out, "%6.1f %% %6.1f %% %6.1f %% %6.1f %%  ", percent(pool->time_ns[STATE_ON_CPU], all_ns),
            percent(pool->time_ns[STATE_RUNNABLE], all_ns), percent(pool->time_ns[STATE_BLOCKED], all_ns),
            percent(pool->time_ns[STATE_IDLE], all_ns));
    plain_text_print(out, pool->name);
    fputs(pool->is_main ? " [main]" : "", out);
    if (pool->start == SUMMARY_NONE) {
        fputc('\n', out);
        return;
    }
    fprintf(out, "%*s ", length < POOL_NAME_WIDTH / 2 ? (int)(POOL_NAME_WIDTH / 2 - length) : 0, "");
    plain_text_print(out, summary_frame_name(profile, pool->start));
    fputc('\n', out);
}

static void print_pools(FILE *out, const struct profile *profile, const struct summary *summary)
{
    if (summary->pool_count > 0)
        fprintf(out, "  threads            on-cpu runnable  blocked     idle  pool\n");
    for (size_t i = 0; i < summary->pool_count && i < POOLS_SHOWN; i++)
        print_pool(out, profile, &summary->pools[i]);
    if (summary->pool_count > POOLS_SHOWN)
        fprintf(out, "  and %zu more\n", summary->pool_count - POOLS_SHOWN);
}

/* "held:      [wait: lock cache_mu] waited for 44.0 s; 93 % while its holder was on-cpu in compute (worker-3)" */
static void print_lock(FILE *out, const struct profile *profile, const struct lock_summary *lock)
{
    fprintf(out, "held:      ");
    plain_text_print(out, summary_frame_name(profile, lock->frame));
    fprintf(out, " waited for %.1f s", seconds(lock->waited_ns));
    if (lock->owner_ns > 0) {
        fprintf(out, "; %.0f %% while its holder was %s", percent(lock->owner_ns, lock->waited_ns),
                thread_state_name(lock->owner_state));
        if (lock->owner_state != STATE_ON_CPU && lock->owner_leaf != STACK_ROLE_NONE) {
            fputc(' ', out);
            plain_text_print(out, summary_frame_name(profile, lock->owner_leaf));
        }
        if (lock->owner_function != STACK_ROLE_NONE) {
            fprintf(out, " in ");
            plain_text_print(out, summary_frame_name(profile, lock->owner_function));
        }
        fprintf(out, " (");
        plain_text_print(out, string_table_get(profile->strings, profile->threads[lock->owner].name));
        fprintf(out, ")");
    }
    if (lock->unknown_ns > 0)
        fprintf(out, "; %.0f %% not known", percent(lock->unknown_ns, lock->waited_ns));
    fputc('\n', out);
}

static void print_locks(FILE *out, const struct profile *profile, const struct summary *summary)
{
    for (size_t i = 0; i < summary->lock_count && i < LOCKS_SHOWN; i++)
        if (summary->locks[i].waited_ns > summary_busy_ns(summary) / 100)
            print_lock(out, profile, &summary->locks[i]);
}

static void print_quota(FILE *out, const struct profile *profile)
{
    const struct profile_quota *quota = &profile->quota;

    if (quota->periods == 0)
        return;
    fprintf(out, "CPU quota: ");
    if (quota->period_ns > 0)
        fprintf(out, "%.2f CPUs; ", (double)quota->quota_ns / (double)quota->period_ns);
    fprintf(out, "throttled in %.0f %% of the periods, for %.1f s (summed over CPUs)\n",
            percent(quota->throttled_periods, quota->periods), seconds(quota->throttled_ns));
}

/* The wait frame that speaks of the same far end knows who serves it: "[wait: tcp 10.0.0.5:5432 postgresql]". NULL: no
 * thread was seen to wait for it. */
static const char *service_of_peer(const struct profile *profile, const char *address)
{
    static const char opening[] = "[wait: ";
    size_t length = strlen(address);

    for (size_t i = 0; i < profile->frame_count; i++) {
        const char *text = summary_frame_name(profile, (uint32_t)i);
        const char *rest = text + sizeof opening - 1 + length;

        if (profile->frames[i].kind != FRAME_WAIT || strncmp(text, opening, sizeof opening - 1) != 0 ||
            strncmp(text + sizeof opening - 1, address, length) != 0)
            continue;
        if (*rest == ' ' || *rest == ']' || *rest == ',')
            return *rest == ' ' ? rest + 1 : "";
    }
    return NULL;
}

static void print_sockets(FILE *out, const struct profile *profile)
{
    for (size_t i = 0; i < profile->listener_count && i < SOCKETS_SHOWN; i++) {
        const struct profile_listener *listener = &profile->listeners[i];

        fprintf(out, "listening: ");
        plain_text_print(out, string_table_get(profile->strings, listener->address));
        fprintf(out, ": %.0f connections, %.1f of them unread; %.1f (at most %u of %u) not accepted yet\n",
                mean(listener->connections_sum, listener->looks), mean(listener->unread_sum, listener->looks),
                mean(listener->queue_sum, listener->looks), listener->queue_max, listener->backlog);
    }
    for (size_t i = 0; i < profile->peer_count && i < SOCKETS_SHOWN; i++) {
        const struct profile_peer *peer = &profile->peers[i];
        const char *address = string_table_get(profile->strings, peer->address);
        const char *service = service_of_peer(profile, address);

        if (peer->in_flight_sum == 0)
            continue;
        fprintf(out, "in flight: %.1f requests (at most %u) to ", mean(peer->in_flight_sum, peer->looks),
                peer->in_flight_max);
        plain_text_print(out, address);
        if (service != NULL && service[0] != '\0') {
            fputc(' ', out);
            for (size_t k = 0; k < strcspn(service, "],"); k++)
                fputc((unsigned char)service[k] < ' ' ? '?' : service[k], out);
        }
        fprintf(out, ", by %.0f connections%s\n", mean(peer->connections_sum, peer->looks),
                service == NULL ? "; no thread waits for them" : "");
    }
}

/* Short waits are lost first: what is left of them counts for more than it should. */
static void print_lost_by_wait_length(FILE *out, const struct profile_looks *looks)
{
    const char *before = "  stacks lost, by the mean length of the waits: ";

    for (size_t i = 0; i < WAIT_LENGTH_CLASSES; i++) {
        const struct wait_length_looks *of = &looks->by_wait_length[i];
        bool is_last = i + 1 == WAIT_LENGTH_CLASSES;

        if (of->lost == 0)
            continue;
        fprintf(out, "%s%.1f %% %s %g ms", before, percent(of->lost, of->stacks), is_last ? "from" : "below",
                (double)wait_length_below_ns(is_last ? i - 1 : i) / NS_PER_MS);
        before = ", ";
    }
    if (before[0] == ',')
        fputc('\n', out);
}

static void print_truncated(FILE *out, const struct profile *profile)
{
    const struct profile_loss *loss = &profile->loss;
    const struct profile_looks *looks = &profile->looks;

    fprintf(out, "[truncated]: %.1f %% of stacks (%s) do not reach their start",
            percent(loss->truncated_stacks, loss->unwound_stacks), human_count(loss->truncated_stacks).text);
    if (looks->deep_failed > looks->deep_recalled)
        fprintf(out, "; of %s, the rest above 16 KiB was gone before it was read",
                human_count(looks->deep_failed - looks->deep_recalled).text);
    fputc('\n', out);
}

static void print_losses(FILE *out, const struct profile *profile, const struct summary *summary)
{
    const struct profile_loss *loss = &profile->loss;

    if (loss->unplaced_waits > 0)
        fprintf(out, "%s waits were counted at places that no look saw\n",
                human_count(loss->unplaced_waits).text);
    if (loss->lost_events > 0)
        fprintf(out, "the kernel dropped %s records\n", human_count(loss->lost_events).text);
    if (summary->lost_ns > 0)
        fprintf(out, "[lost]: %.2f %% of thread time has no stack because %s\n",
                percent(summary->lost_ns, summary->all_ns),
                profile->looks.passes > 0 ? "threads moved while they were looked at" : "records were lost");
    print_lost_by_wait_length(out, &profile->looks);
    if (summary->unsampled_ns > 0)
        fprintf(out, "[unsampled]: %.2f %% of thread time ran between samples\n",
                percent(summary->unsampled_ns, summary->all_ns));
    if (loss->truncated_stacks > 0)
        print_truncated(out, profile);
}

/* Said where it is not what was asked for. */
static void print_looks(FILE *out, const struct profile *profile)
{
    const struct profile_looks *looks = &profile->looks;
    uint64_t newly_blocked = looks->stacks_taken + looks->stacks_left_out + looks->stacks_raced;
    double rate_hz = (double)looks->passes / fmax(seconds(profile->meta.duration_ns), 0.001);

    if (looks->passes == 0 || (looks->stacks_left_out == 0 && rate_hz > 0.9 * profile->meta.frequency_hz))
        return;
    fprintf(out, "looked at all threads %.1f times a second of %g, and took %.0f %% of the new stacks",
            rate_hz, profile->meta.frequency_hz, percent(looks->stacks_taken, newly_blocked));
    fprintf(out, "%s\n", looks->stacks_left_out > 0 ? ", to keep within --max-overhead" : "");
}

void summary_text_print(FILE *out, const struct profile *profile)
{
    struct summary *summary = summary_create(profile);

    plain_text_print(out, profile->meta.title);
    fprintf(out, ": %.1f s, %zu thread%s, %.1f s of thread time\n", seconds(profile->meta.duration_ns),
            profile->thread_count, profile->thread_count == 1 ? "" : "s", seconds(summary->all_ns));
    verdict_text_print(out, profile, summary);
    if (summary->all_ns > 0)
        print_states(out, summary);
    print_waits(out, profile, summary);
    print_locks(out, profile, summary);
    print_pools(out, profile, summary);
    print_sockets(out, profile);
    print_quota(out, profile);
    print_looks(out, profile);
    print_losses(out, profile, summary);
    summary_destroy(summary);
}
