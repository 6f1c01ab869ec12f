/* What a capture is asked for, and what it could get. */
#ifndef STALLGRAPH_COLLECT_PERF_OPTIONS_H
#define STALLGRAPH_COLLECT_PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum perf_stack_mode {
    PERF_STACK_COPY,  /* user registers and a copy of the user stack, for DWARF */
    PERF_STACK_CHAIN, /* the kernel's frame-pointer chain */
    PERF_STACK_BOTH,  /* both, so that a copy that is too short can be continued by the chain */
};

struct perf_capture_options {
    const pid_t *pids; /* the processes to begin with */
    size_t pid_count;
    bool children; /* processes that they fork are wanted too */
    double frequency_hz;
    bool on_cpu;  /* sample stacks while running */
    bool off_cpu; /* switches, wake-ups, and stacks at switch-out */
    enum perf_stack_mode stack_mode;
    bool kernel_chain; /* kernel frames of on-CPU samples; of switch-outs they are always taken where
                          permitted */
};

/* Which way was chosen, for the one line that says so. */
struct perf_capture_choice {
    bool cpu_wide;         /* one event a CPU; else one a thread and CPU */
    bool hardware_cycles;  /* else cpu-clock */
    bool kernel_frames;    /* permitted */
    bool scheduler_events; /* exact switches and wake-ups by tracepoints; else task-switch records, or none */
    bool switch_stacks;    /* stacks of blocked threads can be taken */
    bool filtered_in_kernel; /* by a BPF program */
    uint64_t ring_bytes;     /* in all, after shrinking to the mlock limit */
    char why_not[256];       /* what could not be had and why, or "" */
};

#endif
