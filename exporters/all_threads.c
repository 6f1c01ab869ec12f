#include "exporters/all_threads.h"

#include <stdlib.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

/* Per stack of the profile's table; the tree that the stacks are, with its children in the order of their
 * weight. */
struct heavy_node {
    uint64_t self_ns[STATE_COUNT];
    uint64_t total_ns;    /* of the states asked for, with all stacks below */
    uint32_t first_child; /* 0 = none: no stack has the empty one as its child's child */
    uint32_t next_sibling;
};

struct heavy_tree {
    const struct stack_table *stacks;
    struct heavy_node *nodes;
    uint32_t count;
    uint32_t *order; /* scratch: stacks by weight */
};

/* Siblings of equal weight stand in the order of their frames: that of the stacks is another one once a profile was read
 * back from a file. */
static int compare_weights(const void *left, const void *right, void *context)
{
    const struct heavy_tree *tree = context;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    uint32_t frame_a = stack_table_get(tree->stacks, a).frame;
    uint32_t frame_b = stack_table_get(tree->stacks, b).frame;

    if (tree->nodes[a].total_ns != tree->nodes[b].total_ns)
        return tree->nodes[a].total_ns > tree->nodes[b].total_ns ? -1 : 1;
    if (frame_a != frame_b)
        return frame_a < frame_b ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void link_by_weight(struct heavy_tree *tree, const bool states[STATE_COUNT])
{
    for (uint32_t s = 0; s < tree->count; s++) {
        struct heavy_node *node = &tree->nodes[s];

        node->total_ns = 0;
        node->first_child = 0;
        node->next_sibling = 0;
        for (int state = 0; state < STATE_COUNT; state++)
            node->total_ns += states[state] ? node->self_ns[state] : 0;
        tree->order[s] = s;
    }
    for (uint32_t s = tree->count; s-- > 1;) /* parent < child */
        tree->nodes[stack_table_get(tree->stacks, s).parent].total_ns += tree->nodes[s].total_ns;
    qsort_r(tree->order, tree->count, sizeof *tree->order, compare_weights, tree);
    for (uint32_t i = tree->count; i-- > 0;) {
        uint32_t child = tree->order[i];
        uint32_t parent = stack_table_get(tree->stacks, child).parent;

        if (child == STACK_EMPTY || tree->nodes[child].total_ns == 0)
            continue;
        tree->nodes[child].next_sibling = tree->nodes[parent].first_child;
        tree->nodes[parent].first_child = child;
    }
}

static void emit(struct all_threads *all, const struct heavy_tree *tree, uint32_t stack,
                 const bool states[STATE_COUNT])
{
    for (int state = 0; state < STATE_COUNT; state++) {
        uint64_t weight_ns = tree->nodes[stack].self_ns[state];

        if (states[state] && weight_ns > 0)
            VEC_PUSH(all, ((struct all_threads_sample){stack, (enum thread_state)state, weight_ns}));
    }
}

/* Callees before the caller's own time: that is what stands at the right end of a frame. */
static void walk(struct all_threads *all, const struct heavy_tree *tree, const bool states[STATE_COUNT])
{
    uint32_t stack = STACK_EMPTY;

    for (;;) {
        while (tree->nodes[stack].first_child != 0)
            stack = tree->nodes[stack].first_child;
        for (;;) {
            emit(all, tree, stack, states);
            if (stack == STACK_EMPTY)
                return;
            if (tree->nodes[stack].next_sibling != 0)
                break;
            stack = stack_table_get(tree->stacks, stack).parent;
        }
        stack = tree->nodes[stack].next_sibling;
    }
}

void all_threads_init(struct all_threads *all, const struct profile *profile, enum idle_mode idle)
{
    struct heavy_tree tree = {.stacks = profile->stacks, .count = stack_table_count(profile->stacks)};
    bool first[STATE_COUNT];
    bool second[STATE_COUNT];

    *all = (struct all_threads){0};
    tree.nodes = memory_zeroed(tree.count, sizeof *tree.nodes);
    tree.order = memory_zeroed(tree.count, sizeof *tree.order);
    for (size_t i = 0; i < profile->thread_count; i++) {
        for (size_t k = 0; k < profile->threads[i].sample_count; k++) {
            const struct sample *sample = &profile->threads[i].samples[k];

            tree.nodes[sample->stack].self_ns[sample->state] += sample->weight_ns;
        }
    }
    for (int state = 0; state < STATE_COUNT; state++) {
        first[state] = state != STATE_IDLE || idle == IDLE_MERGE;
        second[state] = state == STATE_IDLE && idle == IDLE_SEPARATE;
    }
    link_by_weight(&tree, first);
    walk(all, &tree, first);
    if (idle == IDLE_SEPARATE) {
        link_by_weight(&tree, second);
        walk(all, &tree, second);
    }
    free(tree.nodes);
    free(tree.order);
}

void all_threads_finish(struct all_threads *all)
{
    if (all == NULL)
        return;
    free(all->items);
    *all = (struct all_threads){0};
}
