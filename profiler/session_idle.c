#include <stdlib.h>
#include <string.h>

#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/session_internal.h"
#include "profiler/wait/idle_rule.h"

enum { MAX_FRAMES = 1024, LOOP_FRAMES = 1, LEAST_OTHERS = 3 };

struct node_count {
    uint32_t node;   /* of session->stacks */
    uint32_t visits; /* of stacks that pass through it */
};

/* Looks at one thread after another. */
struct session_idle {
    const struct session *session;
    struct idle_rules *rules;
    struct id_map visits; /* stack of the thread -> how often it was seen there */
    uint32_t all_visits;
    struct id_map verdicts; /* stack -> whether it is idle */
    bool counted;           /* nodes is filled */
    VEC_OF(struct node_count) nodes;
    struct id_map index_of_node;
    struct wait_function
        frames[MAX_FRAMES]; /* scratch: leaf first, without the wait frame and the kernel's */
    size_t count;
    bool from_start;
};

struct session_idle *session_idle_create(const struct session *session)
{
    struct session_idle *idle = memory_zeroed(1, sizeof *idle);
    const struct session_options *options = session->options;

    idle->session = session;
    idle_rules_create(options->idle_rules, options->idle_rule_count, options->busy_rules,
                      options->busy_rule_count, &idle->rules, NULL);
    return idle;
}

void session_idle_destroy(struct session_idle *idle)
{
    idle_rules_destroy(idle->rules);
    id_map_finish(&idle->visits);
    id_map_finish(&idle->verdicts);
    id_map_finish(&idle->index_of_node);
    free(idle->nodes.items);
    free(idle);
}

static bool is_stack(uint32_t stack)
{
    return stack != SPAN_NO_STACK && stack != CALIBRATION_LOST_STACK && stack != STACK_EMPTY;
}

void session_idle_begin_thread(struct session_idle *idle, const struct span *spans, size_t count)
{
    id_map_clear(&idle->visits);
    id_map_clear(&idle->verdicts);
    idle->all_visits = 0;
    idle->counted = false;
    for (size_t i = 0; i < count; i++) {
        uint32_t visits = 0;

        if (!is_stack(spans[i].stack))
            continue;
        id_map_get(&idle->visits, spans[i].stack, &visits);
        id_map_put(&idle->visits, spans[i].stack, visits + 1);
        idle->all_visits++;
    }
}

static void count_node(struct session_idle *idle, uint32_t node, uint32_t visits)
{
    uint32_t index;

    if (!id_map_get(&idle->index_of_node, node, &index)) {
        index = (uint32_t)idle->nodes.count;
        VEC_PUSH(&idle->nodes, ((struct node_count){.node = node}));
        id_map_put(&idle->index_of_node, node, index);
    }
    idle->nodes.items[index].visits += visits;
}

static void count_nodes(struct session_idle *idle)
{
    idle->counted = true;
    idle->nodes.count = 0;
    id_map_clear(&idle->index_of_node);
    for (size_t i = 0; i < idle->visits.capacity; i++) {
        const struct id_map_entry *entry = &idle->visits.entries[i];
        uint32_t visits;

        if (!id_map_get(&idle->visits, entry->key, &visits) || visits != entry->value)
            continue;
        for (uint32_t node = (uint32_t)entry->key; node != STACK_EMPTY;
             node = stack_table_get(idle->session->stacks, node).parent)
            count_node(idle, node, visits);
    }
}

/* How deep below the root a node is that the stack passes through; 0 = it does not. */
static size_t depth_in(const struct session_idle *idle, uint32_t stack, uint32_t node)
{
    const struct stack_table *stacks = idle->session->stacks;
    size_t depth = 0;

    while (stack != STACK_EMPTY && stack != node)
        stack = stack_table_get(stacks, stack).parent;
    for (; stack != STACK_EMPTY; stack = stack_table_get(stacks, stack).parent)
        depth++;
    return depth;
}

/* Of the frames next to the root, so many, those that are the program's own. */
static size_t own_frames(const struct session_idle *idle, size_t depth)
{
    size_t own = 0;

    for (size_t i = 0; i < depth && i < idle->count; i++)
        own += !wait_function_is_library(&idle->frames[idle->count - 1 - i]);
    return own;
}

/* Nine of ten times when the thread is elsewhere, it is below one function that this wait is not below, and that its
 * start function calls: that is its work. Further up the stack the same would be said of a wait within the work. */
static bool is_outside_work(struct session_idle *idle, uint32_t stack, uint32_t visits)
{
    uint32_t others = idle->all_visits - visits;

    if (others < LEAST_OTHERS)
        return false;
    if (!idle->counted)
        count_nodes(idle);
    for (size_t i = 0; i < idle->nodes.count; i++) {
        uint32_t parent;
        size_t depth;

        if ((uint64_t)idle->nodes.items[i].visits * 10 < (uint64_t)others * 9 ||
            depth_in(idle, stack, idle->nodes.items[i].node) > 0)
            continue;
        parent = stack_table_get(idle->session->stacks, idle->nodes.items[i].node).parent;
        depth = parent != STACK_EMPTY ? depth_in(idle, stack, parent) : 0;
        if (depth > 0 && own_frames(idle, depth) <= LOOP_FRAMES)
            return true;
    }
    return false;
}

/* The frames of a stack of the profile; returns the wait frame, its leaf. */
static const struct frame *list_frames(struct session_idle *idle, uint32_t stack)
{
    const struct profile *profile = idle->session->profile;
    const struct frame *leaf = NULL;

    idle->count = 0;
    idle->from_start = true;
    while (stack != STACK_EMPTY) {
        struct stack_node node = stack_table_get(profile->stacks, stack);
        const struct frame *frame = &profile->frames[node.frame];

        if (leaf == NULL)
            leaf = frame;
        else if (frame->kind == FRAME_USER && idle->count < MAX_FRAMES)
            idle->frames[idle->count++] =
                (struct wait_function){.name = string_table_get(profile->strings, frame->name),
                                       .module = string_table_get(profile->strings, frame->module)};
        else
            idle->from_start = frame->kind == FRAME_KERNEL;
        stack = node.parent;
    }
    return leaf;
}

bool session_idle_is(struct session_idle *idle, uint32_t raw_stack, uint32_t stack)
{
    struct idle_question question;
    struct idle_verdict verdict;
    const struct frame *leaf;
    uint32_t known;
    uint32_t visits = 1;

    if (id_map_get(&idle->verdicts, raw_stack, &known))
        return known != 0;
    leaf = list_frames(idle, stack);
    if (leaf == NULL || leaf->kind != FRAME_WAIT)
        return false;
    id_map_get(&idle->visits, raw_stack, &visits);
    question = (struct idle_question){
        .wait_text = string_table_get(idle->session->profile->strings, leaf->name),
        .frames = idle->frames,
        .count = idle->count,
        .from_start = idle->from_start,
        .has_driver = leaf->wait == WAIT_DATABASE,
        .returns = visits - 1,
    };
    verdict = idle_rules_judge(idle->rules, &question);
    if (verdict.reason == BUSY_IN_WORK && is_outside_work(idle, raw_stack, visits)) {
        question.outside_work = true;
        verdict = idle_rules_judge(idle->rules, &question);
    }
    id_map_put(&idle->verdicts, raw_stack, verdict.idle);
    return verdict.idle;
}
