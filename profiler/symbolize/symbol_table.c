#include "profiler/symbolize/symbol_table.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/symbolize/symbol_name.h"

enum { CANDIDATES_MAX = 4 * 1024 * 1024 };

/* Names may share their bytes in a file's string section (one is the end of another), so a small hostile file
 * could ask for any amount of copies: beyond this, ranges go without a name. */
#define NAMES_MAX_BYTES (UINT32_C(256) << 20)

#define NO_NAME UINT32_MAX

struct symbol_range {
    uint64_t start;
    uint32_t size_bytes;
    uint32_t name; /* offset into names */
};

struct symbol_table {
    struct symbol_range *ranges; /* by start, ascending, disjoint */
    size_t count;
    size_t capacity;
    char *names; /* NUL-terminated, one after the other */
    size_t names_size;
    size_t names_capacity;
};

/* A symbol whose range has begun and has not ended yet, while the ranges are made. */
struct open_symbol {
    uint64_t end;
    size_t candidate;
    uint32_t name; /* NO_NAME until it gets its first range */
    bool is_sized;
};

struct sweep {
    const struct symbol_table_builder *builder;
    struct symbol_table *table;
    struct open_symbol *open; /* innermost last */
    size_t open_count;
    size_t open_capacity;
    uint64_t position; /* everything below it is done */
};

bool symbol_table_add(struct symbol_table_builder *builder, const struct symbol_candidate *candidate)
{
    if (builder->count >= CANDIDATES_MAX)
        return false;
    builder->candidates =
        vec_reserve(builder->candidates, &builder->capacity, builder->count + 1, sizeof *builder->candidates);
    builder->candidates[builder->count++] = *candidate;
    builder->is_sorted = false;
    return true;
}

bool symbol_table_add_owned(struct symbol_table_builder *builder, struct symbol_candidate candidate,
                            char *name)
{
    candidate.name = name;
    candidate.name_length = (uint32_t)strlen(name);
    builder->owned_names = vec_reserve(builder->owned_names, &builder->owned_capacity,
                                       builder->owned_count + 1, sizeof *builder->owned_names);
    builder->owned_names[builder->owned_count++] = name;
    return symbol_table_add(builder, &candidate);
}

static uint32_t leading_underscores(const struct symbol_candidate *c)
{
    uint32_t count = 0;

    while (count < c->name_length && c->name[count] == '_')
        count++;
    return count;
}

static int compare_candidates(const void *left, const void *right)
{
    const struct symbol_candidate *a = left;
    const struct symbol_candidate *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (leading_underscores(a) != leading_underscores(b))
        return leading_underscores(a) < leading_underscores(b) ? -1 : 1;
    if (a->name_length != b->name_length)
        return a->name_length < b->name_length ? -1 : 1;
    return a->name_length == 0 ? 0 : memcmp(a->name, b->name, a->name_length);
}

static void sort_candidates(struct symbol_table_builder *builder)
{
    if (!builder->is_sorted && builder->count > 0)
        qsort(builder->candidates, builder->count, sizeof *builder->candidates, compare_candidates);
    builder->is_sorted = true;
}

const struct symbol_candidate *symbol_table_candidate_at(struct symbol_table_builder *builder,
                                                         uint64_t address)
{
    size_t low = 0;
    size_t high = builder->count;

    sort_candidates(builder);
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (builder->candidates[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < builder->count && builder->candidates[low].address == address ? &builder->candidates[low]
                                                                               : NULL;
}

static uint32_t add_name(struct symbol_table *table, const struct symbol_candidate *candidate)
{
    size_t offset = table->names_size;
    size_t room = candidate->name_length;

    if (room > SYMBOL_NAME_MAX_BYTES)
        room = SYMBOL_NAME_MAX_BYTES;
    if (offset + room + 1 > NAMES_MAX_BYTES)
        return NO_NAME;
    table->names = vec_reserve(table->names, &table->names_capacity, offset + room + 1, 1);
    table->names_size += symbol_name_copy(table->names + offset, candidate->name, candidate->name_length) + 1;
    return (uint32_t)offset;
}

/* The innermost open symbol gets what lies between the position and end. */
static void emit_until(struct sweep *sweep, uint64_t end)
{
    struct open_symbol *top = &sweep->open[sweep->open_count - 1];
    struct symbol_table *table = sweep->table;
    uint64_t size_bytes = end - sweep->position;

    if (end <= sweep->position)
        return;
    if (top->name == NO_NAME)
        top->name = add_name(table, &sweep->builder->candidates[top->candidate]);
    if (top->name != NO_NAME) {
        table->ranges = vec_reserve(table->ranges, &table->capacity, table->count + 1, sizeof *table->ranges);
        table->ranges[table->count++] = (struct symbol_range){
            .start = sweep->position,
            .size_bytes = size_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)size_bytes,
            .name = top->name,
        };
    }
    sweep->position = end;
}

/* Ends all open symbols that end at or before the address, and gives the one that remains what lies before
 * it. */
static void advance(struct sweep *sweep, uint64_t address)
{
    while (sweep->open_count > 0 && sweep->open[sweep->open_count - 1].end <= address) {
        emit_until(sweep, sweep->open[sweep->open_count - 1].end);
        sweep->open_count--;
    }
    if (sweep->open_count > 0)
        emit_until(sweep, address);
    sweep->position = address;
}

static uint64_t range_end(uint64_t address, uint64_t size_bytes)
{
    return size_bytes > UINT64_MAX - address ? UINT64_MAX : address + size_bytes;
}

/* The candidates [first, next) begin at one address; the first of them wins. */
static void open_group(struct sweep *sweep, size_t first, size_t next)
{
    const struct symbol_candidate *candidates = sweep->builder->candidates;
    uint64_t address = candidates[first].address;
    bool is_sized = false;
    uint64_t size_bytes = 0;
    uint64_t reach_bytes = 0;
    uint64_t end;

    for (size_t i = first; i < next; i++) {
        uint64_t size = candidates[i].size_bytes;

        is_sized = is_sized || candidates[i].is_sized;
        if (candidates[i].is_sized && size > size_bytes)
            size_bytes = size;
        if (!candidates[i].is_sized && size > reach_bytes)
            reach_bytes = size;
    }
    end = range_end(address, is_sized ? size_bytes : reach_bytes);
    if (!is_sized && next < sweep->builder->count && candidates[next].address < end)
        end = candidates[next].address;
    advance(sweep, address);
    if (candidates[first].rank == SYMBOL_RANK_STOP)
        return;
    if (!is_sized && sweep->open_count > 0 && sweep->open[sweep->open_count - 1].is_sized)
        return;
    sweep->open = vec_reserve(sweep->open, &sweep->open_capacity, sweep->open_count + 1, sizeof *sweep->open);
    sweep->open[sweep->open_count++] =
        (struct open_symbol){.end = end, .candidate = first, .name = NO_NAME, .is_sized = is_sized};
}

struct symbol_table *symbol_table_build(struct symbol_table_builder *builder)
{
    struct symbol_table *table = memory_zeroed(1, sizeof *table);
    struct sweep sweep = {.builder = builder, .table = table};

    sort_candidates(builder);
    for (size_t first = 0, next; first < builder->count; first = next) {
        for (next = first + 1; next < builder->count; next++)
            if (builder->candidates[next].address != builder->candidates[first].address)
                break;
        open_group(&sweep, first, next);
    }
    advance(&sweep, UINT64_MAX);
    free(sweep.open);
    symbol_table_builder_finish(builder);
    table->ranges = memory_resize(table->ranges, table->count, sizeof *table->ranges);
    table->names = memory_resize(table->names, table->names_size, 1);
    return table;
}

void symbol_table_builder_finish(struct symbol_table_builder *builder)
{
    for (size_t i = 0; i < builder->owned_count; i++)
        free(builder->owned_names[i]);
    free(builder->owned_names);
    free(builder->candidates);
    *builder = (struct symbol_table_builder){0};
}

void symbol_table_destroy(struct symbol_table *table)
{
    if (table == NULL)
        return;
    free(table->ranges);
    free(table->names);
    free(table);
}

const char *symbol_table_find(const struct symbol_table *table, uint64_t address)
{
    size_t low = 0;
    size_t high = table != NULL ? table->count : 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address - table->ranges[low - 1].start >= table->ranges[low - 1].size_bytes)
        return NULL;
    return table->names + table->ranges[low - 1].name;
}

size_t symbol_table_count(const struct symbol_table *table)
{
    return table != NULL ? table->count : 0;
}
