/* All that /proc tells of one thread, read in one go: what lies between the first read and the last is what a thread can
 * slip away in.
 *
 *   const struct thread_look_request request = {.files = files, .pid = pid, .want_stack = true,
 *                                               .stack_range = range, .limit_bytes = 16384};
 *   thread_look_take(&request, bytes, &look);
 */
#ifndef STALLGRAPH_COLLECT_THREAD_LOOK_H
#define STALLGRAPH_COLLECT_THREAD_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/collect/memory_ranges.h"
#include "profiler/collect/proc_task.h"
#include "profiler/collect/thread_files.h"

struct thread_look_request {
    struct thread_files files;
    pid_t pid;
    bool want_stack;                 /* registers and memory, if it is off its CPU */
    bool memory_refused;             /* the memory does not answer */
    struct memory_range stack_range; /* where its stack lay last: a read beyond stays within one page */
    size_t limit_bytes;              /* of the stack; at most PROCESS_MEMORY_MAX_BYTES */
};

struct thread_look {
    int result;       /* 0, or -errno: nothing of it can be read, it has ended */
    uint64_t time_ns; /* CLOCK_MONOTONIC, of the counters */
    struct proc_schedstat schedstat;
    struct proc_status status;
    int syscall_result; /* of what follows; -EPERM, -EACCES: not permitted; -ENODATA: not asked for, or it runs */
    struct proc_syscall syscall;
    ssize_t stack_bytes; /* or -errno */
    bool moved;          /* it ran meanwhile: the parts are not of one moment */
};

/* Allocates nothing as a rule. stack: room for limit_bytes. */
void thread_look_take(const struct thread_look_request *request, uint8_t *stack,
                      struct thread_look *ret_look);

#endif
