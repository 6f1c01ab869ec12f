/* What the tick's BPF programs and user space share: layouts, and limits that both know. */
#ifndef STALLGRAPH_COLLECT_BPF_TICK_RECORD_H
#define STALLGRAPH_COLLECT_BPF_TICK_RECORD_H

#include <linux/types.h>

enum {
    TICK_KERNEL_FRAMES = 32,
    TICK_STACK_BYTES = 16384, /* of the user stack, from the stack pointer upwards */
    TICK_MAX_PROCESSES = 4096,
    TICK_SEEN_THREADS = 1 << 17,
    TICK_MAX_REFUSED_THREADS = 1024,
    TICK_AREA_BYTES = 4 << 20,
    TICK_PLAIN_WAITS = 512, /* numbers of system calls */
};

enum tick_flags {
    TICK_ON_CPU = 1,      /* it was on a CPU */
    TICK_CHANGED = 2,     /* it was switched while it was looked at: registers and stacks are worth nothing */
    TICK_STACK_FAULT = 4, /* its stack could not be read */
    TICK_NOT_CHOSEN = 8,  /* stacks left out, to keep within the budget */
    TICK_STACK_REFUSED = 16, /* user space said not to touch this thread's memory */
    TICK_UNCHANGED =
        32, /* off its CPU all the time since it was given out last: its stacks are as they were */
    TICK_THROTTLED = 64, /* wants a CPU, and is kept from it by a quota */
};

/* One thread as a pass found it. stack_bytes bytes of its user stack, from sp upwards, follow, and then as many as make it
 * a multiple of 8. */
struct tick_record {
    __u32 record_bytes; /* with the stack */
    __u32 tid, pid;     /* numbers of the first pid namespace */
    __u32 flags;
    __u32 state; /* __state of task_struct: 0 = wants to run */
    __u32 kernel_count;
    __u32 stack_bytes;
    __u32 reserved;
    __u64 time_ns;       /* CLOCK_MONOTONIC */
    __u64 start_time_ns; /* since boot: with the tid, the thread's identity */
    __u64 on_cpu_ns, runnable_ns, voluntary_switches, involuntary_switches;
    __u64 switches_in; /* as the third number of /proc/PID/task/TID/schedstat */
    __u64 stack_end;   /* of the mapping that sp is in; 0 = not looked up */
    __s64 syscall;     /* orig_ax: number of the system call, -1 = it came into the kernel another way */
    __u64 arguments[6];
    __u64 ip, sp, bp, bx, r12, r13, r14, r15;
    __u64 kernel[TICK_KERNEL_FRAMES];
};

/* A thread that ended, with its last counters; through the ring buffer. */
struct tick_exit {
    __u32 tid, pid;
    __u64 time_ns;
    __u64 start_time_ns;
    __u64 on_cpu_ns, runnable_ns, voluntary_switches, involuntary_switches;
};

#endif
