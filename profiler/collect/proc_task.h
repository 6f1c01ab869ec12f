/* What /proc says of processes and threads. proc(5). All calls take numbers of our own pid namespace and
 * return 0 or -errno: -ESRCH when the process or thread is gone. */
#ifndef STALLGRAPH_COLLECT_PROC_TASK_H
#define STALLGRAPH_COLLECT_PROC_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    char comm[64]; /* raw bytes; it may hold ')' and newlines, so the fields are found from the last ')' */
    char state;    /* R S D T t Z X I */
    pid_t parent_pid;
    bool kernel_thread; /* flags & PF_KTHREAD */
    uint64_t user_ticks, system_ticks;
    uint64_t thread_count; /* of its process; state Z with more than one: only the main thread has ended */
    uint64_t start_time_ticks; /* since boot: with the number, a thread's identity */
};

/* Pure: the text of a stat file. -EBADMSG when it is none. */
int proc_stat_parse(const char *text, size_t length, struct proc_stat *ret_stat);

struct proc_schedstat {
    uint64_t on_cpu_ns, runnable_ns, switches_in;
};

/* Pure: "123456789 4567 89\n". */
int proc_schedstat_parse(const char *text, size_t length, struct proc_schedstat *ret_schedstat);

/* What a thread's status file says of its scheduling. */
struct proc_status {
    char state; /* as in proc_stat */
    uint64_t voluntary_switches, involuntary_switches;
};

/* Pure: the text of a status file. -EBADMSG when a line is missing. */
int proc_status_parse(const char *text, size_t length, struct proc_status *ret_status);

/* tid 0: the process as a whole (the ticks of all its threads). */
int proc_read_stat(pid_t pid, pid_t tid, struct proc_stat *ret_stat);
int proc_read_schedstat(pid_t pid, pid_t tid, struct proc_schedstat *ret_schedstat);
/* The real comm (up to 15 bytes + NUL), as /proc/PID/task/TID/comm has it, without the newline that ends it.
 */
int proc_read_comm(pid_t pid, pid_t tid, char ret_comm[16]);
/* Base name of the executable's link, without " (deleted)"; of comm where the link cannot be read. Caller
 * frees. */
int proc_read_executable(pid_t pid, char **ret_name);
/* Innermost number of NSpid in status; pid itself on kernels without. */
pid_t proc_read_inner_pid(pid_t pid);

/* Ids in ascending order; the caller frees *ret_ids. */
int proc_list_threads(pid_t pid, pid_t **ret_ids, size_t *ret_count);
int proc_list_processes(pid_t **ret_ids, size_t *ret_count);
/* The roots and all their live descendants (kernel threads and zombies left out), ascending, each once.
 * -ESRCH: none lives. */
int proc_list_descendants(const pid_t *roots, size_t root_count, pid_t **ret_ids, size_t *ret_count);

/* What a blocked thread's syscall file says: "7 0x7ffc 0x1 0xffffffff 0x0 0x0 0x0 0x7ffd4a8 0x7f31c\n" =
 * number, six arguments, sp, pc; "running\n" for a thread that runs; "-1 SP PC\n" when blocked outside a
 * system call. */
struct proc_syscall {
    bool running;
    int64_t number;
    uint64_t arguments[6];
    uint64_t sp, pc;
};
int proc_syscall_parse(const char *text, size_t length, struct proc_syscall *ret_syscall);
int proc_read_syscall(pid_t pid, pid_t tid, struct proc_syscall *ret_syscall);

#endif
