/* A growing array. Zeroed is empty; free with free(v.items).
 *
 *   VEC_OF(struct mapping) mappings = {0};
 *   VEC_PUSH(&mappings, ((struct mapping){.start = 1}));
 *   for (size_t i = 0; i < mappings.count; i++) use(&mappings.items[i]);
 */
#ifndef STALLGRAPH_BASE_VEC_H
#define STALLGRAPH_BASE_VEC_H

#include <stddef.h>

#define VEC_OF(type)                                                                                         \
    struct {                                                                                                 \
        type *items;                                                                                         \
        size_t count;                                                                                        \
        size_t capacity;                                                                                     \
    }

/* Returns items, moved if need be, with room for at least need of them; updates *capacity. */
void *vec_reserve(void *items, size_t *capacity, size_t need, size_t item_size);

#define VEC_RESERVE(vec, need)                                                                               \
    ((vec)->items = vec_reserve((vec)->items, &(vec)->capacity, (need), sizeof *(vec)->items))

#define VEC_PUSH(vec, value)                                                                                 \
    do {                                                                                                     \
        VEC_RESERVE(vec, (vec)->count + 1);                                                                  \
        (vec)->items[(vec)->count++] = (value);                                                              \
    } while (0)

#endif
