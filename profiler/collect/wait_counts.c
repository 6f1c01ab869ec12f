/* With STALLGRAPH_BPF=OFF wait_counts_none.c stands in for this file. */
#ifdef STALLGRAPH_HAVE_BPF

#include "profiler/collect/wait_counts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "profiler/base/memory.h"
#include "profiler/collect/bpf/wait_site.h"
#include "profiler/collect/bpf_quiet.h"
#include "wait_counts.skel.h"

struct wait_counts {
    struct wait_counts_bpf *skeleton;
    struct wait_site_key key; /* of the place that was given out last */
    bool begun;
};

int wait_counts_open(struct wait_counts **ret_counts, struct error *err)
{
    struct wait_counts_bpf *skeleton;
    struct wait_counts *counts;
    int r;

    bpf_keep_quiet();
    skeleton = wait_counts_bpf__open_and_load();
    if (skeleton == NULL)
        return error_set(err, -errno, "load the BPF program that counts waits");
    r = wait_counts_bpf__attach(skeleton);
    if (r < 0) {
        wait_counts_bpf__destroy(skeleton);
        return error_set(err, r, "attach to sched_switch");
    }
    counts = memory_zeroed(1, sizeof *counts);
    counts->skeleton = skeleton;
    *ret_counts = counts;
    return 0;
}

void wait_counts_close(struct wait_counts *counts)
{
    if (counts == NULL)
        return;
    wait_counts_bpf__destroy(counts->skeleton);
    free(counts);
}

int wait_counts_add_process(struct wait_counts *counts, pid_t pid)
{
    uint32_t key = (uint32_t)pid;
    uint8_t one = 1;

    return bpf_map_update_elem(bpf_map__fd(counts->skeleton->maps.wanted_processes), &key, &one, BPF_ANY) < 0
               ? -errno
               : 0;
}

void wait_counts_stop(struct wait_counts *counts)
{
    wait_counts_bpf__detach(counts->skeleton);
}

_Static_assert((int)WAIT_SITE_BINS == (int)HISTOGRAM_BINS, "the kernel's bins are ours");

static void fill_site(const struct wait_site_key *key, const struct wait_site_value *value,
                      struct wait_site *ret_site)
{
    *ret_site = (struct wait_site){
        .pid = (pid_t)key->pid,
        .tid = (pid_t)key->tid,
        .ip = key->ip,
        .sp = key->sp,
        .syscall = key->syscall,
        .argument = key->argument,
        .histogram = {.count = value->count, .sum_ns = value->sum_ns},
    };
    for (int i = 0; i < HISTOGRAM_BINS; i++)
        ret_site->histogram.bins[i] = value->bins[i];
}

bool wait_counts_next(struct wait_counts *counts, struct wait_site *ret_site)
{
    int fd = bpf_map__fd(counts->skeleton->maps.sites);
    struct wait_site_key next;
    struct wait_site_value value;

    if (bpf_map_get_next_key(fd, counts->begun ? &counts->key : NULL, &next) < 0)
        return false;
    counts->begun = true;
    counts->key = next;
    if (bpf_map_lookup_elem(fd, &next, &value) < 0)
        return false;
    fill_site(&next, &value, ret_site);
    return true;
}

uint64_t wait_counts_dropped(const struct wait_counts *counts)
{
    return counts->skeleton->bss->dropped;
}

#endif
