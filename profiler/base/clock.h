/* Time in nanoseconds of CLOCK_MONOTONIC, the clock that every perf event here is stamped with. */
#ifndef STALLGRAPH_BASE_CLOCK_H
#define STALLGRAPH_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

uint64_t clock_now_ns(void);
uint64_t clock_self_cpu_ns(void);    /* CPU time that this process has used */
uint64_t clock_boot_offset_ns(void); /* what to take from a time since boot (CLOCK_BOOTTIME) */

#endif
