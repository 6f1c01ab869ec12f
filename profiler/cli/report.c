#include "profiler/cli/report.h"

#include <inttypes.h>

#include "profiler/base/clock.h"
#include "profiler/cli/plain_text.h"

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

/* Some samples' worth: in a short profile, or one of threads that hardly run, it says nothing. */
enum { LEAST_LOSS_MS = 100 };

double report_loss_percent(const struct profile *profile)
{
    uint64_t all_ns = 0;
    uint64_t loss_ns = 0;

    for (size_t t = 0; t < profile->thread_count; t++) {
        const struct profile_thread *thread = &profile->threads[t];

        loss_ns += thread->ledger.unsampled_ns + thread->ledger.lost_ns;
        for (size_t i = 0; i < thread->sample_count; i++)
            all_ns += thread->samples[i].weight_ns;
    }
    return loss_ns < LEAST_LOSS_MS * NS_PER_MS ? 0 : percent(loss_ns, all_ns);
}
