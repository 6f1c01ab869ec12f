/* A speedscope file as it stands in memory once it was read, before it becomes a profile: names are ids of its own
 * strings, frames are indices that nobody has checked yet (they may come after the stacks that use them).
 *
 *   struct speedscope_file *file = speedscope_file_create();
 *   r = speedscope_file_feed(file, bytes, size, &err);       // any number of times
 *   r = speedscope_file_end(file, &err);
 */
#ifndef STALLGRAPH_EXPORTERS_SPEEDSCOPE_FILE_H
#define STALLGRAPH_EXPORTERS_SPEEDSCOPE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/base/error.h"
#include "profiler/base/string_table.h"
#include "profiler/base/vec.h"
#include "profiler/model/histogram.h"
#include "profiler/model/profile.h"
#include "profiler/model/stack_table.h"

/* What of a file is taken at most. */
enum {
    SPEEDSCOPE_READ_MAX_STACKS = 20000000,
    SPEEDSCOPE_READ_MAX_DEPTH = 20000,
    SPEEDSCOPE_READ_MAX_ITEMS = 4000000, /* frames, profiles, threads ... of each */
};

struct file_frame {
    uint32_t name, file, kind, wait, build_id; /* 0 = not given */
};

struct file_process {
    int64_t pid;
    uint32_t name;
};

struct file_thread {
    uint64_t process;
    int64_t tid;
    uint32_t name;
    bool is_main;
    uint64_t begin_ns, end_ns, lifetime_ns, unsampled_ns, lost_ns;
    int64_t kernel_on_cpu_ns, kernel_runnable_ns; /* -1 = not given */
    uint64_t time_ns[STATE_COUNT];                /* by the numbers of the file's own states */
};

struct file_wait {
    uint32_t stack; /* of the file's stacks */
    uint64_t count, sum_ns;
    uint64_t bins[HISTOGRAM_BINS];
};

struct file_listener {
    uint32_t address;
    uint64_t looks, queued_looks, backlog, queue_max, queue_sum, connections_max, connections_sum, unread_max,
        unread_sum;
};

struct file_peer {
    uint32_t address;
    uint64_t looks, in_flight_max, in_flight_sum, connections_max, connections_sum;
};

struct file_lock {
    uint32_t stack, owner_stack; /* of the file's stacks */
    uint32_t owner_state;        /* name */
    int64_t owner;               /* -1 = not known */
    uint64_t waited_ns;
};

struct file_profile {
    uint32_t type, name, unit;
    double start, end;
    int64_t thread; /* SPEEDSCOPE_NO_KEY: not ours */
    VEC_OF(uint32_t) stacks;
    VEC_OF(double) weights;
    VEC_OF(int) states;
};

enum { SPEEDSCOPE_NO_KEY = -2 };

/* Under "stallgraph". */
struct file_own {
    bool is_there;
    uint64_t version, duration_ns, cpu_count;
    uint32_t title, command_line, host, kernel, engines;
    double frequency_hz;
    int64_t start_unix_s, start_unix_ns;
    struct profile_loss loss;
    struct profile_looks looks;
    struct profile_quota quota;
};

struct speedscope_file {
    struct string_table *strings;
    struct stack_table *stacks; /* of frame indices */
    uint32_t name, exporter;
    struct file_own own;
    VEC_OF(struct file_frame) frames;
    VEC_OF(uint32_t) states; /* names: what the numbers of states stand for */
    VEC_OF(struct file_process) processes;
    VEC_OF(struct file_thread) threads;
    VEC_OF(struct file_wait) waits;
    VEC_OF(struct file_listener) listeners;
    VEC_OF(struct file_peer) peers;
    VEC_OF(struct file_lock) locks;
    VEC_OF(struct file_profile) profiles;
    struct speedscope_parser *parser; /* private */
};

struct speedscope_file *speedscope_file_create(void);
void speedscope_file_destroy(struct speedscope_file *file); /* NULL allowed */

/* As json_stream_feed. */
int speedscope_file_feed(struct speedscope_file *file, const void *bytes, size_t size, struct error *err);
int speedscope_file_end(struct speedscope_file *file, struct error *err);

#endif
