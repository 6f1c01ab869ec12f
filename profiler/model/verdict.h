/* What is wrong, told from a profile's own evidence, or nothing where that is thin. Each verdict carries the figures it
 * rests on. Pure.
 *
 *   count = verdict_list(profile, summary, verdicts);
 *   for (size_t i = 0; i < count; i++) ... verdicts[i].kind
 *
 * The thresholds are named where they are used, in verdict.c. */
#ifndef STALLGRAPH_MODEL_VERDICT_H
#define STALLGRAPH_MODEL_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/model/profile.h"
#include "profiler/model/summary.h"

/* In the order in which they are said. */
enum verdict_kind {
    VERDICT_CPU_THROTTLED,   /* a CPU quota holds the target back */
    VERDICT_POOL_STARVED,    /* a pool's threads are all blocked while work piles up and the CPU is free */
    VERDICT_LOCK_SERIALISES, /* threads queue for one lock */
    VERDICT_MANY_CALLS,      /* a request makes many short calls to a database */
    VERDICT_DEPENDENCY,      /* the target waits for one dependency */
    VERDICT_CPU_BOUND,
    VERDICT_POOL_GROWING,
    VERDICT_KIND_COUNT,
};

/* "pool-starved": one word, for machines. */
const char *verdict_kind_name(enum verdict_kind kind);

/* Signs that there is more work than the threads take. */
struct verdict_backlog {
    double queue_mean; /* connections that waited to be accepted, of all listening sockets */
    uint32_t queue_max;
    double unread_mean;      /* accepted connections with bytes that nobody has read */
    double connections_mean; /* accepted connections */
    bool growing;            /* the pool itself grows */
};

/* What does not belong to a kind is SUMMARY_NONE or 0. */
struct verdict {
    enum verdict_kind kind;
    uint32_t pool;     /* index of summary->pools */
    uint32_t wait;     /* index of summary->waits */
    uint32_t function; /* frame */
    double
        window_share; /* starved: of the window in which the pool was held; lock: in which two or more waited */
    double wait_share; /* of the pool's blocked time (starved), else of all time that is not idle */
    double threads;    /* waiting on average; CPU-bound: CPUs used */
    double on_cpu_share,
        runnable_share;             /* starved: of the pool's time; CPU-bound: of the time that is not idle */
    struct verdict_backlog backlog; /* starved */
    size_t threads_at_begin, threads_at_end; /* starved, growing */
    uint64_t calls, requests, mean_ns;       /* many calls */
};

enum { VERDICTS_MAX = 16 };

/* Why there is no verdict at all, or NULL when the evidence can be judged. */
const char *verdict_obstacle(const struct profile *profile, const struct summary *summary);

/* Returns how many, at most VERDICTS_MAX. */
size_t verdict_list(const struct profile *profile, const struct summary *summary,
                    struct verdict ret_verdicts[VERDICTS_MAX]);

#endif
