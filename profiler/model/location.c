#include "profiler/model/location.h"

#include <stdlib.h>

#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

enum { NO_LOCATION = UINT32_MAX };

struct entry {
    struct location location;
    uint32_t next_same_hash;
};

struct location_table {
    VEC_OF(struct entry) entries;
    struct id_map first_by_hash;
};

struct location_table *location_table_create(void)
{
    return memory_zeroed(1, sizeof(struct location_table));
}

void location_table_destroy(struct location_table *table)
{
    if (table == NULL)
        return;
    free(table->entries.items);
    id_map_finish(&table->first_by_hash);
    free(table);
}

uint32_t location_table_intern(struct location_table *table, const struct location *location)
{
    uint64_t hash = hash_mix(hash_mix(location->kind, location->owner), location->address);
    uint32_t first = NO_LOCATION;
    uint32_t id;

    if (id_map_get(&table->first_by_hash, hash, &first)) {
        for (id = first; id != NO_LOCATION; id = table->entries.items[id].next_same_hash) {
            const struct location *known = &table->entries.items[id].location;

            if (known->kind == location->kind && known->owner == location->owner &&
                known->address == location->address)
                return id;
        }
    }
    id = (uint32_t)table->entries.count;
    VEC_PUSH(&table->entries, ((struct entry){.location = *location, .next_same_hash = first}));
    id_map_put(&table->first_by_hash, hash, id);
    return id;
}

const struct location *location_table_get(const struct location_table *table, uint32_t id)
{
    return &table->entries.items[id].location;
}

uint32_t location_table_count(const struct location_table *table)
{
    return (uint32_t)table->entries.count;
}
