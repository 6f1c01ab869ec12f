/* What the parts of the session share. Only profiler/session*.c include this. */
#ifndef STALLGRAPH_SESSION_INTERNAL_H
#define STALLGRAPH_SESSION_INTERNAL_H

#include "profiler/base/id_map.h"
#include "profiler/base/vec.h"
#include "profiler/collect/memory_ranges.h"
#include "profiler/collect/perf_capture.h"
#include "profiler/collect/proc_task.h"
#include "profiler/collect/tick.h"
#include "profiler/collect/tick_reader.h"
#include "profiler/collect/wait_counts.h"
#include "profiler/model/calibration.h"
#include "profiler/model/location.h"
#include "profiler/model/process.h"
#include "profiler/model/timeline.h"
#include "profiler/session.h"
#include "profiler/symbolize/symbolizer.h"
#include "profiler/unwind/unwinder.h"
#include "profiler/wait/futex_wait.h"

/* What is held of a process so that it can still be looked at when its number means somebody else. By process
 * id. */
struct target {
    int pid_fd;          /* -1 on kernels without pidfd_open(2) */
    int root_fd;         /* O_PATH of its root directory; -1 when it could not be opened */
    bool root_is_shared; /* with a process that was held before */
    pid_t inner_pid;
    bool clock_known;
    uint64_t begin_cpu_ns,
        end_cpu_ns;              /* its CPU clock, at the window's start (0 if it was born later) and now */
    struct memory_ranges ranges; /* engine `trace`: for the stacks that were blocked before */
    uint64_t maps_hash;          /* of the text of its maps when it was read last */
    uint64_t next_maps_read_ns;  /* not before, when an address is in no known mapping */
    uid_t uid; /* whose the process is: its files in the root directory must be this user's, or root's */
};

/* What is kept of a thread beside the process table. By thread id. */
struct thread_record {
    uint64_t
        found_ns; /* records of its number that are older than this are about somebody else, or no news */
    uint64_t start_time_ns; /* since boot, its identity; 0 = not known yet */
    /* The kernel's counters when it was first seen (zero for one that was born in the window), and at its
     * end. */
    bool begin_known, end_known;
    uint64_t exit_ns; /* engine `tick`: as a record told it, before the engine noticed; 0 = not told */
    struct proc_schedstat begin, end;
    /* Engine `tick`: as the last look found it. */
    enum thread_state last_state;
    uint32_t last_stack; /* SPAN_NO_STACK, CALIBRATION_LOST_STACK */
    uint32_t last_on_cpu_stack;
    struct wait_length_point last_look; /* time 0 = there was none */
};

/* Reads memory of the target that no engine copied, in a process that can be given up. It is started when it is needed
 * first. */
struct session_memory {
    struct tick_reader reader;
    unsigned hangs;
    struct id_map hung; /* owners whose memory did not answer */
};

/* How the engine `tick` goes. */
struct tick_control {
    const struct tick_backend *backend;
    struct tick *tick;
    bool kernel_names_hidden;
    bool broken; /* it failed, and is not asked again */
    double rate_hz;
    double stack_share;
    uint64_t next_ns;
    bool is_late; /* for the rest of a stack whose copy the last looks brought */
    unsigned
        hurried_passes; /* so many more whose looks are not left until the next tick, since that was late */
    uint64_t looks_due_ns; /* 0 = at the next tick */
    uint64_t check_ns,
        check_cpu_ns; /* when the budget was looked at last, and the CPU time used until then */
    uint64_t check_interval_ns;
    uint64_t boot_offset_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
    uint64_t passes;
    uint64_t pass_begin_ns; /* of the last one */
    uint32_t first_unseen;  /* no thread before this one waits for its first look */
    uint64_t check_stacks;
    uint64_t stacks_taken, stacks_left_out, stacks_raced, stacks_recalled;
    uint64_t stacks_deep, deep_failed, deep_recalled; /* as in struct profile_looks */
    struct wait_length_looks by_wait_length[WAIT_LENGTH_CLASSES];
    struct id_map
        stack_of_site; /* (thread, pc, sp, system call, top of the stack) -> the stack last verified there */
    struct id_map whole_of_copied; /* (thread, sp, frames in the copy) -> the whole stack last read there */
};

struct session {
    const struct session_options *options;
    const struct session_observer *observer;

    struct perf_capture *capture; /* NULL: perf events are not to be had (engine `tick` only) */
    struct process_table *processes;
    struct binary_table *binaries;
    struct location_table *locations;
    struct stack_table *stacks;      /* of location ids */
    struct timeline *timeline;       /* engine `trace`; else NULL */
    struct calibration *calibration; /* engine `tick`, from the window's start on; else NULL */
    struct tick_control tick;
    struct session_waits *waits;       /* names waits; NULL until there is one */
    struct session_locks *locks;       /* who holds what is waited for; NULL until there is one */
    struct session_throttle *throttle; /* from the window's start on; else NULL */
    struct wait_counts *counts;        /* --counts; else NULL */
    struct backlog_watch *backlog;     /* NULL until there is a process */
    struct id_map stack_of_wait; /* place of a wait, as it is counted -> the stack that a look saw there */
    const struct unwinder_backend *backend;
    struct unwinder *unwinder;
    struct unwound_stack unwound; /* scratch: too big for the C stack */
    struct profile *profile;

    struct session_memory memory;
    VEC_OF(struct target) targets;
    VEC_OF(struct thread_record) threads;
    struct id_map root_fd_of_place;  /* (mount namespace, root directory) -> the descriptor held of it */
    struct id_map last_ended_of_tid; /* a look may have told of a life whose records come only now */

    struct span_budget span_budget;
    uint64_t window_start_ns;
    bool command_began; /* a record told when */
    uint64_t
        report_start_ns; /* of what is told: later than the window's where a command was yet to be executed */
    uint64_t window_end_ns;
    uint64_t next_survey_ns;
    uint64_t samples;
    bool has_unpermitted; /* some time has no stack for lack of rights */
    char choice[512];     /* the line that says how capturing is done */
    char limits[1024];    /* what could not be had and why */
    char trouble[1024];   /* what went wrong meanwhile */
};

/* session_choice.c: what can be had, and the line that says so. */

/* Opens the engine and the capture. 0, or -errno: nothing can be had, or not what was asked for. */
int session_choose(struct session *session, const pid_t *pids, size_t pid_count, struct error *err);
void session_describe_choice(struct session *session);

/* session_scan.c: which processes there are, found by looking at /proc. */

/* The processes that were asked for, with their descendants where these are wanted. 0, or -errno when one is
 * not there or can never be profiled. The caller frees *ret_pids. */
int session_list_targets(const struct session_options *options, pid_t **ret_pids, size_t *ret_count,
                         struct error *err);
/* Adds those that are not known yet. */
void session_scan(struct session *session);
/* What perf's records would have told, looked up about once a second where they are not permitted: new
 * processes, mappings, executables, names. now: whether it is due or not. */
void session_survey(struct session *session, bool now);

/* session_targets.c: processes, threads and what is mapped in them. */

/* Has the kernel's filter and the engine look at a process, or no more. */
void session_watch_process(struct session *session, pid_t pid);
void session_unwatch_process(struct session *session, pid_t pid);

/* Adds a process with its threads and mappings as /proc shows them. 0, or -errno (-ESRCH: gone meanwhile). */
int session_add_existing_process(struct session *session, pid_t pid);
/* One that began at begin_ns, without its threads; NULL: gone meanwhile. */
struct process *session_add_found_process(struct session *session, pid_t pid, uint64_t begin_ns);
/* A process that was just forked: it inherits the parent's mappings. */
struct process *session_add_forked_process(struct session *session, const struct process *parent, pid_t pid,
                                           uint64_t time_ns);
struct thread *session_add_thread(struct session *session, struct process *process, pid_t tid,
                                  const char *comm, uint64_t begin_ns, enum thread_state likely, bool born);
void session_add_mapping(struct session *session, struct process *process, const struct mapping *range,
                         const struct binary_key *key, const char *path);
/* Reads them anew from /proc/PID/maps, if they have changed. */
void session_read_mappings(struct session *session, struct process *process);
/* Processes whose end was not seen in the records, by their pidfds. Returns whether any process is still
 * alive. */
bool session_check_alive(struct session *session);
void session_read_end_counters(struct session *session);
int session_open_in_target(void *session, uint32_t process, const char *path);
pid_t session_inner_pid(void *session, uint32_t process);
void session_release_targets(struct session *session);

/* session_stacks.c: from raw samples to stacks of locations. */
uint32_t session_unwind(struct session *session, struct process *process, const struct raw_sample *sample);
/* The same for a thread that did not run when it was looked at: what lies above the copy of its stack is read too, and
 * counts if the thread has not run since. sample: that of the look, or a part of it. */
uint32_t session_unwind_look(struct session *session, const struct thread *thread,
                             const struct tick_look *look, const struct raw_sample *sample);
/* The stack of a thread that is blocked now, from /proc: pushes "[blocked before attach]" when it cannot be
 * had. */
uint32_t session_snapshot_blocked(struct session *session, const struct process *process, pid_t tid);
uint32_t session_synthetic_location(struct session *session, const char *text);
/* For time whose stacks the rights are missing for; state is STATE_ON_CPU or STATE_BLOCKED. */
uint32_t session_unpermitted_stack(struct session *session, enum thread_state state);
/* The stack of a thread that a CPU quota keeps from its CPU, marked as such; SPAN_NO_STACK is allowed. */
#define SESSION_THROTTLED "[throttled]"
uint32_t session_throttled_stack(struct session *session, uint32_t stack);
/* Adds such time up in profile->loss. */
void session_count_unpermitted(struct session *session);

/* session_tick.c: the engine `tick`. */

/* 0, or -errno: it cannot be had, and err says why. */
int session_tick_open(struct session *session, const struct tick_backend *backend, struct error *err);
void session_tick_close(struct session *session);
/* Begins the books of the threads that were found so far. */
void session_tick_begin(struct session *session);
/* The time at which the next pass is due, or the looks of the last one are. */
uint64_t session_tick_due_ns(const struct session *session);
/* Whether it is only the looks that are due: they are to be taken, no pass made. */
bool session_tick_hurries(const struct session *session, uint64_t now_ns);
/* Takes the looks of the last pass, whose time the records of the rings have reached by now, and makes
 * another pass. all: over those that did not change too (the first time, and the last). */
void session_tick_turn(struct session *session, bool all);
/* Takes the looks of the last pass. */
void session_tick_take(struct session *session);
/* After the last one, before the books are closed. */
void session_tick_end(struct session *session);

/* session_memory.c: memory of the target beside what the engines copy. */

/* Whose memory is left alone from then on when it does not answer. */
struct memory_owner {
    const struct process *process;
    pid_t tid; /* of a stack; 0 for the process's data */
};

/* As far as it is mapped from address upwards, at most TICK_READER_MEMORY_BYTES; at *ret_bytes until the next call. Returns
 * how much that is, or -errno. It waits for a tenth of a second at most when a page does not answer, and not many times. */
ssize_t session_read_memory(struct session *session, const struct memory_owner *owner, uint64_t address,
                            size_t size_bytes, const uint8_t **ret_bytes);
uint64_t session_memory_cpu_ns(const struct session *session); /* outside our own process */
void session_memory_close(struct session *session);

/* session_waits.c: what blocked threads wait for. */

/* The wait frame of a look, as a location, and the lock that is waited for (0 = none); session_wait_text makes its text one for people when sampling is over. */
uint32_t session_name_wait(struct session *session, const struct process *process,
                           const struct tick_look *look, uint64_t *ret_lock_address);
/* What a futex call with these arguments waits for now. */
void session_read_futex(struct session *session, const struct process *process, const uint64_t arguments[6],
                        struct futex_wait *ret_wait);
void session_wait_text(const struct session *session, const char *raw_text, char *ret_text, size_t size);
/* A process that has ended. */
void session_waits_forget(struct session *session, uint32_t process);
/* Waits a moment for names that are still looked for. */
void session_waits_settle(struct session *session);
void session_waits_close(struct session *session);

/* session_throttle.c: what the CPU quotas of the target's control groups did. */
void session_throttle_begin(struct session *session);
void session_throttle_turn(struct session *session, uint64_t now_ns); /* often: most times it does nothing */
void session_throttle_end(struct session *session);                   /* when all spans are made */
void session_throttle_close(struct session *session);

/* session_counts.c: exact counts of waits. All but open do nothing when they were not asked for. */
int session_counts_open(struct session *session, struct error *err);
void session_counts_close(struct session *session);
void session_counts_add_process(struct session *session, pid_t pid);
void session_counts_note(struct session *session, const struct tick_look *look, uint32_t stack);
/* Adds what was counted to the profile; final_stack makes a stack of the profile of one of session->stacks.
 */
void session_counts_take(struct session *session,
                         uint32_t (*final_stack)(void *context, uint32_t raw_stack, enum thread_state state),
                         void *context);

/* session_locks.c: who holds the locks that others wait for, engine `tick`. */

/* At each look at a thread: its stack, and the lock that it waits for there (0 = none). */
void session_locks_note(struct session *session, const struct thread *thread, const struct tick_look *look,
                        uint32_t stack, uint64_t lock_address);
/* At each tick, when its looks are taken. */
void session_locks_turn(struct session *session, uint64_t now_ns);
void session_locks_end(struct session *session);
/* Adds what is known to the profile. */
void session_locks_take(struct session *session,
                        uint32_t (*final_stack)(void *context, uint32_t raw_stack, enum thread_state state),
                        void *context);
void session_locks_close(struct session *session);

/* session_backlog.c: whether work piles up at the targets' sockets. */
void session_backlog_add_process(struct session *session, pid_t pid);
void session_backlog_start(struct session *session);
void session_backlog_take(
    struct session *session); /* stops looking, and puts into the profile what was found */
void session_backlog_close(struct session *session);

/* session_exited.c: threads that lived too short to be seen by looking at /proc. */
void session_exited_end_unseen(struct session *session); /* when the looks of a pass were taken */
void session_exited_note(struct session *session);       /* at each turn */
void session_exited_add(struct session *session);        /* when all other spans are made */

/* session_records.c */
void session_handle_record(struct session *session, const struct perf_record *record);
/* counters: the last ones, or NULL when they are not known. */
void session_end_thread(struct session *session, struct thread *thread, uint64_t end_ns,
                        const struct thread_counters *counters);

/* session_idle.c: which waits are idle. For one thread after another. */
struct session_idle;
struct session_idle *session_idle_create(const struct session *session);
void session_idle_destroy(struct session_idle *idle);
void session_idle_begin_thread(struct session_idle *idle, const struct span *spans, size_t count);
/* A blocked stack of the thread, and what has become of it in the profile. */
bool session_idle_is(struct session_idle *idle, uint32_t raw_stack, uint32_t stack);

/* session_profile.c: names everything and fills session->profile. */
void session_make_profile(struct session *session);

#endif
