/* A build without BPF: there is no filter, and creating one says so. */
#ifndef STALLGRAPH_HAVE_BPF

#include <errno.h>

#include "profiler/collect/perf_filter.h"

const struct perf_tracepoint_layout perf_filter_scheduler_layout = {0};

int perf_filter_create(bool children, struct perf_filter **ret_filter, struct error *err)
{
    (void)children;
    (void)ret_filter;
    return error_say(err, -EOPNOTSUPP, "built without BPF");
}

void perf_filter_destroy(struct perf_filter *filter)
{
    (void)filter;
}

int perf_filter_add(const struct perf_filter *filter, pid_t pid)
{
    (void)filter;
    (void)pid;
    return -EOPNOTSUPP;
}

void perf_filter_remove(const struct perf_filter *filter, pid_t pid)
{
    (void)filter;
    (void)pid;
}

int perf_filter_attach(const struct perf_filter *filter, int event_fd)
{
    (void)filter;
    (void)event_fd;
    return -EOPNOTSUPP;
}

int perf_filter_attach_stack(const struct perf_filter *filter, int trigger_fd, int output_fd, int cpu)
{
    (void)filter;
    (void)trigger_fd;
    (void)output_fd;
    (void)cpu;
    return -EOPNOTSUPP;
}

bool perf_filter_has_scheduler(const struct perf_filter *filter)
{
    (void)filter;
    return false;
}

int perf_filter_set_switch_output(const struct perf_filter *filter, int output_fd, int cpu)
{
    (void)filter;
    (void)output_fd;
    (void)cpu;
    return -EOPNOTSUPP;
}

int perf_filter_set_wakeup_output(const struct perf_filter *filter, int output_fd, int cpu)
{
    (void)filter;
    (void)output_fd;
    (void)cpu;
    return -EOPNOTSUPP;
}

int perf_filter_start_scheduler(struct perf_filter *filter)
{
    (void)filter;
    return -EOPNOTSUPP;
}

#endif
