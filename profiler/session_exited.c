/* CPU time of threads that lived and ended between two looks: the process's CPU clock counts them, minus
 * what its known threads account for. */
#include <stdlib.h>
#include <time.h>

#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/session_internal.h"

/* Clock and threads are not read in one moment, and the kernel's counters lag by up to a tick of its own. */
static const uint64_t noise_ns = 10 * NS_PER_MS;

static bool process_clock_ns(pid_t pid, uint64_t *ret_ns)
{
    clockid_t clock;
    struct timespec t;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
        return false;
    *ret_ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
    return true;
}

/* A thread that a scan or a record told of, but no look: it was gone before the next pass. How it spent its
 * life is not known, so it gets none; its CPU time is in its process's clock. */
void session_exited_end_unseen(struct session *session)
{
    uint32_t count = process_table_thread_count(session->processes);
    uint32_t i = session->tick.first_unseen;

    for (; i < count; i++) {
        struct thread *thread = process_table_thread(session->processes, i);
        const struct thread_record *known = &session->threads.items[i];
        struct proc_stat ignored;

        if (!thread->alive || known->start_time_ns != 0)
            continue;
        if (known->found_ns >= session->tick.pass_begin_ns ||
            proc_read_stat(process_table_process(session->processes, thread->process)->pid, thread->tid,
                           &ignored) == 0)
            break;
        session_end_thread(session, thread, thread->begin_ns, NULL);
    }
    session->tick.first_unseen = i;
}

void session_exited_note(struct session *session)
{
    uint32_t count = process_table_process_count(session->processes);

    for (uint32_t i = 0; i < count; i++) {
        const struct process *process = process_table_process(session->processes, i);
        struct target *target = &session->targets.items[i];
        uint64_t now_ns;

        if (!process->alive || !process_clock_ns(process->pid, &now_ns))
            continue;
        if (!target->clock_known)
            target->begin_cpu_ns = process->begin_ns > session->window_start_ns ? 0 : now_ns;
        target->clock_known = true;
        target->end_cpu_ns = now_ns;
    }
}

static uint64_t accounted_ns(const struct session *session, const struct thread *thread)
{
    size_t count;
    const struct span *spans = calibration_spans(session->calibration, thread->id, &count);
    uint64_t sum_ns = 0;

    for (size_t i = 0; i < count; i++)
        if (spans[i].state == STATE_ON_CPU)
            sum_ns += spans[i].duration_ns;
    return sum_ns;
}

/* As one thread, or as several where one would have lived longer than the window. They stand at its end. */
static void add_exited_threads(struct session *session, struct process *process, uint64_t cpu_ns)
{
    uint64_t window_ns = session->window_end_ns - session->window_start_ns;
    uint32_t stack =
        stack_table_push(session->stacks, STACK_EMPTY, session_synthetic_location(session, "[exited]"));

    while (cpu_ns > 0) {
        uint64_t part_ns = cpu_ns < window_ns ? cpu_ns : window_ns;
        uint64_t begin_ns = session->window_end_ns - part_ns;
        struct thread *thread =
            session_add_thread(session, process, 0, "[exited]", begin_ns, STATE_ON_CPU, true);

        calibration_on_cpu_stack(session->calibration, thread->id, session->window_end_ns, stack);
        calibration_end(session->calibration, thread->id, session->window_end_ns,
                        &(struct thread_counters){.on_cpu_ns = part_ns});
        process_table_end_thread(session->processes, thread, session->window_end_ns);
        cpu_ns -= part_ns;
    }
}

void session_exited_add(struct session *session)
{
    uint32_t process_count = process_table_process_count(session->processes);
    uint32_t thread_count = process_table_thread_count(session->processes);
    uint64_t *known_ns = memory_zeroed(process_count, sizeof *known_ns);

    for (uint32_t i = 0; i < thread_count; i++) {
        const struct thread *thread = process_table_thread(session->processes, i);

        known_ns[thread->process] += accounted_ns(session, thread);
    }
    for (uint32_t i = 0; i < process_count; i++) {
        const struct target *target = &session->targets.items[i];
        uint64_t used_ns = target->end_cpu_ns - target->begin_cpu_ns;

        if (target->clock_known && used_ns > known_ns[i] + noise_ns)
            add_exited_threads(session, process_table_process(session->processes, i), used_ns - known_ns[i]);
    }
    free(known_ns);
}
