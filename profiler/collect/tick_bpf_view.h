/* What the tick's BPF programs wrote, as looks. Pure: bytes in, look out. */
#ifndef STALLGRAPH_COLLECT_TICK_BPF_VIEW_H
#define STALLGRAPH_COLLECT_TICK_BPF_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/collect/bpf/tick_record.h"
#include "profiler/collect/tick.h"

struct tick_bpf_view {
    struct tick_look look; /* its stack is in the bytes, its chain here: valid until the next call */
    uint64_t kernel_chain[TICK_KERNEL_FRAMES];
};

/* Fills view->look from the record at bytes. Returns how many bytes it has; 0 = none is there, or none that is whole. */
size_t tick_bpf_view_record(struct tick_bpf_view *view, const uint8_t *bytes, size_t size_bytes);

void tick_bpf_view_exit(struct tick_bpf_view *view, const struct tick_exit *ended);

#endif
