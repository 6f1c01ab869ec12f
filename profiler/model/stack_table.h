/* Stacks as a prefix tree: a node is a frame below its parent, so common callers are kept once. The frame is
 * an id of some other table (location_table while sampling, the profile's frames after). Ids grow: parent <
 * child, so a loop over ids sees parents first.
 *
 *   uint32_t s = STACK_EMPTY;
 *   for (size_t i = count; i-- > 0;)              // root first
 *       s = stack_table_push(table, s, frames[i]);
 */
#ifndef STALLGRAPH_MODEL_STACK_TABLE_H
#define STALLGRAPH_MODEL_STACK_TABLE_H

#include <stdint.h>

enum { STACK_EMPTY = 0 }; /* the root, a stack of no frames; its parent is itself */

struct stack_node {
    uint32_t parent;
    uint32_t frame;
    uint32_t depth; /* frames from the root to here: 0 for STACK_EMPTY */
};

struct stack_table;

struct stack_table *stack_table_create(void);
void stack_table_destroy(struct stack_table *table);

/* The stack that has frame as its leaf and parent above it. */
uint32_t stack_table_push(struct stack_table *table, uint32_t parent, uint32_t frame);
struct stack_node stack_table_get(const struct stack_table *table, uint32_t id);
uint32_t stack_table_count(const struct stack_table *table); /* STACK_EMPTY included */

#endif
