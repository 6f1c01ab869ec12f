/* Looks at threads, taken at ticks, made into gapless spans whose lengths are the kernel's own counters.
 *
 * Samples say in which proportions, counters say how much. Between two looks at a thread its run time goes to
 * its on-CPU samples of that interval, or forward to its next one within a second; its run delay is runnable
 * time; what is left is blocked time, half each to the stacks seen at the two ends. A thread that was blocked
 * both times without a switch has done nothing else.
 *
 *   calibration_begin(c, thread, begin_ns, NULL);
 *   calibration_tick(c, now);                          // a pass over all threads
 *   calibration_observe(c, thread, &observation);      // each one that changed since the last pass
 *   calibration_on_cpu_stack(c, thread, time, stack);  // samples of times before the tick, before its
 * observations calibration_finish(c, end);
 */
#ifndef STALLGRAPH_MODEL_CALIBRATION_H
#define STALLGRAPH_MODEL_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/model/span_budget.h"
#include "profiler/model/span_list.h"

/* A blocked stack that was there but could not be read whole: never replaced by one that is seen later. */
enum { CALIBRATION_LOST_STACK = UINT32_MAX - 1 };

/* As in /proc/PID/task/TID/schedstat and status. */
struct thread_counters {
    uint64_t on_cpu_ns;
    uint64_t runnable_ns; /* the kernel credits it when the thread is switched in, not before */
    uint64_t voluntary_switches;
    uint64_t involuntary_switches;
};

enum observed_state {
    OBSERVED_RUNNING,
    OBSERVED_RUNNABLE,
    OBSERVED_AWAKE, /* one of the two: the counters will say */
    OBSERVED_BLOCKED,
    OBSERVED_STOPPED,
};

struct observation {
    uint64_t time_ns;
    struct thread_counters counters;
    enum observed_state state;
    uint32_t
        stack; /* of a thread that is not running; SPAN_NO_STACK when not known, CALIBRATION_LOST_STACK */
};

struct calibration;

struct calibration *calibration_create(uint64_t window_start_ns);
void calibration_destroy(struct calibration *calibration);

/* How long the kernel's own tick is (1/CONFIG_HZ): by so much the counter of a running thread is late at most. Of a
 * thread that may as well wait for a CPU no more than that is taken for run time. 10 ms unless it is told, before the threads begin. */
void calibration_set_kernel_tick(struct calibration *calibration, uint64_t tick_ns);

/* counters: where they stood at begin_ns; NULL = not known: the first observation says so. A thread that was
 * just born starts with zeros. */
void calibration_begin(struct calibration *calibration, uint32_t thread, uint64_t begin_ns,
                       const struct thread_counters *counters);

/* A pass over all threads was made at time_ns: who is not observed now has not changed since the pass before.
 */
void calibration_tick(struct calibration *calibration, uint64_t time_ns);
void calibration_observe(struct calibration *calibration, uint32_t thread,
                         const struct observation *observation);
void calibration_on_cpu_stack(struct calibration *calibration, uint32_t thread, uint64_t time_ns,
                              uint32_t stack);

/* Changes stacks of what was accounted for so far. */
void calibration_change(struct calibration *calibration, uint32_t thread, const struct span_change *change);

/* To be called now and then: keeps all spans within the budget. */
void calibration_keep_budget(struct calibration *calibration, struct span_budget *budget);

/* counters: the last ones, or NULL when they are not known. */
void calibration_end(struct calibration *calibration, uint32_t thread, uint64_t end_ns,
                     const struct thread_counters *counters);
void calibration_finish(struct calibration *calibration, uint64_t end_ns);

/* As timeline_spans. */
const struct span *calibration_spans(const struct calibration *calibration, uint32_t thread,
                                     size_t *ret_count);

#endif
