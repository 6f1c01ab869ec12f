/* What a profile says, for somebody who has a minute: thread time by state, what is waited for and by which function,
 * and the pools of threads. Pure; figures only. verdict.h judges them.
 *
 *   struct summary *summary = summary_create(profile);
 *   for (size_t i = 0; i < summary->wait_count; i++) ...      // the largest first
 *   summary_destroy(summary);
 */
#ifndef STALLGRAPH_MODEL_SUMMARY_H
#define STALLGRAPH_MODEL_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/model/lock_summary.h"
#include "profiler/model/profile.h"

enum { SUMMARY_NONE = UINT32_MAX };

/* What is waited for: one leaf frame of threads that were not on a CPU. */
struct summary_wait {
    uint32_t frame;
    uint64_t blocked_ns; /* thread time in it that is not idle; "[runnable]" and the like too */
    uint64_t idle_ns;
    uint64_t crowded_ns;  /* for how long two threads or more were blocked in it at once; of locks only */
    uint32_t function;    /* frame of the function that waits for the most of blocked_ns, or SUMMARY_NONE */
    uint64_t function_ns; /* how much of it */
    struct histogram counts; /* of all its waits, idle ones too; empty without --counts */
};

/* The threads of one program that began in one function and whose names differ only in digits; main threads apart. */
struct summary_pool {
    uint32_t process; /* string id of the profile */
    uint32_t start;   /* frame, or SUMMARY_NONE: no stack reaches it */
    bool is_main;
    char *name;      /* "worker-*" */
    size_t threads;  /* seen in all */
    size_t at_begin; /* alive at the window's start */
    size_t at_middle;
    size_t at_end;
    uint64_t lifetime_ns;
    uint64_t time_ns[STATE_COUNT];
    uint64_t held_ns; /* for how long at least 90 % of its living threads were blocked, not idle, at once */
    uint64_t unnamed_ns; /* blocked time whose wait has no name: lost, or not permitted to be seen */
    uint32_t wait;       /* what it was blocked in most: index of a wait, or SUMMARY_NONE */
    uint32_t function;   /* by which function: frame, or SUMMARY_NONE */
    uint64_t wait_ns;    /* in that wait */
};

/* Blocked or idle time of one pool, in one wait, by one function. */
struct summary_place {
    uint32_t pool;
    uint32_t wait;
    uint32_t function; /* frame, or SUMMARY_NONE */
    uint64_t blocked_ns;
    uint64_t idle_ns;
};

struct summary {
    uint64_t window_ns;
    uint64_t all_ns; /* thread time in all */
    uint64_t state_ns[STATE_COUNT];
    uint64_t lifetime_ns; /* what all_ns should be: less where a part was filtered out */
    uint64_t unsampled_ns;
    uint64_t lost_ns;
    uint64_t throttled_ns;      /* part of the runnable time: held back by a CPU quota */
    struct summary_wait *waits; /* by blocked time, the largest first */
    size_t wait_count;
    struct summary_pool *pools; /* by thread time that is not idle, the largest first */
    size_t pool_count;
    struct summary_place *places;
    size_t place_count;
    struct lock_summary *locks; /* engine `tick` only */
    size_t lock_count;
    uint32_t cpu_function; /* frame of the function with the most time on a CPU, or SUMMARY_NONE */
    uint64_t cpu_function_ns;
};

struct summary *summary_create(const struct profile *profile);
void summary_destroy(struct summary *summary); /* NULL allowed */

/* Thread time that is not idle. */
uint64_t summary_busy_ns(const struct summary *summary);

/* Text of a frame; "" for SUMMARY_NONE. Of the profile's strings: raw bytes. */
const char *summary_frame_name(const struct profile *profile, uint32_t frame);

#endif
