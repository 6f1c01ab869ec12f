/* What a thread waits for, told by the one kernel function that /proc/PID/task/TID/wchan names: all there is
 * without the right to see its system call. Pure.
 *
 *   wait_from_channel("hrtimer_nanosleep", &name);     // WAIT_SLEEP, "[wait: sleep]"
 *   wait_from_channel("anon_pipe_read", &name);        // WAIT_OTHER, "[wait: anon_pipe_read]" */
#ifndef STALLGRAPH_WAIT_WAIT_CHANNEL_H
#define STALLGRAPH_WAIT_WAIT_CHANNEL_H

#include "profiler/wait/wait_name.h"

/* NULL or "" = not known: "[wait: syscall]". A function that is in no table stands under its own name. */
void wait_from_channel(const char *function, struct wait_name *ret_name);

#endif
