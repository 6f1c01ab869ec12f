/* With STALLGRAPH_BPF=OFF perf_filter_none.c stands in for this file. */
#ifdef STALLGRAPH_HAVE_BPF

#include "profiler/collect/perf_filter.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "perf_filter.skel.h"
#include "profiler/base/memory.h"
#include "profiler/collect/bpf/scheduler_event.h"
#include "profiler/collect/bpf_quiet.h"

const struct perf_tracepoint_layout perf_filter_scheduler_layout = {
    .switch_prev_pid = offsetof(struct scheduler_switch, prev_tid),
    .switch_prev_state = offsetof(struct scheduler_switch, prev_state),
    .switch_prev_state_size = sizeof(uint64_t),
    .switch_next_pid = offsetof(struct scheduler_switch, next_tid),
    .wakeup_pid = offsetof(struct scheduler_wakeup, tid),
};

struct perf_filter {
    struct perf_filter_bpf *skeleton;
    bool has_scheduler;
};

/* Returns 0 or -errno. */
static int load(bool children, bool scheduler, struct perf_filter_bpf **ret_skeleton)
{
    struct perf_filter_bpf *skeleton = perf_filter_bpf__open();
    if (skeleton == NULL)
        return -errno;
    skeleton->rodata->follow_children = children;
    bpf_program__set_autoload(skeleton->progs.output_switch, scheduler);
    bpf_program__set_autoload(skeleton->progs.output_wakeup, scheduler);
    bpf_program__set_autoload(skeleton->progs.output_wakeup_new, scheduler);
    int r = perf_filter_bpf__load(skeleton);
    if (r < 0) {
        perf_filter_bpf__destroy(skeleton);
        return r;
    }
    *ret_skeleton = skeleton;
    return 0;
}

int perf_filter_create(bool children, struct perf_filter **ret_filter, struct error *err)
{
    struct perf_filter_bpf *skeleton = NULL;
    bool scheduler = true;
    bpf_keep_quiet();
    int r = load(children, scheduler, &skeleton);
    if (r < 0 && r != -EPERM) {
        scheduler = false;
        r = load(children, scheduler, &skeleton);
    }
    if (r < 0)
        return error_set(err, r, "load the BPF programs");
    struct perf_filter *filter = memory_zeroed(1, sizeof *filter);
    filter->skeleton = skeleton;
    filter->has_scheduler = scheduler;
    *ret_filter = filter;
    return 0;
}

void perf_filter_destroy(struct perf_filter *filter)
{
    if (filter == NULL)
        return;
    perf_filter_bpf__destroy(filter->skeleton);
    free(filter);
}

static int put(const struct bpf_map *map, uint32_t key, const void *value)
{
    return bpf_map_update_elem(bpf_map__fd(map), &key, value, BPF_ANY) < 0 ? -errno : 0;
}

int perf_filter_add(const struct perf_filter *filter, pid_t pid)
{
    uint8_t value = 1;
    return put(filter->skeleton->maps.wanted_processes, (uint32_t)pid, &value);
}

void perf_filter_remove(const struct perf_filter *filter, pid_t pid)
{
    uint32_t key = (uint32_t)pid;
    bpf_map_delete_elem(bpf_map__fd(filter->skeleton->maps.wanted_processes), &key);
}

/* Not bpf_program__attach_perf_event: that switches the event on. */
static int set_program(int event_fd, const struct bpf_program *program)
{
    return ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(program)) < 0 ? -errno : 0;
}

int perf_filter_attach(const struct perf_filter *filter, int event_fd)
{
    return set_program(event_fd, filter->skeleton->progs.filter_sample);
}

int perf_filter_attach_stack(const struct perf_filter *filter, int trigger_fd, int output_fd, int cpu)
{
    int r = put(filter->skeleton->maps.stack_events, (uint32_t)cpu, &output_fd);
    return r < 0 ? r : set_program(trigger_fd, filter->skeleton->progs.output_stack);
}

bool perf_filter_has_scheduler(const struct perf_filter *filter)
{
    return filter->has_scheduler;
}

int perf_filter_set_switch_output(const struct perf_filter *filter, int output_fd, int cpu)
{
    return put(filter->skeleton->maps.switch_events, (uint32_t)cpu, &output_fd);
}

int perf_filter_set_wakeup_output(const struct perf_filter *filter, int output_fd, int cpu)
{
    return put(filter->skeleton->maps.wakeup_events, (uint32_t)cpu, &output_fd);
}

int perf_filter_start_scheduler(struct perf_filter *filter)
{
    struct perf_filter_bpf *skeleton = filter->skeleton;
    const struct {
        const struct bpf_program *program;
        struct bpf_link **link;
    } attached[] = {
        {skeleton->progs.output_switch, &skeleton->links.output_switch},
        {skeleton->progs.output_wakeup, &skeleton->links.output_wakeup},
        {skeleton->progs.output_wakeup_new, &skeleton->links.output_wakeup_new},
    };
    for (size_t i = 0; i < sizeof attached / sizeof attached[0]; i++) {
        struct bpf_link *link = bpf_program__attach(attached[i].program);
        if (link == NULL)
            return -errno;
        *attached[i].link = link; /* destroyed with the skeleton */
    }
    return 0;
}

#endif
