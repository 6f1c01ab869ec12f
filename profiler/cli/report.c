#include "profiler/cli/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/cli/plain_text.h"

enum { WAITS_SHOWN = 5 };

/* Thread time in all, by state and by leaf frame. */
struct totals {
    uint64_t all_ns;
    uint64_t state_ns[STATE_COUNT];
    uint64_t *wait_ns; /* by frame id; of leaf frames of threads that were not running */
    uint64_t unsampled_ns;
    uint64_t lost_ns;
};

static double seconds(uint64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* 14212 -> "14,212"; text holds the result. */
static const char *with_commas(uint64_t number, char text[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t used = 0;

    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

void report_progress(FILE *out, const struct session_progress *progress)
{
    uint64_t elapsed_s = progress->elapsed_ns / NS_PER_S;
    char samples[32];
    char lost[32];

    fprintf(out, "[%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 "] %s samples, %s lost", elapsed_s / 3600,
            elapsed_s / 60 % 60, elapsed_s % 60, with_commas(progress->samples, samples),
            with_commas(progress->lost, lost));
}

static void add_up(const struct profile *profile, struct totals *ret_totals)
{
    *ret_totals = (struct totals){.wait_ns = memory_zeroed(profile->frame_count, sizeof(uint64_t))};
    for (size_t t = 0; t < profile->thread_count; t++) {
        const struct profile_thread *thread = &profile->threads[t];

        ret_totals->unsampled_ns += thread->ledger.unsampled_ns;
        ret_totals->lost_ns += thread->ledger.lost_ns;
        for (size_t i = 0; i < thread->sample_count; i++) {
            const struct sample *sample = &thread->samples[i];

            ret_totals->all_ns += sample->weight_ns;
            ret_totals->state_ns[sample->state] += sample->weight_ns;
            if (sample->state != STATE_ON_CPU && sample->stack != STACK_EMPTY)
                ret_totals->wait_ns[stack_table_get(profile->stacks, sample->stack).frame] +=
                    sample->weight_ns;
        }
    }
}

static void print_states(FILE *out, const struct totals *totals)
{
    const char *separator = " ";

    fprintf(out, " ");
    for (int state = 0; state < STATE_COUNT; state++) {
        if (totals->state_ns[state] == 0)
            continue;
        fprintf(out, "%s%s %.1f s (%.1f %%)", separator, thread_state_name((enum thread_state)state),
                seconds(totals->state_ns[state]), percent(totals->state_ns[state], totals->all_ns));
        separator = ", ";
    }
    fputc('\n', out);
}

static void print_duration(FILE *out, uint64_t ns)
{
    static const struct {
        uint64_t unit_ns;
        const char *name;
    } units[] = {{NS_PER_S, "s"}, {NS_PER_MS, "ms"}, {NS_PER_US, "us"}, {1, "ns"}};
    size_t unit = 0;

    while (ns < units[unit].unit_ns && unit + 1 < sizeof units / sizeof units[0])
        unit++;
    fprintf(out, "%.3g %s", (double)ns / (double)units[unit].unit_ns, units[unit].name);
}

/* "  12,345 times, mean 3.2 ms, p99 40 ms": of all stacks that end in this frame. */
static void print_counts(FILE *out, const struct profile *profile, size_t frame)
{
    struct histogram all = {0};
    char count[32];

    for (size_t i = 0; i < profile->counted_wait_count; i++)
        if (stack_table_get(profile->stacks, profile->counted_waits[i].stack).frame == frame)
            histogram_add(&all, &profile->counted_waits[i].histogram);
    if (all.count == 0)
        return;
    fprintf(out, "  %s times, mean ", with_commas(all.count, count));
    print_duration(out, histogram_mean_ns(&all));
    fprintf(out, ", p99 ");
    print_duration(out, histogram_percentile_ns(&all, 0.99));
}

static void print_waits(FILE *out, const struct profile *profile, const struct totals *totals)
{
    for (int shown = 0; shown < WAITS_SHOWN; shown++) {
        size_t largest = 0;

        for (size_t i = 1; i < profile->frame_count; i++)
            if (totals->wait_ns[i] > totals->wait_ns[largest])
                largest = i;
        if (profile->frame_count == 0 || totals->wait_ns[largest] == 0)
            return;
        if (shown == 0)
            fprintf(out, "  largest waits (share of all thread time, threads waiting on average):\n");
        fprintf(out, "    %5.1f %%  %6.1f  ", percent(totals->wait_ns[largest], totals->all_ns),
                (double)totals->wait_ns[largest] / (double)profile->meta.duration_ns);
        plain_text_print(out, string_table_get(profile->strings, profile->frames[largest].name));
        print_counts(out, profile, largest);
        fputc('\n', out);
        totals->wait_ns[largest] = 0;
    }
}

/* Short waits are lost first: what is left of them counts for more than it should. */
static void print_lost_by_wait_length(FILE *out, const struct profile_looks *looks)
{
    const char *before = "    stacks lost, by the mean length of the waits: ";

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
    char count[32];

    fprintf(out, "  [truncated]: %.1f %% of stacks (%s) do not reach their start",
            percent(loss->truncated_stacks, loss->unwound_stacks),
            with_commas(loss->truncated_stacks, count));
    if (looks->deep_failed > looks->deep_recalled)
        fprintf(out, "; of %s, the rest above 16 KiB was gone before it was read",
                with_commas(looks->deep_failed - looks->deep_recalled, count));
    fputc('\n', out);
}

static void print_losses(FILE *out, const struct profile *profile, const struct totals *totals)
{
    const struct profile_loss *loss = &profile->loss;
    char count[32];

    if (loss->unplaced_waits > 0)
        fprintf(out, "  %s waits were counted at places that no look saw\n",
                with_commas(loss->unplaced_waits, count));
    if (loss->lost_events > 0)
        fprintf(out, "  the kernel dropped %s records\n", with_commas(loss->lost_events, count));
    if (totals->lost_ns > 0)
        fprintf(out, "  [lost]: %.2f %% of thread time has no stack because %s\n",
                percent(totals->lost_ns, totals->all_ns),
                profile->looks.passes > 0 ? "threads moved while they were looked at" : "records were lost");
    print_lost_by_wait_length(out, &profile->looks);
    if (totals->unsampled_ns > 0)
        fprintf(out, "  [unsampled]: %.2f %% of thread time ran between samples\n",
                percent(totals->unsampled_ns, totals->all_ns));
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
    fprintf(out, "  looked at all threads %.1f times a second of %g, and took %.0f %% of the new stacks",
            rate_hz, profile->meta.frequency_hz, percent(looks->stacks_taken, newly_blocked));
    fprintf(out, "%s\n", looks->stacks_left_out > 0 ? ", to keep within --max-overhead" : "");
}

void report_summary(FILE *out, const struct profile *profile)
{
    struct totals totals;

    add_up(profile, &totals);
    plain_text_print(out, profile->meta.title);
    fprintf(out, ": %.1f s, %zu thread%s, %.1f s of thread time\n", seconds(profile->meta.duration_ns),
            profile->thread_count, profile->thread_count == 1 ? "" : "s", seconds(totals.all_ns));
    if (totals.all_ns == 0)
        fprintf(out, "  nothing was sampled: the profile is empty\n");
    else
        print_states(out, &totals);
    print_waits(out, profile, &totals);
    print_looks(out, profile);
    print_losses(out, profile, &totals);
    free(totals.wait_ns);
}

void report_ledger(FILE *out, const struct profile *profile)
{
    fprintf(out, "%8s %-16s %10s %10s %10s %10s %10s %10s | %10s %10s\n", "tid", "name", "lifetime", "on-cpu",
            "runnable", "blocked", "stopped", "unknown", "k:on-cpu", "k:runnable");
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        const struct ledger *ledger = &thread->ledger;

        fprintf(out, "%8d ", thread->tid);
        plain_text_print_padded(out, string_table_get(profile->strings, thread->name), 16);
        fprintf(out, " %10.6f %10.6f %10.6f %10.6f %10.6f %10.6f | ", seconds(ledger->lifetime_ns),
                seconds(ledger->time_ns[STATE_ON_CPU]), seconds(ledger->time_ns[STATE_RUNNABLE]),
                seconds(ledger->time_ns[STATE_BLOCKED] + ledger->time_ns[STATE_IDLE]),
                seconds(ledger->time_ns[STATE_STOPPED]), seconds(ledger->time_ns[STATE_UNKNOWN]));
        if (ledger->has_kernel_counters)
            fprintf(out, "%10.6f %10.6f\n", seconds(ledger->kernel_on_cpu_ns),
                    seconds(ledger->kernel_runnable_ns));
        else
            fprintf(out, "%10s %10s\n", "-", "-");
    }
}

double report_loss_percent(const struct profile *profile)
{
    struct totals totals;

    add_up(profile, &totals);
    free(totals.wait_ns);
    return percent(totals.unsampled_ns + totals.lost_ns, totals.all_ns);
}
