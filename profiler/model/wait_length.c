#include "profiler/model/wait_length.h"

static const uint64_t below_ns[WAIT_LENGTH_CLASSES] = {100000, 1000000, 10000000, UINT64_MAX};

static uint64_t difference(uint64_t more, uint64_t less)
{
    return more > less ? more - less : 0;
}

uint64_t wait_length_mean_ns(const struct wait_length_point *before, const struct wait_length_point *now)
{
    uint64_t waits = difference(now->voluntary_switches, before->voluntary_switches);
    uint64_t busy_ns =
        difference(now->on_cpu_ns, before->on_cpu_ns) + difference(now->runnable_ns, before->runnable_ns);

    return difference(difference(now->time_ns, before->time_ns), busy_ns) / (waits > 0 ? waits : 1);
}

size_t wait_length_class(uint64_t mean_ns)
{
    size_t class = 0;

    while (mean_ns >= below_ns[class] && class + 1 < WAIT_LENGTH_CLASSES)
        class ++;
    return class;
}

uint64_t wait_length_below_ns(size_t class)
{
    return below_ns[class];
}
