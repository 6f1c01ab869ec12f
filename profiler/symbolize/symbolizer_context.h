/* What the symbolizer is given of the session, and the one way in which it opens files of a target. */
#ifndef STALLGRAPH_SYMBOLIZE_SYMBOLIZER_CONTEXT_H
#define STALLGRAPH_SYMBOLIZE_SYMBOLIZER_CONTEXT_H

#include <stdint.h>
#include <sys/types.h>

#include "profiler/model/binary.h"
#include "profiler/model/process.h"

/* Everything is borrowed and must outlive the symbolizer. */
struct symbolizer_context {
    const struct binary_table *binaries;
    const struct process_table *processes;

    /* Opens a file of the target's own, for perf maps and debug files, by the path the target sees: for a
     * process id of process_table (root directory of that process). Returns an fd or -errno; NULL = there is
     * none to be had. */
    int (*open_in_target)(void *open_context, uint32_t process, const char *path);
    /* The number the process has in its own innermost pid namespace, for /tmp/perf-N.map; NULL = pid. */
    pid_t (*inner_pid)(void *open_context, uint32_t process);
    void *open_context;
};

#endif
