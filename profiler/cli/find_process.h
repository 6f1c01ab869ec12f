/* Which process the user means. */
#ifndef STALLGRAPH_CLI_FIND_PROCESS_H
#define STALLGRAPH_CLI_FIND_PROCESS_H

#include <sys/types.h>

#include "profiler/base/error.h"

/* The one process whose comm or executable's base name is exactly name. None: -ESRCH; several: -EINVAL, their
 * pids in the message. The caller itself does not count, nor do processes below another match (workers of one
 * server). */
int find_process_by_name(const char *name, pid_t *ret_pid, struct error *err);

/* Base name of its executable, or "process". Caller frees. */
char *process_display_name(pid_t pid);

#endif
