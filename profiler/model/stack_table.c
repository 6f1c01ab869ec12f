#include "profiler/model/stack_table.h"

#include <stdlib.h>

#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

struct stack_table {
    VEC_OF(struct stack_node) nodes;
    struct id_map child_by_parent_and_frame;
};

struct stack_table *stack_table_create(void)
{
    struct stack_table *table = memory_zeroed(1, sizeof *table);

    VEC_PUSH(&table->nodes, ((struct stack_node){.parent = STACK_EMPTY}));
    return table;
}

void stack_table_destroy(struct stack_table *table)
{
    if (table == NULL)
        return;
    free(table->nodes.items);
    id_map_finish(&table->child_by_parent_and_frame);
    free(table);
}

uint32_t stack_table_push(struct stack_table *table, uint32_t parent, uint32_t frame)
{
    uint64_t key = (uint64_t)parent << 32 | frame;
    uint32_t id;

    if (id_map_get(&table->child_by_parent_and_frame, key, &id))
        return id;
    id = (uint32_t)table->nodes.count;
    VEC_PUSH(&table->nodes,
             ((struct stack_node){
                 .parent = parent, .frame = frame, .depth = table->nodes.items[parent].depth + 1}));
    id_map_put(&table->child_by_parent_and_frame, key, id);
    return id;
}

struct stack_node stack_table_get(const struct stack_table *table, uint32_t id)
{
    return table->nodes.items[id];
}

uint32_t stack_table_count(const struct stack_table *table)
{
    return (uint32_t)table->nodes.count;
}
