#include <stdlib.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/session_internal.h"

/* Task states as sched_switch prints them: include/linux/sched.h, task_state_index; see tracefs' format file.
 */
enum {
    PREV_STATE_STOPPED = 0x4,
    PREV_STATE_TRACED = 0x8,
    PREV_STATE_PREEMPTED = 0x100,
    PREV_STATE_MASK = 0xff
};

static enum thread_state off_cpu_state(uint64_t prev_state)
{
    if ((prev_state & PREV_STATE_PREEMPTED) != 0 || (prev_state & PREV_STATE_MASK) == 0)
        return STATE_RUNNABLE;
    if ((prev_state & (PREV_STATE_STOPPED | PREV_STATE_TRACED)) != 0)
        return STATE_STOPPED;
    return STATE_BLOCKED;
}

static const struct thread *find_thread(const struct session *session, pid_t tid)
{
    return process_table_find_thread(session->processes, tid);
}

static void handle_switch(struct session *session, const struct perf_record *record)
{
    const struct thread *out = find_thread(session, record->sched_switch.prev_tid);
    const struct thread *in = find_thread(session, record->sched_switch.next_tid);

    if (out != NULL)
        timeline_switch_out(session->timeline, out->id, record->time_ns,
                            off_cpu_state(record->sched_switch.prev_state));
    if (in != NULL)
        timeline_switch_in(session->timeline, in->id, record->time_ns);
}

static void handle_task_switch(struct session *session, const struct perf_record *record)
{
    const struct thread *thread = find_thread(session, record->tid);

    if (thread == NULL)
        return;
    if (record->task_switch.out)
        timeline_switch_out(session->timeline, thread->id, record->time_ns,
                            record->task_switch.preempted ? STATE_RUNNABLE : STATE_BLOCKED);
    else
        timeline_switch_in(session->timeline, thread->id, record->time_ns);
}

static void handle_stack(struct session *session, const struct perf_record *record)
{
    const struct thread *thread = find_thread(session, record->tid);
    uint32_t stack;

    if (thread == NULL)
        return;
    session->samples++;
    stack =
        session_unwind(session, process_table_process(session->processes, thread->process), &record->sample);
    session->threads.items[thread->id].last_on_cpu_stack = stack;
    if (session->calibration != NULL)
        calibration_on_cpu_stack(session->calibration, thread->id, record->time_ns, stack);
    else if (record->type == RECORD_ON_CPU)
        timeline_on_cpu_stack(session->timeline, thread->id, record->time_ns, stack);
    else
        timeline_off_cpu_stack(session->timeline, thread->id, record->time_ns, stack);
}

static void handle_mmap(struct session *session, const struct perf_record *record)
{
    struct process *process = process_table_find_process(session->processes, record->mmap.pid);

    if (process == NULL || !record->mmap.executable)
        return;
    session_add_mapping(session, process,
                        &(struct mapping){.start = record->mmap.start,
                                          .end = record->mmap.start + record->mmap.size_bytes,
                                          .file_offset = record->mmap.file_offset},
                        &(struct binary_key){.device = record->mmap.device,
                                             .inode = record->mmap.inode,
                                             .generation = record->mmap.generation},
                        record->mmap.path);
}

static void handle_comm(struct session *session, const struct perf_record *record)
{
    struct process *process = process_table_find_process(session->processes, record->comm.pid);
    struct thread *thread = process_table_find_thread(session->processes, record->comm.tid);
    AUTO_FREE char *executable = NULL;

    if (thread != NULL)
        thread_set_comm(thread, record->comm.comm);
    if (process == NULL || !record->comm.exec)
        return;
    if (session->options->command && !session->command_began && process->pid == session->options->pids[0]) {
        session->command_began = true;
        session->report_start_ns = record->time_ns;
    }
    /* exec: nothing of the old image is mapped any more. By now it may be gone or have execed again: then
     * comm will do. */
    address_space_clear(&process->space);
    if (proc_read_executable(process->pid, &executable) == 0)
        process_set_executable(process, executable);
    else
        process_set_executable(process, record->comm.comm);
}

/* With the engine `tick`; `trace` cuts what goes beyond. */
static bool is_after_window(const struct session *session, const struct perf_record *record)
{
    return session->calibration != NULL && session->window_end_ns != 0 &&
           record->time_ns >= session->window_end_ns;
}

static void handle_fork(struct session *session, const struct perf_record *record)
{
    const struct process *parent = process_table_find_process(session->processes, record->task.parent_pid);
    const struct thread *parent_thread = find_thread(session, record->task.parent_tid);
    const struct thread *known = find_thread(session, record->task.tid);
    struct process *process = process_table_find_process(session->processes, record->task.pid);
    bool is_thread = record->task.pid == record->task.parent_pid;
    uint32_t ended;

    if (parent == NULL || (!is_thread && !session->options->children) || is_after_window(session, record))
        return;
    /* Found otherwise before this record was read. */
    if (known != NULL && record->time_ns <= session->threads.items[known->id].found_ns)
        return;
    if (id_map_get(&session->last_ended_of_tid, (uint64_t)record->task.tid, &ended) &&
        record->time_ns <= process_table_thread(session->processes, ended)->end_ns)
        return;
    if (!is_thread) {
        process = session_add_forked_process(session, parent, record->task.pid, record->time_ns);
        session_watch_process(session, record->task.pid);
    }
    if (process != NULL)
        session_add_thread(session, process, record->task.tid,
                           parent_thread != NULL ? parent_thread->comm : process->executable, record->time_ns,
                           STATE_RUNNABLE, true);
}

static void handle_exit(struct session *session, const struct perf_record *record)
{
    struct thread *thread = process_table_find_thread(session->processes, record->task.tid);

    if (thread == NULL)
        return;
    /* The engine `tick` brings the last counters with the end. */
    if (session->calibration != NULL)
        session->threads.items[thread->id].exit_ns = record->time_ns;
    else
        session_end_thread(session, thread, record->time_ns, NULL);
}

void session_end_thread(struct session *session, struct thread *thread, uint64_t end_ns,
                        const struct thread_counters *counters)
{
    struct process *process;

    if (session->timeline != NULL)
        timeline_end(session->timeline, thread->id, end_ns);
    else
        calibration_end(session->calibration, thread->id, end_ns, counters);
    process_table_end_thread(session->processes, thread, end_ns);
    id_map_put(&session->last_ended_of_tid, (uint64_t)thread->tid, thread->id);
    process = process_table_process(session->processes, thread->process);
    if (process->live_threads == 0) {
        process_table_end_process(session->processes, process, end_ns);
        session_unwatch_process(session, process->pid);
    }
}

/* Records of scheduling are missing: what each thread did since then is in doubt, but not where the kernel's
 * own count of switches says that none of its was missed. */
static void handle_lost(struct session *session, const struct perf_record *record)
{
    uint32_t count = process_table_thread_count(session->processes);

    session->profile->loss.lost_events += record->lost.count;
    if (record->lost.stacks_only)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct thread *thread = process_table_thread(session->processes, i);
        const struct thread_record *known = &session->threads.items[i];
        struct proc_schedstat now;

        if (!thread->alive || session->timeline == NULL)
            continue;
        if (known->begin_known &&
            proc_read_schedstat(process_table_process(session->processes, thread->process)->pid, thread->tid,
                                &now) == 0 &&
            now.switches_in - known->begin.switches_in <= timeline_switches_in(session->timeline, i))
            continue;
        timeline_doubt(session->timeline, i, record->lost.since_ns);
    }
}

void session_handle_record(struct session *session, const struct perf_record *record)
{
    switch (record->type) {
    case RECORD_SWITCH:
        handle_switch(session, record);
        break;
    case RECORD_WAKEUP: {
        const struct thread *thread = find_thread(session, record->wakeup.tid);

        if (thread != NULL)
            timeline_wakeup(session->timeline, thread->id, record->time_ns);
        break;
    }
    case RECORD_ON_CPU:
    case RECORD_SWITCH_STACK:
        handle_stack(session, record);
        break;
    case RECORD_TASK_SWITCH:
        handle_task_switch(session, record);
        break;
    case RECORD_MMAP:
        handle_mmap(session, record);
        break;
    case RECORD_COMM:
        handle_comm(session, record);
        break;
    case RECORD_FORK:
        handle_fork(session, record);
        break;
    case RECORD_EXIT:
        handle_exit(session, record);
        break;
    case RECORD_LOST:
        handle_lost(session, record);
        break;
    case RECORD_OTHER:
        break;
    }
}
