#include "profiler/base/id_map.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/memory.h"

enum { ENTRY_FREE = 0, ENTRY_LIVE = 1, ENTRY_REMOVED = 2, MIN_CAPACITY = 16 };

uint64_t hash_mix(uint64_t seed, uint64_t value)
{
    uint64_t h = seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));

    h ^= h >> 30;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 27;
    h *= 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

uint64_t hash_bytes(const void *bytes, size_t size_bytes)
{
    const unsigned char *at = bytes;
    uint64_t h = size_bytes;

    while (size_bytes >= sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, at, sizeof word);
        h = hash_mix(h, word);
        at += sizeof word;
        size_bytes -= sizeof word;
    }
    if (size_bytes > 0) {
        uint64_t word = 0;

        memcpy(&word, at, size_bytes);
        h = hash_mix(h, word);
    }
    return h;
}

static struct id_map_entry *find(const struct id_map *map, uint64_t key)
{
    size_t mask = map->capacity - 1;

    if (map->capacity == 0)
        return NULL;
    for (size_t i = hash_mix(0, key) & mask;; i = (i + 1) & mask) {
        struct id_map_entry *entry = &map->entries[i];

        if (entry->state == ENTRY_FREE)
            return NULL;
        if (entry->state == ENTRY_LIVE && entry->key == key)
            return entry;
    }
}

static void insert_new(struct id_map *map, uint64_t key, uint32_t value)
{
    size_t mask = map->capacity - 1;
    size_t i = hash_mix(0, key) & mask;

    while (map->entries[i].state != ENTRY_FREE)
        i = (i + 1) & mask;
    map->entries[i] = (struct id_map_entry){.key = key, .value = value, .state = ENTRY_LIVE};
    map->used++;
    map->count++;
}

/* Also sheds removed entries; at most two thirds are used, so that a search always ends at a free one. */
static void rebuild(struct id_map *map)
{
    struct id_map old = *map;
    size_t capacity = MIN_CAPACITY;

    while (capacity < (old.count + 1) * 2)
        capacity *= 2;
    *map = (struct id_map){.entries = memory_zeroed(capacity, sizeof *map->entries), .capacity = capacity};
    for (size_t i = 0; i < old.capacity; i++)
        if (old.entries[i].state == ENTRY_LIVE)
            insert_new(map, old.entries[i].key, old.entries[i].value);
    free(old.entries);
}

void id_map_finish(struct id_map *map)
{
    if (map == NULL)
        return;
    free(map->entries);
    *map = (struct id_map){0};
}

bool id_map_get(const struct id_map *map, uint64_t key, uint32_t *ret_value)
{
    const struct id_map_entry *entry = find(map, key);

    if (entry == NULL)
        return false;
    *ret_value = entry->value;
    return true;
}

void id_map_put(struct id_map *map, uint64_t key, uint32_t value)
{
    struct id_map_entry *entry = find(map, key);

    if (entry != NULL) {
        entry->value = value;
        return;
    }
    if ((map->used + 1) * 3 > map->capacity * 2)
        rebuild(map);
    insert_new(map, key, value);
}

bool id_map_remove(struct id_map *map, uint64_t key)
{
    struct id_map_entry *entry = find(map, key);

    if (entry == NULL)
        return false;
    entry->state = ENTRY_REMOVED;
    map->count--;
    return true;
}

void id_map_clear(struct id_map *map)
{
    id_map_finish(map);
}
