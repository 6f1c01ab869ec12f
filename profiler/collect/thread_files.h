/* The files of one thread in /proc, read again and again: by a descriptor of its process's task folder, which
 * goes on meaning that process when its number has been given out again, and without allocating.
 *
 *   struct thread_files files = {.task_fd = task_fd, .tid = tid, .schedstat_fd = -1};
 *   thread_files_keep_open(&files);            // where there are descriptors to spare: half the time a read
 *   r = thread_files_schedstat(&files, &schedstat);
 *   thread_files_close(&files);
 *
 * All return 0 or -errno: -ESRCH or -ENOENT when the thread is gone. */
#ifndef STALLGRAPH_COLLECT_THREAD_FILES_H
#define STALLGRAPH_COLLECT_THREAD_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/collect/proc_task.h"

struct thread_files {
    int task_fd; /* borrowed */
    pid_t tid;
    int schedstat_fd; /* -1 = opened for each read */
};

bool thread_files_keep_open(struct thread_files *files);
void thread_files_close(struct thread_files *files);

int thread_files_schedstat(const struct thread_files *files, struct proc_schedstat *ret_schedstat);
int thread_files_status(const struct thread_files *files, struct proc_status *ret_status);
int thread_files_start_time(const struct thread_files *files, uint64_t *ret_ns); /* since boot */
/* Wants ptrace rights: -EPERM or -EACCES without. */
int thread_files_syscall(const struct thread_files *files, struct proc_syscall *ret_syscall);
/* "" when it is not blocked, or without the right to know. */
int thread_files_wait_channel(const struct thread_files *files, char *ret_name, size_t size_bytes);

#endif
