/* The spans of one thread, in time order and without gaps, while they are being made: on-CPU and blocked time
 * whose stack is not known yet can still get the one that is seen next.
 *
 *   span_list_add(&list, from, to, STATE_ON_CPU, SPAN_NO_STACK);
 *   span_list_resolve(&list, STATE_ON_CPU, time, stack);      // it, and all that waits since a second or
 * less
 */
#ifndef STALLGRAPH_MODEL_SPAN_LIST_H
#define STALLGRAPH_MODEL_SPAN_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/model/profile.h"

enum { SPAN_NO_STACK = UINT32_MAX };

struct span {
    uint64_t start_ns; /* CLOCK_MONOTONIC */
    uint64_t duration_ns;
    uint32_t stack; /* as it was given, or SPAN_NO_STACK */
    enum thread_state state;
};

/* Zeroed is empty. */
struct span_list {
    struct span *spans;
    size_t count;
    size_t capacity;
    size_t first_unresolved[STATE_COUNT]; /* by state: no earlier span of it can get a stack any more */
};

void span_list_finish(struct span_list *list);

/* Appends [from_ns, to_ns); an equal, adjacent span grows instead; an empty range is ignored. */
void span_list_add(struct span_list *list, uint64_t from_ns, uint64_t to_ns, enum thread_state state,
                   uint32_t stack);

/* What was said of the time from since_ns on is not certain after all: it becomes STATE_UNKNOWN, without a
 * stack. */
void span_list_doubt(struct span_list *list, uint64_t since_ns);

/* Takes away what lies at end_ns or behind it. */
void span_list_cut(struct span_list *list, uint64_t end_ns);

/* Gives the stack to the spans of a state that have none and ended a second or less before time_ns. */
void span_list_resolve(struct span_list *list, enum thread_state state, uint64_t time_ns, uint32_t stack);

/* Gives the spans of a state that still have none, at the end, the stack of the one before, if that ended a second or less
 * before. */
void span_list_resolve_back(struct span_list *list, enum thread_state state);

/* A part of the time of one state gets another stack: that within [since_ns, until_ns), and of it the latest, limit_ns at
 * most. */
struct span_change {
    uint64_t since_ns, until_ns;
    uint64_t limit_ns;
    enum thread_state state;
    uint32_t (*stack)(void *context, uint32_t stack); /* the new one for an old one, or for SPAN_NO_STACK */
    void *context;
};

void span_list_change(struct span_list *list, const struct span_change *change);

#endif
