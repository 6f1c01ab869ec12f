/* What each thread did when: scheduler events and stacks go in, in time order; gapless spans come out.
 *
 *   timeline_begin(t, thread, now, STATE_BLOCKED, false);
 *   timeline_switch_out(t, thread, time, STATE_BLOCKED);
 *   timeline_off_cpu_stack(t, thread, time, stack);           // the stack it was switched out with
 *   timeline_wakeup(t, thread, time);                         // blocked -> runnable
 *   timeline_switch_in(t, thread, time);                      // -> on-CPU
 *   timeline_on_cpu_stack(t, thread, time, stack);            // a sample
 *   timeline_finish(t, end);
 *   spans = timeline_spans(t, thread, &count);
 *
 * Blocked time is measured, from switch-out to wake-up; so is run-queue time, from wake-up or preemption to
 * switch-in. On-CPU time gets the stacks of the samples that fell into it: up to a sample, the sample's
 * stack; after the last sample of a spell on the CPU, that one's; a spell without a sample takes the stack of
 * the thread's next sample within a second; else it has none. What a thread was doing before its first event
 * follows from that event: who is switched in was runnable, who is woken was blocked, who is switched out was
 * running. */
#ifndef STALLGRAPH_MODEL_TIMELINE_H
#define STALLGRAPH_MODEL_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/model/span_budget.h"
#include "profiler/model/span_list.h"

struct timeline;

/* Times before window_start_ns are clipped away from the spans; the events are followed all the same.
 * has_wakeups: false where wake-ups are not seen: then blocked time lasts until the thread is switched in. */
struct timeline *timeline_create(uint64_t window_start_ns, bool has_wakeups);
void timeline_destroy(struct timeline *timeline);

/* A thread is there from begin_ns on. likely: what it seemed to do (from /proc), which counts only when no
 * event ever says otherwise; of a thread that was just born, STATE_RUNNABLE with born = true, which counts at
 * once. */
void timeline_begin(struct timeline *timeline, uint32_t thread, uint64_t begin_ns, enum thread_state likely,
                    bool born);
/* The stack that an already blocked thread was seen with at time_ns: it counts only when its first event came
 * later. */
void timeline_initial_stack(struct timeline *timeline, uint32_t thread, uint64_t time_ns, uint32_t stack);

void timeline_switch_in(struct timeline *timeline, uint32_t thread, uint64_t time_ns);
/* to: STATE_RUNNABLE (preempted), STATE_BLOCKED or STATE_STOPPED. */
void timeline_switch_out(struct timeline *timeline, uint32_t thread, uint64_t time_ns, enum thread_state to);
void timeline_wakeup(struct timeline *timeline, uint32_t thread, uint64_t time_ns);
void timeline_on_cpu_stack(struct timeline *timeline, uint32_t thread, uint64_t time_ns, uint32_t stack);
void timeline_off_cpu_stack(struct timeline *timeline, uint32_t thread, uint64_t time_ns, uint32_t stack);
void timeline_end(struct timeline *timeline, uint32_t thread, uint64_t end_ns);

/* Events of this thread may be missing from since_ns on: from there to its next event it is STATE_UNKNOWN. */
void timeline_doubt(struct timeline *timeline, uint32_t thread, uint64_t since_ns);
/* Times the thread was switched in, as far as it was seen: compares with the kernel's count to tell whether
 * one was missed. */
uint64_t timeline_switches_in(const struct timeline *timeline, uint32_t thread);

/* Changes stacks of the spells that are over. */
void timeline_change(struct timeline *timeline, uint32_t thread, const struct span_change *change);

/* To be called now and then: keeps all spans within the budget. */
void timeline_keep_budget(struct timeline *timeline, struct span_budget *budget);

/* Ends all threads that are still there. */
void timeline_finish(struct timeline *timeline, uint64_t end_ns);
/* In time order, each beginning where the last one ended; valid until the timeline changes. */
const struct span *timeline_spans(const struct timeline *timeline, uint32_t thread, size_t *ret_count);

#endif
