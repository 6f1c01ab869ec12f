#include "profiler/cli/verdict_text.h"

#include "exporters/human.h"
#include "profiler/base/clock.h"
#include "profiler/cli/plain_text.h"

enum { VERDICTS_SHOWN = 3 };

struct page {
    FILE *out;
    const struct profile *profile;
    const struct summary *summary;
};

static double percent(double share)
{
    return 100 * share;
}

static void print_wait(const struct page *page, uint32_t wait)
{
    plain_text_print(page->out, summary_frame_name(page->profile, page->summary->waits[wait].frame));
}

/* " in query_database" */
static void print_function(const struct page *page, const char *before, uint32_t function)
{
    if (function == SUMMARY_NONE)
        return;
    fputs(before, page->out);
    plain_text_print(page->out, summary_frame_name(page->profile, function));
}

static void print_pool(const struct page *page, uint32_t index)
{
    const struct summary_pool *pool = &page->summary->pools[index];

    plain_text_print(page->out, pool->name);
    if (pool->is_main)
        fputs(" [main]", page->out);
    print_function(page, " of ", pool->start);
}

/* "16 threads", "12, then 19 threads" */
static void print_size(FILE *out, const struct verdict *verdict)
{
    if (verdict->threads_at_begin != verdict->threads_at_end)
        fprintf(out, "%zu, later ", verdict->threads_at_begin);
    fprintf(out, "%zu", verdict->threads_at_end);
}

static void print_backlog(FILE *out, const struct verdict *verdict)
{
    const struct verdict_backlog *backlog = &verdict->backlog;
    const char *separator = "";

    fprintf(out, "\n  work piles up: ");
    if (backlog->queue_mean > 0) {
        fprintf(out, "%.1f connections (at most %u) wait to be accepted", backlog->queue_mean,
                backlog->queue_max);
        separator = ", ";
    }
    if (backlog->unread_mean > 0) {
        fprintf(out, "%s%.1f have sent what nobody has read", separator, backlog->unread_mean);
        separator = ", ";
    }
    if (backlog->growing) {
        fprintf(out, "%sthe pool grows", separator);
        separator = ", ";
    }
    if (backlog->connections_mean > 0) {
        fprintf(out, "%s%.0f connections of clients for ", separator, backlog->connections_mean);
        print_size(out, verdict);
        fprintf(out, " threads");
    }
}

static void print_starved(const struct page *page, const struct verdict *verdict)
{
    fprintf(page->out, "the pool ");
    print_pool(page, verdict->pool);
    fprintf(page->out, " is STARVED by ");
    print_wait(page, verdict->wait);
    print_function(page, " in ", verdict->function);
    fprintf(page->out, "\n  at least 90 %% of its ");
    print_size(page->out, verdict);
    fprintf(page->out, " threads are blocked at once for %.0f %% of the window, %.0f %% of it in that wait",
            percent(verdict->window_share), percent(verdict->wait_share));
    fprintf(page->out,
            "\n  the CPU is free: they run for %.1f %% of their time and wait for a CPU for %.1f %%",
            percent(verdict->on_cpu_share), percent(verdict->runnable_share));
    print_backlog(page->out, verdict);
}

static void print_lock(const struct page *page, const struct verdict *verdict)
{
    fprintf(page->out, "one lock SERIALISES the threads: ");
    print_wait(page, verdict->wait);
    print_function(page, " in ", verdict->function);
    fprintf(page->out,
            "\n  two or more wait for it for %.0f %% of the window, %.1f on average; %.0f %% of all time "
            "that is not idle",
            percent(verdict->window_share), verdict->threads, percent(verdict->wait_share));
}

static void print_calls(const struct page *page, const struct verdict *verdict)
{
    double calls = (double)verdict->calls / (double)verdict->requests;

    fprintf(page->out, "MANY short calls to the database in one request: ");
    print_wait(page, verdict->wait);
    print_function(page, " in ", verdict->function);
    fprintf(page->out, "\n  %.1f for each piece of work that is taken (%s of %s), %s each", calls,
            human_count(verdict->calls).text, human_count(verdict->requests).text,
            human_time_us(verdict->mean_ns / NS_PER_US).text);
}

static void print_dependency(const struct page *page, const struct verdict *verdict)
{
    fprintf(page->out, "it WAITS on one dependency: ");
    print_wait(page, verdict->wait);
    print_function(page, " in ", verdict->function);
    fprintf(page->out, "\n  %.0f %% of all time that is not idle, %.1f threads on average",
            percent(verdict->wait_share), verdict->threads);
}

static void print_cpu_bound(const struct page *page, const struct verdict *verdict)
{
    fprintf(page->out, "it is CPU-BOUND");
    print_function(page, ", most in ", verdict->function);
    fprintf(page->out, "\n  it uses %.2f ", verdict->threads);
    if (page->profile->meta.cpu_count > 0)
        fprintf(page->out, "of %u ", page->profile->meta.cpu_count);
    fprintf(page->out, "CPUs; of the time that is not idle %.0f %% on a CPU, %.0f %% waiting for one",
            percent(verdict->on_cpu_share), percent(verdict->runnable_share));
}

static void print_throttled(const struct page *page, const struct verdict *verdict)
{
    fprintf(page->out,
            "its CPU quota THROTTLES it\n  for %.0f %% of all time that is not idle, %.1f threads on average",
            percent(verdict->wait_share), verdict->threads);
}

static void print_growing(const struct page *page, const struct verdict *verdict)
{
    fprintf(page->out, "the pool ");
    print_pool(page, verdict->pool);
    fprintf(page->out, " GROWS: %zu threads at the start, %zu at the end", verdict->threads_at_begin,
            verdict->threads_at_end);
}

static void print_verdict(const struct page *page, const struct verdict *verdict)
{
    fprintf(page->out, "verdict: ");
    switch (verdict->kind) {
    case VERDICT_POOL_STARVED:
        print_starved(page, verdict);
        break;
    case VERDICT_LOCK_SERIALISES:
        print_lock(page, verdict);
        break;
    case VERDICT_MANY_CALLS:
        print_calls(page, verdict);
        break;
    case VERDICT_DEPENDENCY:
        print_dependency(page, verdict);
        break;
    case VERDICT_CPU_BOUND:
        print_cpu_bound(page, verdict);
        break;
    case VERDICT_CPU_THROTTLED:
        print_throttled(page, verdict);
        break;
    case VERDICT_POOL_GROWING:
        print_growing(page, verdict);
        break;
    case VERDICT_KIND_COUNT:
        break;
    }
    fputc('\n', page->out);
}

void verdict_text_print(FILE *out, const struct profile *profile, const struct summary *summary)
{
    const struct page page = {out, profile, summary};
    struct verdict verdicts[VERDICTS_MAX];
    const char *obstacle = verdict_obstacle(profile, summary);
    size_t count = verdict_list(profile, summary, verdicts);

    for (size_t i = 0; i < count && i < VERDICTS_SHOWN; i++)
        print_verdict(&page, &verdicts[i]);
    if (obstacle != NULL)
        fprintf(out, "verdict: none, since %s\n", obstacle);
    else if (count == 0)
        fprintf(out, "verdict: none; nothing stands out\n");
}
