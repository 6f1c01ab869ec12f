#include "exporters/svg_layout.h"

#include <stdlib.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"

struct reason_times {
    uint64_t self_ns[REASON_COUNT];
    uint64_t total_ns[REASON_COUNT];
};

struct placing {
    const struct call_tree *tree;
    struct reason_times *times; /* by node */
    uint64_t *start_us;         /* by node */
    uint32_t *drawn;            /* nodes */
    size_t drawn_count;
};

static void sum_reasons(struct placing *placing, const struct profile *profile)
{
    const struct call_tree *tree = placing->tree;

    for (size_t i = tree->count; i-- > 0;) {
        const struct call_node *node = &tree->nodes[i];
        struct reason_times *times = &placing->times[i];
        enum wait_kind wait = node->frame == CALL_NODE_GROUP ? WAIT_NONE : profile->frames[node->frame].wait;

        for (int state = 0; state < STATE_COUNT; state++)
            times->self_ns[reason_of((enum thread_state)state, wait)] += node->self_ns[state];
        for (int reason = 0; reason < REASON_COUNT; reason++) {
            times->total_ns[reason] += times->self_ns[reason];
            if (i > 0)
                placing->times[node->parent].total_ns[reason] += times->total_ns[reason];
        }
    }
}

/* Children from left to right in the tree's order, but "[idle]" at the right end, where it does not part the
 * others. */
static void place(struct placing *placing)
{
    const struct call_tree *tree = placing->tree;
    AUTO_FREE uint64_t *next_us = memory_zeroed(tree->count, sizeof *next_us);

    for (uint32_t i = 1; i < tree->count; i++) {
        const struct call_node *node = &tree->nodes[i];

        if (i == tree->idle_node) {
            placing->start_us[i] = tree->nodes[0].total_us - node->total_us;
        } else {
            placing->start_us[i] = next_us[node->parent];
            next_us[node->parent] += node->total_us;
        }
        next_us[i] = placing->start_us[i];
    }
}

/* Widest first. A parent is never narrower than its child and comes before it, so that any beginning of this
 * order is a tree. */
static int compare_widths(const void *left, const void *right, void *context)
{
    const struct call_tree *tree = context;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;

    if (tree->nodes[a].total_us != tree->nodes[b].total_us)
        return tree->nodes[a].total_us > tree->nodes[b].total_us ? -1 : 1;
    if (tree->nodes[a].depth != tree->nodes[b].depth)
        return tree->nodes[a].depth < tree->nodes[b].depth ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int compare_ids(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;

    return a < b ? -1 : a > b;
}

static void choose(struct placing *placing, struct svg_layout *layout, const struct svg_limits *limits)
{
    const struct call_tree *tree = placing->tree;
    uint64_t narrowest_us = layout->total_us / limits->narrowest_share;
    size_t with_time = 0;

    for (uint32_t i = 0; i < tree->count; i++) {
        const struct call_node *node = &tree->nodes[i];

        if (node->total_us == 0)
            continue;
        with_time++;
        if (node->total_us >= narrowest_us && node->depth < limits->rows)
            placing->drawn[placing->drawn_count++] = i;
        else if (node->total_us > layout->hidden_widest_us)
            layout->hidden_widest_us = node->total_us;
    }
    if (placing->drawn_count > limits->frames) {
        qsort_r(placing->drawn, placing->drawn_count, sizeof *placing->drawn, compare_widths, (void *)tree);
        uint64_t left_out_us = tree->nodes[placing->drawn[limits->frames]].total_us;

        placing->drawn_count = limits->frames;
        qsort(placing->drawn, placing->drawn_count, sizeof *placing->drawn, compare_ids);
        if (left_out_us > layout->hidden_widest_us)
            layout->hidden_widest_us = left_out_us;
    }
    layout->hidden_count = with_time - placing->drawn_count;
}

static void judge(struct svg_frame *frame, const struct reason_times *times)
{
    uint64_t sum_ns = 0;

    frame->reason = REASON_COUNT;
    for (int reason = 0; reason < REASON_COUNT; reason++) {
        frame->reason_ns[reason] = times->total_ns[reason];
        sum_ns += times->total_ns[reason];
    }
    for (int reason = 0; reason < REASON_COUNT; reason++) {
        if (times->total_ns[reason] > sum_ns / 2) {
            frame->reason = (enum reason)reason;
            frame->own = times->self_ns[reason] > times->total_ns[reason] / 2;
        }
    }
}

void svg_layout_init(struct svg_layout *layout, const struct profile *profile, const struct call_tree *tree,
                     const struct svg_limits *limits)
{
    struct placing placing = {.tree = tree};

    *layout = (struct svg_layout){.total_us = tree->nodes[0].total_us};
    placing.times = memory_zeroed(tree->count, sizeof *placing.times);
    placing.start_us = memory_zeroed(tree->count, sizeof *placing.start_us);
    placing.drawn = memory_zeroed(tree->count, sizeof *placing.drawn);
    sum_reasons(&placing, profile);
    place(&placing);
    choose(&placing, layout, limits);
    share_by_largest_remainder(placing.times[0].total_ns, REASON_COUNT, layout->total_us, layout->reason_us);

    layout->count = placing.drawn_count;
    layout->frames = memory_zeroed(layout->count, sizeof *layout->frames);
    for (size_t i = 0; i < layout->count; i++) {
        uint32_t node = placing.drawn[i];

        layout->frames[i] = (struct svg_frame){
            .node = node, .start_us = placing.start_us[node], .width_us = tree->nodes[node].total_us};
        judge(&layout->frames[i], &placing.times[node]);
        if (tree->nodes[node].depth >= layout->rows)
            layout->rows = tree->nodes[node].depth + 1;
    }
    free(placing.times);
    free(placing.start_us);
    free(placing.drawn);
}

void svg_layout_finish(struct svg_layout *layout)
{
    if (layout == NULL)
        return;
    free(layout->frames);
    *layout = (struct svg_layout){0};
}
