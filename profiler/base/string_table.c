#include "profiler/base/string_table.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

struct entry {
    char *text;
    uint32_t next_same_hash; /* 0 = none: id 0 is the empty string and ends no chain */
};

struct string_table {
    VEC_OF(struct entry) entries;
    struct id_map first_by_hash;
};

static uint32_t add(struct string_table *table, const char *bytes, size_t length, uint64_t hash,
                    uint32_t next)
{
    uint32_t id = (uint32_t)table->entries.count;

    VEC_PUSH(&table->entries,
             ((struct entry){.text = string_copy_length(bytes, length), .next_same_hash = next}));
    id_map_put(&table->first_by_hash, hash, id);
    return id;
}

struct string_table *string_table_create(void)
{
    struct string_table *table = memory_zeroed(1, sizeof *table);

    add(table, "", 0, hash_bytes("", 0), 0);
    return table;
}

void string_table_destroy(struct string_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->entries.count; i++)
        free(table->entries.items[i].text);
    free(table->entries.items);
    id_map_finish(&table->first_by_hash);
    free(table);
}

uint32_t string_table_intern_length(struct string_table *table, const char *bytes, size_t length_bytes)
{
    size_t length = strnlen(bytes, length_bytes);
    uint64_t hash = hash_bytes(bytes, length);
    uint32_t first = 0;

    if (length == 0)
        return 0;
    if (id_map_get(&table->first_by_hash, hash, &first)) {
        for (uint32_t id = first; id != 0; id = table->entries.items[id].next_same_hash) {
            const char *text = table->entries.items[id].text;

            if (strlen(text) == length && memcmp(text, bytes, length) == 0)
                return id;
        }
    }
    return add(table, bytes, length, hash, first);
}

uint32_t string_table_intern(struct string_table *table, const char *text)
{
    return string_table_intern_length(table, text, strlen(text));
}

const char *string_table_get(const struct string_table *table, uint32_t id)
{
    return table->entries.items[id].text;
}

uint32_t string_table_count(const struct string_table *table)
{
    return (uint32_t)table->entries.count;
}
