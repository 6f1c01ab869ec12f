/* The bytes of a perf ring, made into events. Pure: no file, no allocation; hostile or cut input gives
 * -EBADMSG, never a read beyond the record. Layout: perf_event_open(2), "struct perf_event_header" and
 * PERF_RECORD_*; fields follow the order there.
 *
 * All events of a ring are opened with PERF_SAMPLE_IDENTIFIER | TID | TIME | CPU and sample_id_all, so each
 * record tells its source, thread, time and CPU, whatever else differs. */
#ifndef STALLGRAPH_COLLECT_PERF_RECORD_H
#define STALLGRAPH_COLLECT_PERF_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/base/id_map.h"
#include "profiler/model/raw_sample.h"

/* What an event was opened for. */
enum perf_source {
    PERF_SOURCE_ON_CPU,       /* cycles or cpu-clock, with a stack */
    PERF_SOURCE_SWITCH,       /* sched:sched_switch, raw fields only */
    PERF_SOURCE_WAKEUP,       /* sched:sched_wakeup and sched_wakeup_new, raw fields only */
    PERF_SOURCE_SWITCH_STACK, /* a thread is being switched out: its stack (software event context-switches)
                               */
    PERF_SOURCE_DUMMY,        /* carries only mmap, comm, fork and exit records */
    PERF_SOURCE_COUNT,
};

/* Offsets and sizes of the tracepoint fields that are used, from tracefs' "format" files. */
struct perf_tracepoint_layout {
    uint16_t switch_prev_pid, switch_prev_state, switch_prev_state_size, switch_next_pid;
    uint16_t wakeup_pid;
};

/* What the parser must know of the events whose records stand in a ring. */
struct perf_layout {
    const struct id_map *source_by_id; /* PERF_SAMPLE_ID -> enum perf_source */
    uint64_t sample_type[PERF_SOURCE_COUNT];
    uint64_t registers_mask; /* sample_regs_user, in the kernel's numbers (asm/perf_regs.h) */
    struct perf_tracepoint_layout tracepoint;
};

enum perf_record_type {
    RECORD_ON_CPU,       /* .sample */
    RECORD_SWITCH,       /* .sched_switch */
    RECORD_WAKEUP,       /* .wakeup */
    RECORD_SWITCH_STACK, /* .sample */
    RECORD_TASK_SWITCH,  /* PERF_RECORD_SWITCH of a per-task event: .task_switch */
    RECORD_MMAP,         /* .mmap */
    RECORD_COMM,         /* .comm */
    RECORD_FORK,         /* .task */
    RECORD_EXIT,         /* .task */
    RECORD_LOST,         /* .lost */
    RECORD_OTHER,        /* nothing of interest; skip */
};

struct perf_record {
    enum perf_record_type type;
    uint64_t time_ns;  /* 0 when a RECORD_OTHER does not tell */
    uint64_t event_id; /* PERF_SAMPLE_ID of the event that wrote it; 0 when unknown */
    pid_t pid;         /* of the thread that caused the record; -1 when unknown */
    pid_t tid;
    uint32_t cpu;
    union {
        struct raw_sample sample;
        struct {
            pid_t prev_tid;
            uint64_t
                prev_state; /* kernel bits: 0 running, 1 S, 2 D, 4 T, 8 t, 0x10 X, 0x20 Z, 0x100 preempted */
            pid_t next_tid;
        } sched_switch;
        struct {
            pid_t tid;
        } wakeup;
        struct {
            bool out;
            bool preempted;
        } task_switch;
        struct {
            pid_t pid;
            uint64_t start, size_bytes, file_offset;
            uint64_t device, inode,
                generation; /* device = makedev(major, minor); all 0 when a build id took their place */
            bool executable;
            const char *path; /* NUL-terminated, in the record */
        } mmap;
        struct {
            pid_t pid, tid;
            bool exec;
            const char *comm; /* NUL-terminated, in the record */
        } comm;
        struct {
            pid_t pid, parent_pid; /* processes */
            pid_t tid, parent_tid;
        } task;
        struct {
            uint64_t count; /* records that the kernel dropped; the record's own time is the gap's end */
            uint64_t
                since_ns; /* the gap began after this time; 0 if unknown. perf_capture fills these two in: */
            bool stacks_only; /* nothing but stack samples was dropped */
        } lost;
    };
};

/* Parses the one record that starts at bytes; size_bytes = what is there, at least header.size. Pointers in
 * *ret_record point into bytes. registers are renumbered to enum register_number. Returns the record's size
 * in bytes, or -EBADMSG. */
ssize_t perf_record_parse(const void *bytes, size_t size_bytes, const struct perf_layout *layout,
                          struct perf_record *ret_record);

/* The time of a whole record (size_bytes = header.size), without parsing the rest; 0 when it does not tell.
 */
uint64_t perf_record_time(const void *bytes, size_t size_bytes, const struct perf_layout *layout);

#endif
