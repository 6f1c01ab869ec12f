/* A hash map from 64-bit keys to 32-bit ids. Open addressing; every key and every value is allowed,
 * so absence is told by the return value. Zeroed is empty. */
#ifndef STALLGRAPH_BASE_ID_MAP_H
#define STALLGRAPH_BASE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_map_entry {
    uint64_t key;
    uint32_t value;
    uint32_t state; /* private */
};

struct id_map {
    struct id_map_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t used;     /* live and removed entries */
    size_t count;    /* live entries */
};

void id_map_finish(struct id_map *map);
bool id_map_get(const struct id_map *map, uint64_t key, uint32_t *ret_value);
void id_map_put(struct id_map *map, uint64_t key, uint32_t value); /* replaces */
bool id_map_remove(struct id_map *map, uint64_t key);
void id_map_clear(struct id_map *map);

/* A well-mixing hash of 64 bits, for keys that are made of several numbers. */
uint64_t hash_mix(uint64_t seed, uint64_t value);
uint64_t hash_bytes(const void *bytes, size_t size_bytes);

#endif
