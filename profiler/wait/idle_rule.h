/* Whether a thread that waits merely waits for work (idle), or is held up (blocked), and why that is said.
 * Pure.
 *
 *   verdict = idle_rules_judge(rules, &question);
 *   verdict.idle ? STATE_IDLE : STATE_BLOCKED;      idle_reason_text(verdict.reason)
 *
 * What decides is the wait frame's text and the functions that lead to it. A wait for a dependency is never
 * idle, nor is one for a lock. A condition, a queue or a sleep is idle only at the thread's home: the place
 * it comes back to between one piece of work and the next. In doubt a thread is blocked. */
#ifndef STALLGRAPH_WAIT_IDLE_RULE_H
#define STALLGRAPH_WAIT_IDLE_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "profiler/base/error.h"
#include "profiler/wait/wait_refine.h"

enum { IDLE_RULES_MAX_EXPRESSIONS = 16 };

enum idle_reason {
    IDLE_BY_USER_RULE,
    BUSY_BY_USER_RULE,
    IDLE_NO_REQUEST, /* waits for a client */
    IDLE_EVENT_LOOP, /* nothing due */
    IDLE_POOL,       /* at a place where pools of threads are known to wait for work */
    IDLE_AT_START,   /* within three frames of the thread's start function */
    IDLE_RETURNS,    /* at a place it came back to more than once, outside its work */
    BUSY_DEPENDENCY,
    BUSY_SLOW_CLIENT, /* sends to a client that does not read */
    BUSY_LOCK,
    BUSY_ACQUIRE, /* waits for its turn: below a pool's acquire, or a task's result */
    BUSY_DISK,
    BUSY_CHILD,
    BUSY_IN_WORK, /* a condition, a queue or a sleep in the middle of something */
    BUSY_UNKNOWN, /* what it waits for is not known */
    IDLE_REASON_COUNT,
};

/* "it waits for a request". */
const char *idle_reason_text(enum idle_reason reason);

struct idle_question {
    const char *wait_text;              /* "[wait: ...]" */
    const struct wait_function *frames; /* the user's, leaf first, without the wait frame */
    size_t count;
    bool from_start;   /* the last frame is where the thread began: the stack is whole */
    bool has_driver;   /* below a database's client library */
    unsigned returns;  /* how often the thread was seen to come back to this very stack */
    bool outside_work; /* it does not lie within what the thread does at nearly all other times */
};

struct idle_verdict {
    bool idle;
    enum idle_reason reason;
};

struct idle_rules;

/* POSIX extended regular expressions, each matched against each frame's name, the wait frame's too. At most
 * IDLE_RULES_MAX_EXPRESSIONS of a kind. 0, or -EINVAL with a message. */
int idle_rules_create(const char *const *idle, size_t idle_count, const char *const *busy, size_t busy_count,
                      struct idle_rules **ret_rules, struct error *err);
void idle_rules_destroy(struct idle_rules *rules); /* NULL allowed */

/* rules may be NULL. */
struct idle_verdict idle_rules_judge(const struct idle_rules *rules, const struct idle_question *question);

#endif
