#include "profiler/model/process.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

struct process_table {
    VEC_OF(struct process *) processes;
    VEC_OF(struct thread *) threads;
    struct id_map live_process_by_pid;
    struct id_map live_thread_by_tid;
};

struct process_table *process_table_create(void)
{
    return memory_zeroed(1, sizeof(struct process_table));
}

void process_table_destroy(struct process_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->processes.count; i++) {
        struct process *process = table->processes.items[i];

        address_space_finish(&process->space);
        free(process->executable);
        free(process);
    }
    for (size_t i = 0; i < table->threads.count; i++)
        free(table->threads.items[i]);
    free(table->processes.items);
    free(table->threads.items);
    id_map_finish(&table->live_process_by_pid);
    id_map_finish(&table->live_thread_by_tid);
    free(table);
}

uint32_t process_table_process_count(const struct process_table *table)
{
    return (uint32_t)table->processes.count;
}

uint32_t process_table_thread_count(const struct process_table *table)
{
    return (uint32_t)table->threads.count;
}

struct process *process_table_process(const struct process_table *table, uint32_t id)
{
    return table->processes.items[id];
}

struct thread *process_table_thread(const struct process_table *table, uint32_t id)
{
    return table->threads.items[id];
}

struct process *process_table_find_process(const struct process_table *table, pid_t pid)
{
    uint32_t id;

    return id_map_get(&table->live_process_by_pid, (uint64_t)pid, &id) ? table->processes.items[id] : NULL;
}

struct thread *process_table_find_thread(const struct process_table *table, pid_t tid)
{
    uint32_t id;

    return id_map_get(&table->live_thread_by_tid, (uint64_t)tid, &id) ? table->threads.items[id] : NULL;
}

struct process *process_table_add_process(struct process_table *table, pid_t pid, const char *executable,
                                          uint64_t begin_ns)
{
    struct process *process = process_table_find_process(table, pid);

    if (process != NULL)
        process_table_end_process(table, process, begin_ns);
    process = memory_zeroed(1, sizeof *process);
    process->id = (uint32_t)table->processes.count;
    process->pid = pid;
    process->executable = string_copy(executable);
    process->alive = true;
    process->begin_ns = begin_ns;
    VEC_PUSH(&table->processes, process);
    id_map_put(&table->live_process_by_pid, (uint64_t)pid, process->id);
    return process;
}

struct thread *process_table_add_thread(struct process_table *table, struct process *process, pid_t tid,
                                        const char *comm, uint64_t begin_ns)
{
    struct thread *thread = process_table_find_thread(table, tid);

    if (thread != NULL)
        process_table_end_thread(table, thread, begin_ns);
    thread = memory_zeroed(1, sizeof *thread);
    thread->id = (uint32_t)table->threads.count;
    thread->process = process->id;
    thread->tid = tid;
    thread->is_main = tid == process->pid;
    thread->alive = true;
    thread->begin_ns = begin_ns;
    thread_set_comm(thread, comm);
    process->live_threads++;
    VEC_PUSH(&table->threads, thread);
    id_map_put(&table->live_thread_by_tid, (uint64_t)tid, thread->id);
    return thread;
}

void process_table_end_thread(struct process_table *table, struct thread *thread, uint64_t end_ns)
{
    if (!thread->alive)
        return;
    thread->alive = false;
    thread->end_ns = end_ns;
    table->processes.items[thread->process]->live_threads--;
    id_map_remove(&table->live_thread_by_tid, (uint64_t)thread->tid);
}

void process_table_end_process(struct process_table *table, struct process *process, uint64_t end_ns)
{
    if (!process->alive)
        return;
    process->alive = false;
    id_map_remove(&table->live_process_by_pid, (uint64_t)process->pid);
    for (size_t i = 0; i < table->threads.count; i++)
        if (table->threads.items[i]->process == process->id)
            process_table_end_thread(table, table->threads.items[i], end_ns);
}

void process_set_executable(struct process *process, const char *executable)
{
    char *copy = string_copy(executable);

    free(process->executable);
    process->executable = copy;
}

void thread_set_comm(struct thread *thread, const char *comm)
{
    size_t length = strnlen(comm, sizeof thread->comm - 1);

    memset(thread->comm, 0, sizeof thread->comm);
    memcpy(thread->comm, comm, length);
}
