/* What the parts of the session share. Only profiler/session*.c include this. */
#ifndef STALLGRAPH_SESSION_INTERNAL_H
#define STALLGRAPH_SESSION_INTERNAL_H

#include "profiler/base/vec.h"
#include "profiler/collect/perf_capture.h"
#include "profiler/collect/proc_task.h"
#include "profiler/model/location.h"
#include "profiler/model/process.h"
#include "profiler/model/timeline.h"
#include "profiler/session.h"
#include "profiler/symbolize/symbolizer.h"
#include "profiler/unwind/unwinder.h"

/* What is held of a process so that it can still be looked at when its number means somebody else. By process
 * id. */
struct target {
    int pid_fd;  /* -1 on kernels without pidfd_open(2) */
    int root_fd; /* O_PATH of its root directory; -1 when it could not be opened */
    pid_t inner_pid;
    uid_t uid; /* whose the process is: its files in the root directory must be this user's, or root's */
};

/* The kernel's counters of a thread when it was first seen. By thread id. */
struct thread_baseline {
    bool known;
    struct proc_schedstat schedstat;
    struct proc_schedstat end; /* when the window ended, or zero */
    bool end_known;
};

struct session {
    const struct session_options *options;
    const struct session_observer *observer;

    struct perf_capture *capture;
    struct process_table *processes;
    struct binary_table *binaries;
    struct location_table *locations;
    struct stack_table *stacks; /* of location ids */
    struct timeline *timeline;
    const struct unwinder_backend *backend;
    struct unwinder *unwinder;
    struct unwound_stack unwound; /* scratch: too big for the C stack */
    struct profile *profile;

    VEC_OF(struct target) targets;
    VEC_OF(struct thread_baseline) baselines;

    uint64_t window_start_ns;
    uint64_t window_end_ns;
    uint64_t samples;
    char choice[512]; /* the line that says how capturing is done */
};

/* session_targets.c: processes, threads and what is mapped in them. */

/* Adds a process with its threads and mappings as /proc shows them. 0, or -errno (-ESRCH: gone meanwhile). */
int session_add_existing_process(struct session *session, pid_t pid);
/* A process that was just forked: it inherits the parent's mappings. */
struct process *session_add_forked_process(struct session *session, const struct process *parent, pid_t pid,
                                           uint64_t time_ns);
struct thread *session_add_thread(struct session *session, struct process *process, pid_t tid,
                                  const char *comm, uint64_t begin_ns, enum thread_state likely, bool born);
void session_add_mapping(struct session *session, struct process *process, const struct mapping *range,
                         const struct binary_key *key, const char *path);
/* Processes whose end was not seen in the records, by their pidfds. Returns whether any process is still
 * alive. */
bool session_check_alive(struct session *session);
void session_read_end_counters(struct session *session);
int session_open_in_target(void *session, uint32_t process, const char *path);
pid_t session_inner_pid(void *session, uint32_t process);
void session_release_targets(struct session *session);

/* session_stacks.c: from raw samples to stacks of locations. */
uint32_t session_unwind(struct session *session, const struct process *process,
                        const struct raw_sample *sample);
/* The stack of a thread that is blocked now, from /proc: pushes "[blocked before attach]" when it cannot be
 * had. */
uint32_t session_snapshot_blocked(struct session *session, const struct process *process, pid_t tid);
uint32_t session_synthetic_location(struct session *session, const char *text);

/* session_records.c */
void session_handle_record(struct session *session, const struct perf_record *record);

/* session_profile.c: names everything and fills session->profile. */
void session_make_profile(struct session *session);

#endif
