/* What each kind of event asks of perf_event_open(2). */
#ifndef STALLGRAPH_COLLECT_PERF_EVENT_H
#define STALLGRAPH_COLLECT_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/collect/perf_record.h"

/* The stack that comes with a sample. Copies are multiples of 8 bytes; with registers a sample stays below 64
 * KiB. */
struct perf_event_stack {
    uint32_t copy_bytes; /* of the user stack, with the user registers; 0 = none */
    bool user_chain;     /* by frame pointers */
    bool kernel_chain;
};

/* What makes an event of the scheduler take its sample. */
enum perf_trigger {
    PERF_TRIGGER_TRACEPOINT, /* of tracepoint_id */
    PERF_TRIGGER_BPF,        /* a BPF program, by perf_filter.h */
    /* context-switches, for PERF_SOURCE_SWITCH_STACK: spoilt when another one samples on the same CPU
       (perf_filter.bpf.c) */
    PERF_TRIGGER_SOFTWARE,
};

struct perf_event_spec {
    enum perf_source source;
    enum perf_trigger trigger;     /* PERF_SOURCE_SWITCH, _WAKEUP, _SWITCH_STACK */
    struct perf_event_stack stack; /* sampling sources only */
    bool hardware_cycles;          /* PERF_SOURCE_ON_CPU; else cpu-clock */
    double frequency_hz;           /* PERF_SOURCE_ON_CPU */
    uint64_t tracepoint_id;        /* PERF_TRIGGER_TRACEPOINT */
    bool task_records;             /* mmap of code, comm, exec, fork and exit */
    bool switch_records;           /* PERF_RECORD_SWITCH */
    bool exclude_kernel;
    bool inherit;          /* threads and processes that the thread creates later */
    bool inherit_thread;   /* of these, threads alone; before Linux 5.13 processes too */
    uint32_t wakeup_bytes; /* of the ring: readers are woken at this much new data */
};

/* The sample_type of all events of that spec, as the parser must know it. */
uint64_t perf_event_sample_type(const struct perf_event_spec *spec);

/* Pure. The event is switched off; cpu spreads the sampling periods, so that CPUs do not tick in step with
 * each other. */
void perf_event_fill_attr(const struct perf_event_spec *spec, int cpu, struct perf_event_attr *ret_attr);

/* Opens the event; what older kernels do not know and can be done without is left out. Returns an fd or
 * -errno. */
int perf_event_open(const struct perf_event_spec *spec, pid_t tid, int cpu);

/* The event that runs the BPF program which takes stacks: context-switches, and no sample of its own.
 * Returns an fd or -errno. */
int perf_event_open_switch_trigger(int cpu);

/* PERF_SAMPLE_ID. Returns 0 or -errno. */
int perf_event_read_id(int event_fd, uint64_t *ret_id);
/* Records that the kernel could not write for this event (Linux 6.0); 0 when it does not tell. */
uint64_t perf_event_read_lost(int event_fd);

#endif
