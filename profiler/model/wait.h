/* What a thread that is not on a CPU waits for: the kind decides the colour, the text is the frame. */
#ifndef STALLGRAPH_MODEL_WAIT_H
#define STALLGRAPH_MODEL_WAIT_H

#include <stdbool.h>

enum wait_kind {
    WAIT_NONE,     /* not a wait */
    WAIT_RUNNABLE, /* for a CPU: "[runnable]", "[throttled]" */
    WAIT_DATABASE, /* a database or a cache, known by its driver */
    WAIT_NETWORK,  /* a socket */
    WAIT_LOCK,     /* mutex, condition, semaphore */
    WAIT_DISK,     /* file data, page faults */
    WAIT_SLEEP,
    WAIT_STOPPED,
    WAIT_OTHER,
    WAIT_KIND_COUNT,
};

/* "none", "runnable", "database", "network", "lock", "disk", "sleep", "stopped", "other": as written in
 * files. */
const char *wait_kind_name(enum wait_kind kind);
bool wait_kind_parse(const char *name, enum wait_kind *ret_kind);

#endif
