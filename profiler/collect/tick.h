/* Off-CPU engine `tick`: looks at all threads of the target at the sampler's own pace, without stopping them.
 *
 *   backend->open(&options, &tick, &err);
 *   backend->add_process(tick, pid);
 *   each tick:
 *       do {
 *           more = backend->pass(tick, all, &err);
 *           while (backend->next(tick, &look)) ...      // a view, valid until the next call
 *       } while (more > 0);
 *
 * A backend is a const struct; a new one is one file, one row, one test. */
#ifndef STALLGRAPH_COLLECT_TICK_H
#define STALLGRAPH_COLLECT_TICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/base/error.h"
#include "profiler/model/raw_sample.h"

enum tick_look_state {
    TICK_RUNNING,
    TICK_RUNNABLE, /* wants a CPU, has none */
    TICK_AWAKE,    /* one of the two: it cannot be told which */
    TICK_BLOCKED,
    TICK_STOPPED,
    TICK_ENDED, /* its last counters; nothing else is set */
};

enum tick_stack {
    TICK_STACK_WHOLE,    /* registers and stacks are of one moment */
    TICK_STACK_RACED,    /* it was switched meanwhile: they may mix two moments, and can only be a hint */
    TICK_STACK_LEFT_OUT, /* to keep within the budget */
    TICK_STACK_NOT_PERMITTED, /* the rights to look at its registers and memory are missing */
    TICK_STACK_NONE, /* it runs, or its memory could not be read: registers may be there, the stack is not */
};

/* One thread as a pass found it. Only threads that are not where they were at the pass before are given out.
 */
struct tick_look {
    pid_t pid, tid;
    enum tick_look_state state;
    enum tick_stack stack;
    bool unchanged;       /* off its CPU since it was given out last: only counters and time are set */
    bool uninterruptible; /* state D */
    bool throttled;       /* TICK_RUNNABLE, and a CPU quota is why; false where that cannot be told */
    uint64_t time_ns;
    uint64_t start_time_ns; /* since boot; 0 = unknown */
    uint64_t on_cpu_ns, runnable_ns, voluntary_switches, involuntary_switches;
    uint64_t
        switches_in; /* how often it was given a CPU: as long as that stays, so does its stack. 0 = not known */
    uint64_t stack_end; /* of the mapping of its stack; 0 = not known */
    int64_t syscall;    /* -1 = none: it came into the kernel another way, a page fault for one */
    uint64_t arguments[6];
    const char *wait_channel; /* kernel function it is blocked in, without stacks' rights; NULL = not known */
    struct raw_sample sample; /* registers, user stack and kernel chain, as far as stack says */
};

struct tick_options {
    bool children;      /* processes that are forked by wanted ones are wanted too */
    bool kernel_stacks; /* of all that do not run; else where they help to tell the wait */
    bool only_iterator; /* of BPF: as on kernels before 6.7 */
};

struct tick; /* a backend's own state */

struct tick_backend {
    const char *name;
    int (*open)(const struct tick_options *options, struct tick **ret_tick, struct error *err);
    void (*close)(struct tick *tick); /* NULL allowed */
    /* 0 or -errno; a process that is gone is no error. */
    int (*add_process)(struct tick *tick, pid_t pid);
    void (*remove_process)(struct tick *tick, pid_t pid);
    /* Looks at all threads. all: gives out those that have not changed too. Returns 1 when there is more than
     * fits in memory: take what next() has and call again; 0 when that was all; -errno. */
    int (*pass)(struct tick *tick, bool all, struct error *err);
    bool (*next)(struct tick *tick, struct tick_look *ret_look);
    /* The share of threads whose stacks are taken, 0 to 1, chosen at random at each look. */
    void (*set_stack_share)(struct tick *tick, double share);
    /* CPU time that was used for this outside our own process. */
    uint64_t (*cpu_ns)(const struct tick *tick);
};

extern const struct tick_backend tick_bpf;  /* open gives -ENOTSUP in builds without BPF */
extern const struct tick_backend tick_proc; /* reads /proc: needs no rights but those over the target */

#endif
