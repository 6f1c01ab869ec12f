/* All perf events of a session: opened, read and merged in time order.
 *
 *   int r = perf_capture_open(&options, &capture, &err);
 *   r = perf_capture_start(capture, &err);
 *   while (running) {
 *       perf_capture_wait(capture, 100, -1);
 *       while (perf_capture_next(capture, &record))
 *           ...                        // each record is a view until the next call
 *   }
 *   perf_capture_stop(capture);        // events off
 *   while (perf_capture_next(capture, &record))
 *       ...                            // what was still in the rings
 *   perf_capture_close(capture);
 */
#ifndef STALLGRAPH_COLLECT_PERF_CAPTURE_H
#define STALLGRAPH_COLLECT_PERF_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/base/error.h"
#include "profiler/collect/perf_options.h"
#include "profiler/collect/perf_record.h"

struct perf_capture;

/* Opens everything, switched off, having raised RLIMIT_NOFILE as far as needed. Tries CPU-wide events first,
 * then per-task ones. Returns 0, or -errno with a message that names the cause and the remedy
 * (perf_event_paranoid, perf_event_mlock_kb, EMFILE and how many descriptors are needed, ESRCH, lockdown,
 * seccomp). */
int perf_capture_open(const struct perf_capture_options *options, struct perf_capture **ret_capture,
                      struct error *err);
const struct perf_capture_choice *perf_capture_choice(const struct perf_capture *capture);
int perf_capture_start(struct perf_capture *capture, struct error *err);

/* Waits for data, at most timeout_ms; the extra fd (a pidfd, a signalfd; -1 = none) wakes it too. */
void perf_capture_wait(struct perf_capture *capture, int timeout_ms, int extra_fd);

/* The next record in time order over all rings; false when none is due: records of the newest pass are held
 * back until the next one, since an older record of another CPU may still be on its way. */
bool perf_capture_next(struct perf_capture *capture, struct perf_record *ret_record);

/* The processes that are wanted, as they come and go (a filter in the kernel follows this). */
void perf_capture_add_process(struct perf_capture *capture, pid_t pid);
void perf_capture_remove_process(struct perf_capture *capture, pid_t pid);

/* Switches all events off; what is in the rings can still be had, nothing is held back any more. */
void perf_capture_stop(struct perf_capture *capture);
void perf_capture_close(struct perf_capture *capture); /* NULL allowed */

/* Records that could not be parsed so far; each is given out as a RECORD_LOST of count 1. */
uint64_t perf_capture_bad_records(const struct perf_capture *capture);

#endif
