#include <errno.h>
#include <signal.h>
#include <sys/types.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/session_internal.h"

enum {
    MAX_SCAN_ROUNDS = 5,
    SURVEY_SHARE = 50, /* a survey takes at most one part in so many of the time */
};

static int explain_missing(pid_t pid, struct error *err)
{
    if (kill(pid, 0) < 0 && errno == EPERM) {
        error_say(err, -EPERM, "process %d: /proc does not show it (it is mounted with hidepid)", pid);
        return error_hint(err, "run as root, as the process's user, or in the group that /proc names (gid=)");
    }
    error_set(err, -ESRCH, "process %d", pid);
    return error_hint(err, "check the number: it must be a process that runs now, in this pid namespace");
}

/* Refuses what can never be profiled before anything is opened. */
static int check_pid(pid_t pid, struct error *err)
{
    struct proc_stat stat;
    int r = proc_read_stat(pid, pid, &stat);

    if (r == -ESRCH || r == -ENOENT)
        return explain_missing(pid, err);
    if (r < 0) {
        error_set(err, r, "read /proc/%d/stat", pid);
        return error_hint(err, "run as root, or as the process's user");
    }
    if (stat.kernel_thread) {
        error_say(err, -EINVAL, "process %d (%s): it is a kernel thread", pid, stat.comm);
        return error_hint(err, "only processes with user code can be profiled");
    }
    if ((stat.state == 'Z' || stat.state == 'X') && stat.thread_count <= 1) {
        error_say(err, -ESRCH, "process %d (%s): it is a zombie: it has ended and waits to be reaped", pid,
                  stat.comm);
        return error_hint(err, "profile its parent, process %d, or start it again", stat.parent_pid);
    }
    return 0;
}

int session_list_targets(const struct session_options *options, pid_t **ret_pids, size_t *ret_count,
                         struct error *err)
{
    int r;

    for (size_t i = 0; i < options->pid_count; i++) {
        r = check_pid(options->pids[i], err);
        if (r < 0)
            return r;
    }
    if (!options->children) {
        *ret_pids = memory_copy(options->pids, options->pid_count * sizeof *options->pids);
        *ret_count = options->pid_count;
        return 0;
    }
    r = proc_list_descendants(options->pids, options->pid_count, ret_pids, ret_count);
    return r < 0 ? error_set(err, r, "list the processes below %d", options->pids[0]) : 0;
}

/* Those that are wanted and alive: what was asked for may have ended, its children live on. */
static int list_family(const struct session *session, pid_t **ret_pids, size_t *ret_count)
{
    uint32_t count = process_table_process_count(session->processes);
    AUTO_FREE pid_t *roots = memory_zeroed(count + session->options->pid_count, sizeof *roots);
    size_t root_count = 0;

    if (count == 0 || !session->options->children)
        return session_list_targets(session->options, ret_pids, ret_count, NULL);
    for (uint32_t i = 0; i < count; i++) {
        const struct process *process = process_table_process(session->processes, i);

        if (process->alive)
            roots[root_count++] = process->pid;
    }
    return proc_list_descendants(roots, root_count, ret_pids, ret_count);
}

/* Until nobody is new: a process may fork while the list is read. */
void session_scan(struct session *session)
{
    for (int round = 0; round < MAX_SCAN_ROUNDS; round++) {
        AUTO_FREE pid_t *pids = NULL;
        size_t count = 0;
        bool found_new = false;

        if (list_family(session, &pids, &count) < 0)
            return;
        for (size_t i = 0; i < count; i++) {
            if (process_table_find_process(session->processes, pids[i]) != NULL)
                continue;
            session_watch_process(session, pids[i]);
            if (session_add_existing_process(session, pids[i]) == 0)
                found_new = true;
        }
        if (!found_new)
            return;
    }
}

static void survey_process(struct session *session, struct process *process)
{
    AUTO_FREE char *executable = NULL;

    if (proc_read_executable(process->pid, &executable) == 0)
        process_set_executable(process, executable);
    session_read_mappings(session, process);
}

static void survey_threads(struct session *session)
{
    uint32_t count = process_table_thread_count(session->processes);

    for (uint32_t i = 0; i < count; i++) {
        struct thread *thread = process_table_thread(session->processes, i);
        char comm[PROCESS_COMM_SIZE];

        if (thread->alive && proc_read_comm(process_table_process(session->processes, thread->process)->pid,
                                            thread->tid, comm) == 0)
            thread_set_comm(thread, comm);
    }
}

void session_survey(struct session *session, bool now)
{
    uint64_t begin_ns = clock_now_ns();
    uint64_t cost_ns;

    if (session->capture != NULL || (!now && begin_ns < session->next_survey_ns))
        return;
    if (session->options->children)
        session_scan(session);
    for (uint32_t i = 0; i < process_table_process_count(session->processes); i++) {
        struct process *process = process_table_process(session->processes, i);

        if (process->alive)
            survey_process(session, process);
    }
    survey_threads(session);
    cost_ns = clock_now_ns() - begin_ns;
    session->next_survey_ns =
        begin_ns + (cost_ns * SURVEY_SHARE > NS_PER_S ? cost_ns * SURVEY_SHARE : NS_PER_S);
}
