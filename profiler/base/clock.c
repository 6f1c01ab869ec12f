#include "profiler/base/clock.h"

#include <time.h>

static uint64_t read_clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_now_ns(void)
{
    return read_clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_boot_offset_ns(void)
{
    uint64_t monotonic_ns = read_clock_ns(CLOCK_MONOTONIC); /* first: the difference must not be below zero */

    return read_clock_ns(CLOCK_BOOTTIME) - monotonic_ns;
}

uint64_t clock_self_cpu_ns(void)
{
    return read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}
