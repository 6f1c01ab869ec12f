/* Processes and threads of the target over the whole session. Entries are never removed; a number (pid, tid)
 * that the kernel gives out again is a new entry. */
#ifndef STALLGRAPH_MODEL_PROCESS_H
#define STALLGRAPH_MODEL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/model/address_space.h"

enum { PROCESS_COMM_SIZE = 16, PROCESS_NONE = UINT32_MAX };

struct process {
    uint32_t id;
    pid_t pid;
    char *executable; /* base name of the executable, latest exec; never NULL; comm where the link is not
                         readable */
    struct address_space space;
    bool alive;
    uint32_t live_threads;
    uint64_t begin_ns; /* first seen, CLOCK_MONOTONIC */
};

struct thread {
    uint32_t id;
    uint32_t process;
    pid_t tid;
    char comm[PROCESS_COMM_SIZE]; /* latest name; any bytes, NUL-terminated */
    bool is_main;
    bool alive;
    uint64_t begin_ns; /* birth, or the window's start for one that was there before */
    uint64_t end_ns;   /* exit; 0 while alive */
};

struct process_table;

struct process_table *process_table_create(void);
void process_table_destroy(struct process_table *table);

uint32_t process_table_process_count(const struct process_table *table);
uint32_t process_table_thread_count(const struct process_table *table);
/* Pointers are valid until the table is destroyed. */
struct process *process_table_process(const struct process_table *table, uint32_t id);
struct thread *process_table_thread(const struct process_table *table, uint32_t id);

/* The live one with that number, or NULL. */
struct process *process_table_find_process(const struct process_table *table, pid_t pid);
struct thread *process_table_find_thread(const struct process_table *table, pid_t tid);

/* A live one of the same number ends at begin_ns first: its end was missed. */
struct process *process_table_add_process(struct process_table *table, pid_t pid, const char *executable,
                                          uint64_t begin_ns);
struct thread *process_table_add_thread(struct process_table *table, struct process *process, pid_t tid,
                                        const char *comm, uint64_t begin_ns);

/* The process lives on when its last thread ends: live_threads says so. */
void process_table_end_thread(struct process_table *table, struct thread *thread, uint64_t end_ns);
/* Ends its threads too. */
void process_table_end_process(struct process_table *table, struct process *process, uint64_t end_ns);
void process_set_executable(struct process *process, const char *executable);
void thread_set_comm(struct thread *thread, const char *comm);

#endif
