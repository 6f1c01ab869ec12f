/* A profile folded into one tree: all samples of a path of names added up, by state. What folded text, the
 * SVG, pprof and speedscope's "All threads" draw, so that they agree.
 *
 *   struct call_tree *tree = call_tree_build(profile, &options);
 *   const struct call_node *root = &tree->nodes[0];
 *   for (uint32_t c = root->first_child; c != 0; c = tree->nodes[c].next_sibling) ...
 */
#ifndef STALLGRAPH_MODEL_CALL_TREE_H
#define STALLGRAPH_MODEL_CALL_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/model/profile.h"

enum idle_mode { IDLE_SEPARATE, IDLE_HIDE, IDLE_MERGE }; /* under "[idle]", left out, among the rest */
enum thread_grouping {
    THREADS_POOL,
    THREADS_EACH,
    THREADS_MERGE
}; /* names with digits starred, one by one, all in one */

struct call_tree_options {
    enum idle_mode idle;
    enum thread_grouping threads;
};

enum { CALL_NODE_GROUP = UINT32_MAX }; /* frame of a node that is a process, a pool or "[idle]", not code */

struct call_node {
    uint32_t name;  /* string id in the tree's own strings: for a group its text; for a frame its raw name */
    uint32_t frame; /* frame id of the profile, or CALL_NODE_GROUP */
    uint32_t parent;
    uint32_t first_child;  /* 0 = none */
    uint32_t next_sibling; /* 0 = none */
    uint32_t depth;        /* 0 for the root */
    uint64_t self_ns[STATE_COUNT];
    uint64_t total_ns[STATE_COUNT]; /* self and all below */
    uint64_t self_us;  /* whole microseconds by the largest-remainder method: they add up to the profile's
                          total, rounded */
    uint64_t total_us; /* self_us and all below */
};

/* Children stand in order of their names (bytes), then frame id, so that equal profiles give equal trees. */
struct call_tree {
    struct call_node *nodes; /* nodes[0] is the root; parent < child */
    size_t count;
    struct string_table *strings;
    uint32_t idle_node; /* the group "[idle]"; 0 = there is none */
};

/* Below the root: process, then pool or thread, then frames. With IDLE_SEPARATE idle stacks hang below a
 * first "[idle]". With THREADS_MERGE the pool level is left out. */
struct call_tree *call_tree_build(const struct profile *profile, const struct call_tree_options *options);
void call_tree_destroy(struct call_tree *tree);

/* "worker-12" -> "worker-*": each run of digits becomes one star. Caller frees. */
char *thread_pool_name(const char *thread_name);

/* Shares total_units out over count weights in proportion, in whole units, by the largest-remainder method
 * (ties: lower index first); ret_units[i] add up to total_units. All weights 0 gives all 0. */
void share_by_largest_remainder(const uint64_t *weights, size_t count, uint64_t total_units,
                                uint64_t *ret_units);

#endif
