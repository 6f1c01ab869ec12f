/* A finished profile: all that an exporter needs and nothing else. Self-contained (every name is a string of
 * its own table), so that one that was read back from a file is as good as one that was just taken.
 *
 * Exporters get it const. Whoever makes one: profile_create, intern strings and frames, add processes,
 * threads and samples, profile_destroy. */
#ifndef STALLGRAPH_MODEL_PROFILE_H
#define STALLGRAPH_MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/base/string_table.h"
#include "profiler/model/histogram.h"
#include "profiler/model/stack_table.h"
#include "profiler/model/wait.h"
#include "profiler/model/wait_length.h"

/* What a thread is doing. Runnable (wants a CPU and has none; preemption and CPU quota included) is never
 * blocked. */
enum thread_state {
    STATE_ON_CPU,
    STATE_RUNNABLE,
    STATE_BLOCKED,
    STATE_IDLE,    /* blocked, waiting for work */
    STATE_STOPPED, /* by a signal or a tracer */
    STATE_UNKNOWN, /* events were lost: the time passed, what happened in it is not known */
    STATE_COUNT,
};

/* "on-cpu", "runnable", "blocked", "idle", "stopped", "unknown". */
const char *thread_state_name(enum thread_state state);
bool thread_state_parse(const char *name, enum thread_state *ret_state);

enum frame_kind {
    FRAME_USER,
    FRAME_KERNEL,
    FRAME_WAIT, /* the leaf of every stack that is not on-CPU: "[wait: poll]", "[runnable]", "[stopped]" */
    FRAME_SYNTHETIC, /* "[truncated]", "[unsampled]", "[lost]", "[on-cpu: stack not permitted]" ... */
    FRAME_KIND_COUNT,
};

/* "user", "kernel", "wait", "synthetic". */
const char *frame_kind_name(enum frame_kind kind);
bool frame_kind_parse(const char *name, enum frame_kind *ret_kind);

/* One function of one module. Two frames with equal fields are one frame. Ids are strings of the profile's
 * table; 0 = unknown. */
struct frame {
    uint32_t name;     /* raw bytes as found in the target: an exporter makes them safe */
    uint32_t module;   /* base name of the file, "[kernel]", "[jit]"; 0 for wait and synthetic frames */
    uint32_t build_id; /* lower-case hexadecimal */
    enum frame_kind kind;
    enum wait_kind wait; /* FRAME_WAIT only, else WAIT_NONE */
};

/* A run of one stack in one state. Times count from the start of the window. */
struct sample {
    uint64_t start_ns;
    uint64_t weight_ns; /* > 0 */
    uint32_t stack;     /* of the profile's stacks: root first to the leaf; wait frame included */
    enum thread_state state;
};

/* A thread's account of the window. Everything in nanoseconds.
 * time[] is what the samples add up to, by state; lifetime_ns is how long it was alive in the window; the
 * kernel's own counters (schedstat) stand beside it where they could be read at both ends. */
struct ledger {
    uint64_t time_ns[STATE_COUNT];
    uint64_t lifetime_ns;
    bool has_kernel_counters;
    uint64_t kernel_on_cpu_ns;
    uint64_t kernel_runnable_ns;
    uint64_t unsampled_ns; /* part of time_ns[STATE_ON_CPU] that no sample says the stack of */
    uint64_t lost_ns;      /* time whose stack, or state, was lost with events */
};

struct profile_process {
    pid_t pid;
    uint32_t name; /* base name of the executable */
};

struct profile_thread {
    uint32_t process; /* index */
    pid_t tid;
    uint32_t name; /* string id of the thread's latest comm */
    bool is_main;
    uint64_t begin_ns; /* alive in [begin_ns, end_ns) of the window */
    uint64_t end_ns;
    struct ledger ledger;
    struct sample *samples; /* in time order, not overlapping; adjacent equal ones are merged */
    size_t sample_count;
    size_t sample_capacity;
};

/* Every wait of one stack, counted exactly (--counts). */
struct counted_wait {
    uint32_t stack; /* of the profile's stacks, wait frame included */
    struct histogram histogram;
};

enum { LOCK_OWNER_UNKNOWN = UINT32_MAX };

/* How long threads waited for a lock while a thread held it that was at one place. */
struct lock_wait {
    uint32_t stack; /* of those that waited, wait frame included */
    uint32_t owner; /* index of a thread, or LOCK_OWNER_UNKNOWN */
    uint32_t owner_stack;
    enum thread_state owner_state; /* STATE_UNKNOWN of an unknown owner */
    uint64_t waited_ns;            /* of all who waited, added up */
};

/* Totals that are not of one thread. */
struct profile_loss {
    uint64_t lost_events;      /* records the kernel dropped, as it counted them */
    uint64_t unwound_stacks;   /* stacks walked */
    uint64_t truncated_stacks; /* of these, that did not reach their start */
    uint64_t unplaced_waits;   /* counted, at places that no look saw: their stack is not known */
    uint64_t unpermitted_ns;   /* thread time whose stack could not be had for lack of rights */
};

/* How the engine `tick` went; all zero with another. */
struct profile_looks {
    uint64_t passes;          /* over all threads */
    uint64_t stacks_taken;    /* of threads that were newly off their CPU */
    uint64_t stacks_left_out; /* not taken, chosen at random, to keep within the budget */
    uint64_t stacks_raced;    /* not whole: the thread moved meanwhile */
    uint64_t stacks_recalled; /* of these, known from an earlier wait at the same place */
    uint64_t stacks_deep;     /* of those taken: longer than their copy, the rest was read afterwards */
    uint64_t deep_failed; /* of these: in vain, since the thread had moved by then, or it could not be read */
    uint64_t deep_recalled; /* of these, known from an earlier wait with the same frames in the copy */
    struct wait_length_looks by_wait_length[WAIT_LENGTH_CLASSES];
};

/* The CPU quota of the target's control group, or of one that it lies in: of several the one that held it up most. All zero
 * without one, and where that cannot be read. */
struct profile_quota {
    uint64_t periods; /* of the window; counted by the kernel when they end */
    uint64_t throttled_periods;
    uint64_t throttled_ns; /* summed over CPUs */
    uint64_t quota_ns,
        period_ns; /* so much CPU time in each period; 0 = not known, or taken away meanwhile */
};

/* One of the target's listening TCP sockets, as looks at it about once a second have found it. */
struct profile_listener {
    uint32_t address; /* "tcp 0.0.0.0:8080" */
    uint32_t looks;
    uint32_t queued_looks; /* of these, with connections that nobody had accepted yet */
    uint32_t backlog;      /* how many the kernel lets wait there */
    uint32_t queue_max;
    uint64_t queue_sum;       /* over the looks; mean = sum / looks */
    uint32_t connections_max; /* accepted ones */
    uint64_t connections_sum;
    uint32_t unread_max; /* of these, with bytes that nobody had read yet */
    uint64_t unread_sum;
};

/* A far end that the target has connected to, likewise. */
struct profile_peer {
    uint32_t address; /* "tcp 10.0.0.5:5432" */
    uint32_t looks;
    uint32_t in_flight_max; /* connections whose last bytes went out: an answer is awaited */
    uint64_t in_flight_sum;
    uint32_t connections_max;
    uint64_t connections_sum;
};

struct profile_meta {
    char *title;        /* "srv (1234)"; never NULL */
    char *command_line; /* of the profiler; never NULL */
    char *host;
    char *kernel;
    char *engines;         /* which engines and rights were chosen, one line */
    double frequency_hz;   /* asked for */
    int64_t start_unix_ns; /* wall clock at the window's start */
    uint64_t duration_ns;  /* length of the window */
    uint32_t cpu_count;    /* of the machine; 0 = not known */
};

struct profile {
    struct string_table *strings;
    struct frame *frames;
    size_t frame_count;
    struct stack_table *stacks; /* of frame ids */
    struct profile_process *processes;
    size_t process_count;
    struct profile_thread *threads;
    size_t thread_count;
    struct counted_wait *counted_waits; /* empty unless waits were counted */
    size_t counted_wait_count;
    struct lock_wait *lock_waits; /* engine `tick` only */
    size_t lock_wait_count;
    struct profile_listener *listeners;
    size_t listener_count;
    struct profile_peer *peers;
    size_t peer_count;
    struct profile_loss loss;
    struct profile_looks looks;
    struct profile_quota quota;
    struct profile_meta meta;
    struct profile_index *index; /* private */
};

struct profile *profile_create(void);
void profile_destroy(struct profile *profile);

/* The id of the frame, added if it is new. */
uint32_t profile_intern_frame(struct profile *profile, const struct frame *frame);
uint32_t profile_add_process(struct profile *profile, pid_t pid, const char *name);
uint32_t profile_add_thread(struct profile *profile, uint32_t process, pid_t tid, const char *name,
                            bool is_main);

/* Appends to a thread's samples; an equal, adjacent one grows instead. start_ns must not lie before the end
 * of the last one. A weight of 0 is ignored. The thread's ledger.time_ns grows likewise. */
void profile_add_sample(struct profile *profile, uint32_t thread, const struct sample *sample);

/* Adds to what was counted for the stack. */
void profile_add_counted_wait(struct profile *profile, uint32_t stack, const struct histogram *histogram);

void profile_add_lock_wait(struct profile *profile, const struct lock_wait *wait);
void profile_add_listener(struct profile *profile, const struct profile_listener *listener);
void profile_add_peer(struct profile *profile, const struct profile_peer *peer);

/* A meta text is replaced by a copy. */
void profile_set_text(char **field, const char *text);

#endif
