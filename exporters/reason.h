/* Why a thread's time passed: its state, and for blocked time what it waited for. The SVG's colours and the
 * summary's rows. */
#ifndef STALLGRAPH_EXPORTERS_REASON_H
#define STALLGRAPH_EXPORTERS_REASON_H

#include "profiler/model/profile.h"

/* In the order of a legend: from work, through what can be changed, to what is no trouble. */
enum reason {
    REASON_ON_CPU,
    REASON_RUNNABLE,
    REASON_DATABASE,
    REASON_NETWORK,
    REASON_LOCK,
    REASON_DISK,
    REASON_SLEEP,
    REASON_OTHER,
    REASON_STOPPED,
    REASON_UNKNOWN,
    REASON_IDLE,
    REASON_COUNT,
};

/* wait: of the stack's leaf frame; matters for blocked time only. */
enum reason reason_of(enum thread_state state, enum wait_kind wait);

/* "waiting for a database": for people. */
const char *reason_label(enum reason reason);
/* "database": one word, for style classes and data. */
const char *reason_name(enum reason reason);

#endif
