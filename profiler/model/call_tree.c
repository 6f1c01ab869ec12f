#include "profiler/model/call_tree.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

/* A tree while it grows: nodes in the order in which samples brought them, children not yet linked. */
struct builder {
    const struct profile *profile;
    const struct call_tree_options *options;
    struct string_table *strings;
    VEC_OF(struct call_node) nodes;
    struct id_map groups;  /* (parent node, name) -> node */
    struct id_map stacks;  /* (group node, stack) -> node */
    VEC_OF(uint32_t) path; /* scratch of node_of_stack */
    uint32_t idle_node;
};

/* What orders siblings. */
struct label {
    uint32_t name;
    uint32_t frame;
    uint32_t id;
};

static uint64_t pair_key(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static uint32_t add_node(struct builder *builder, uint32_t parent, uint32_t name, uint32_t frame)
{
    struct call_node node = {.name = name, .frame = frame, .parent = parent};

    if (builder->nodes.count > 0)
        node.depth = builder->nodes.items[parent].depth + 1;
    VEC_PUSH(&builder->nodes, node);
    return (uint32_t)(builder->nodes.count - 1);
}

static uint32_t group_below(struct builder *builder, uint32_t parent, const char *text)
{
    uint32_t name = string_table_intern(builder->strings, text);
    uint64_t key = pair_key(parent, name);
    uint32_t node = 0;

    if (!id_map_get(&builder->groups, key, &node)) {
        node = add_node(builder, parent, name, CALL_NODE_GROUP);
        id_map_put(&builder->groups, key, node);
    }
    return node;
}

/* The node under which a thread's stacks hang, "[idle]" included where that is wanted. */
static uint32_t thread_group(struct builder *builder, const struct profile_thread *thread, bool idle)
{
    const struct profile_process *process = &builder->profile->processes[thread->process];
    const char *process_name = string_table_get(builder->profile->strings, process->name);
    const char *thread_name = string_table_get(builder->profile->strings, thread->name);
    AUTO_FREE char *process_text = NULL;
    AUTO_FREE char *pool = NULL;
    AUTO_FREE char *thread_text = NULL;
    uint32_t node = 0;

    if (idle) {
        if (builder->idle_node == 0)
            builder->idle_node =
                add_node(builder, 0, string_table_intern(builder->strings, "[idle]"), CALL_NODE_GROUP);
        node = builder->idle_node;
    }
    switch (builder->options->threads) {
    case THREADS_MERGE:
        return group_below(builder, node, process_name);
    case THREADS_EACH:
        process_text = string_format("%s (%d)", process_name, (int)process->pid);
        thread_text = string_format("%s (%d)", thread_name, (int)thread->tid);
        node = group_below(builder, node, process_text);
        return group_below(builder, node, thread_text);
    case THREADS_POOL:
        break;
    }
    /* The main thread is apart: unnamed workers carry its name too. */
    pool = thread_pool_name(thread_name);
    thread_text = string_format("%s%s", pool, thread->is_main ? " [main]" : "");
    node = group_below(builder, node, process_name);
    return group_below(builder, node, thread_text);
}

/* Goes up to the nearest caller that has a node, then down again adding: no recursion, stacks are deep. */
static uint32_t node_of_stack(struct builder *builder, uint32_t group, uint32_t stack)
{
    uint32_t node = group;

    if (stack == STACK_EMPTY)
        return group_below(builder, group, "[no stack]");
    builder->path.count = 0;
    for (uint32_t s = stack; s != STACK_EMPTY; s = stack_table_get(builder->profile->stacks, s).parent) {
        if (id_map_get(&builder->stacks, pair_key(group, s), &node))
            break;
        VEC_PUSH(&builder->path, s);
    }
    for (size_t i = builder->path.count; i-- > 0;) {
        uint32_t s = builder->path.items[i];
        uint32_t frame = stack_table_get(builder->profile->stacks, s).frame;
        const char *name = string_table_get(builder->profile->strings, builder->profile->frames[frame].name);

        node = add_node(builder, node, string_table_intern(builder->strings, name), frame);
        id_map_put(&builder->stacks, pair_key(group, s), node);
    }
    return node;
}

static void add_thread(struct builder *builder, const struct profile_thread *thread)
{
    const uint32_t none = UINT32_MAX;
    uint32_t groups[2] = {none, none}; /* busy, idle */

    for (size_t i = 0; i < thread->sample_count; i++) {
        const struct sample *sample = &thread->samples[i];
        bool idle = sample->state == STATE_IDLE && builder->options->idle == IDLE_SEPARATE;

        if (sample->state == STATE_IDLE && builder->options->idle == IDLE_HIDE)
            continue;
        if (groups[idle] == none)
            groups[idle] = thread_group(builder, thread, idle);
        uint32_t node = node_of_stack(builder, groups[idle], sample->stack);

        builder->nodes.items[node].self_ns[sample->state] += sample->weight_ns;
    }
}

static int compare_labels(const void *left, const void *right, void *context)
{
    const struct string_table *strings = context;
    const struct label *a = left;
    const struct label *b = right;
    int by_name = strcmp(string_table_get(strings, a->name), string_table_get(strings, b->name));

    if (by_name != 0)
        return by_name;
    return a->frame < b->frame ? -1 : a->frame > b->frame;
}

/* The place of each node's label among all labels. Labels are few and nodes many, so only labels are
 * compared. Caller frees. ret_count: how many labels there are. */
static uint32_t *rank_nodes(struct builder *builder, size_t *ret_count)
{
    VEC_OF(struct label) labels = {0};
    struct id_map ids = {0};
    size_t count = builder->nodes.count;
    uint32_t *ranks = memory_zeroed(count, sizeof *ranks);

    for (size_t i = 0; i < count; i++) {
        const struct call_node *node = &builder->nodes.items[i];
        uint64_t key = pair_key(node->name, node->frame);

        if (!id_map_get(&ids, key, &ranks[i])) {
            ranks[i] = (uint32_t)labels.count;
            id_map_put(&ids, key, ranks[i]);
            VEC_PUSH(&labels, ((struct label){node->name, node->frame, ranks[i]}));
        }
    }
    AUTO_FREE uint32_t *rank_of_id = memory_zeroed(labels.count, sizeof *rank_of_id);

    if (labels.count > 0)
        qsort_r(labels.items, labels.count, sizeof *labels.items, compare_labels, builder->strings);
    for (size_t i = 0; i < labels.count; i++)
        rank_of_id[labels.items[i].id] = (uint32_t)i;
    for (size_t i = 0; i < count; i++)
        ranks[i] = rank_of_id[ranks[i]];
    *ret_count = labels.count;
    free(labels.items);
    id_map_finish(&ids);
    return ranks;
}

/* Links children in their order: all nodes in order of rank (a counting sort, stable), then each put in front
 * of its parent's list, last one first. */
static void link_children(struct builder *builder)
{
    size_t count = builder->nodes.count;
    size_t rank_count = 0;
    struct call_node *nodes = builder->nodes.items;
    AUTO_FREE uint32_t *ranks = rank_nodes(builder, &rank_count);
    AUTO_FREE uint32_t *order = memory_zeroed(count, sizeof *order);
    AUTO_FREE uint32_t *next_place = memory_zeroed(rank_count + 1, sizeof *next_place);

    for (size_t i = 0; i < count; i++)
        next_place[ranks[i] + 1]++;
    for (size_t rank = 1; rank <= rank_count; rank++)
        next_place[rank] += next_place[rank - 1];
    for (size_t i = 0; i < count; i++)
        order[next_place[ranks[i]]++] = (uint32_t)i;
    for (size_t i = count; i-- > 0;) {
        uint32_t child = order[i];

        if (child == 0)
            continue;
        nodes[child].next_sibling = nodes[nodes[child].parent].first_child;
        nodes[nodes[child].parent].first_child = child;
    }
}

/* Numbers the nodes anew, each before its children and these before its next sibling, so that the numbers too
 * depend on nothing but the names. */
static void renumber(struct builder *builder, struct call_tree *tree)
{
    const struct call_node *old = builder->nodes.items;
    size_t count = builder->nodes.count;
    AUTO_FREE uint32_t *new_id = memory_zeroed(count, sizeof *new_id);
    uint32_t node = 0;

    tree->nodes = memory_zeroed(count, sizeof *tree->nodes);
    for (;;) {
        new_id[node] = (uint32_t)tree->count;
        tree->nodes[tree->count++] = old[node];
        if (old[node].first_child != 0) {
            node = old[node].first_child;
            continue;
        }
        while (node != 0 && old[node].next_sibling == 0)
            node = old[node].parent;
        if (node == 0)
            break;
        node = old[node].next_sibling;
    }
    for (size_t i = 0; i < tree->count; i++) {
        tree->nodes[i].parent = new_id[tree->nodes[i].parent];
        tree->nodes[i].first_child = new_id[tree->nodes[i].first_child];
        tree->nodes[i].next_sibling = new_id[tree->nodes[i].next_sibling];
    }
    tree->idle_node = new_id[builder->idle_node];
}

static uint64_t self_ns_of_all_states(const struct call_node *node)
{
    uint64_t sum_ns = 0;

    for (int state = 0; state < STATE_COUNT; state++)
        sum_ns += node->self_ns[state];
    return sum_ns;
}

static void sum_up(struct call_tree *tree)
{
    AUTO_FREE uint64_t *self_ns = memory_zeroed(tree->count, sizeof *self_ns);
    AUTO_FREE uint64_t *self_us = memory_zeroed(tree->count, sizeof *self_us);
    uint64_t total_ns = 0;

    for (size_t i = 0; i < tree->count; i++) {
        self_ns[i] = self_ns_of_all_states(&tree->nodes[i]);
        total_ns += self_ns[i];
    }
    share_by_largest_remainder(self_ns, tree->count, (total_ns + NS_PER_US / 2) / NS_PER_US, self_us);
    for (size_t i = tree->count; i-- > 0;) {
        struct call_node *node = &tree->nodes[i];
        struct call_node *parent = &tree->nodes[node->parent];

        node->self_us = self_us[i];
        node->total_us += self_us[i];
        for (int state = 0; state < STATE_COUNT; state++)
            node->total_ns[state] += node->self_ns[state];
        if (i == 0)
            break;
        parent->total_us += node->total_us;
        for (int state = 0; state < STATE_COUNT; state++)
            parent->total_ns[state] += node->total_ns[state];
    }
}

struct call_tree *call_tree_build(const struct profile *profile, const struct call_tree_options *options)
{
    struct call_tree *tree = memory_zeroed(1, sizeof *tree);
    struct builder builder = {.profile = profile, .options = options, .strings = string_table_create()};

    add_node(&builder, 0, string_table_intern(builder.strings, "all"), CALL_NODE_GROUP);
    for (size_t i = 0; i < profile->thread_count; i++)
        add_thread(&builder, &profile->threads[i]);
    tree->strings = builder.strings;
    link_children(&builder);
    renumber(&builder, tree);
    sum_up(tree);
    free(builder.nodes.items);
    free(builder.path.items);
    id_map_finish(&builder.groups);
    id_map_finish(&builder.stacks);
    return tree;
}

void call_tree_destroy(struct call_tree *tree)
{
    if (tree == NULL)
        return;
    free(tree->nodes);
    string_table_destroy(tree->strings);
    free(tree);
}

char *thread_pool_name(const char *thread_name)
{
    char *name = string_copy(thread_name);
    size_t length = 0;
    bool in_digits = false;

    for (const char *c = thread_name; *c != '\0'; c++) {
        bool digit = *c >= '0' && *c <= '9';

        if (!digit)
            name[length++] = *c;
        else if (!in_digits)
            name[length++] = '*';
        in_digits = digit;
    }
    name[length] = '\0';
    return name;
}

struct remainder {
    uint64_t rest;
    size_t index;
};

static int compare_remainders(const void *left, const void *right)
{
    const struct remainder *a = left;
    const struct remainder *b = right;

    if (a->rest != b->rest)
        return a->rest > b->rest ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

void share_by_largest_remainder(const uint64_t *weights, size_t count, uint64_t total_units,
                                uint64_t *ret_units)
{
    AUTO_FREE struct remainder *rests = memory_zeroed(count, sizeof *rests);
    size_t rest_count = 0;
    uint64_t sum = 0;
    uint64_t left = total_units;

    for (size_t i = 0; i < count; i++)
        sum += weights[i];
    for (size_t i = 0; i < count; i++) {
        /* 128 bits: weights are nanoseconds of many threads, units are microseconds of them. */
        unsigned __int128 quota = (unsigned __int128)weights[i] * total_units;

        ret_units[i] = 0;
        if (quota == 0)
            continue;
        ret_units[i] = (uint64_t)(quota / sum);
        left -= ret_units[i];
        if (quota % sum != 0)
            rests[rest_count++] = (struct remainder){.rest = (uint64_t)(quota % sum), .index = i};
    }
    if (rest_count == 0)
        return;
    qsort(rests, rest_count, sizeof *rests, compare_remainders);
    /* The rests add up to left times sum, so there are more of them than units left. */
    for (size_t i = 0; i < left; i++)
        ret_units[rests[i].index]++;
}
