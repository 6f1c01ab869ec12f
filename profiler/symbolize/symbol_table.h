/* The symbols of one binary, or of the kernel, kept compactly: disjoint address ranges, each with one name.
 *
 *   struct symbol_table_builder builder = {0};
 *   symbol_table_add(&builder, &(struct symbol_candidate){.address = 0x1000, .size_bytes = 16, .name =
 * "main", ...}); struct symbol_table *table = symbol_table_build(&builder); const char *name =
 * symbol_table_find(table, 0x1008);
 *
 * What wins where symbols compete:
 * - at one address, the lower rank; then fewer leading underscores, then the shorter name, then the order of
 * the bytes. The winner covers as much as the largest of those at its address.
 * - where ranges overlap, the one that starts last (the innermost).
 * - a symbol of unknown size reaches to the next symbol, at most to its limit; one inside a symbol of known
 * size is a label of that function and gives no name. */
#ifndef STALLGRAPH_SYMBOLIZE_SYMBOL_TABLE_H
#define STALLGRAPH_SYMBOLIZE_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SYMBOL_RANK_GLOBAL = 0,
    SYMBOL_RANK_WEAK = 1,
    SYMBOL_RANK_LOCAL = 2,
    SYMBOL_RANK_UNTYPED = 4, /* added to one of the above: labels lose against functions */
    SYMBOL_RANK_STUB = 8,    /* PLT entries, whose names are ours */
    SYMBOL_RANK_STOP = 15,   /* data: ends the symbol before it and names nothing */
};

struct symbol_candidate {
    uint64_t address;
    uint64_t size_bytes;  /* is_sized: its size, else how far it may reach at most */
    const char *name;     /* not NUL-terminated; must outlive symbol_table_build */
    uint32_t name_length; /* 0 with SYMBOL_RANK_STOP */
    uint8_t rank;
    bool is_sized;
};

/* Zeroed is empty. symbol_table_build takes everything out of it; one that is not built is finished. */
struct symbol_table_builder {
    struct symbol_candidate *candidates;
    size_t count;
    size_t capacity;
    bool is_sorted;
    char **owned_names;
    size_t owned_count;
    size_t owned_capacity;
};

struct symbol_table;

/* Returns false, and adds nothing, where the builder holds as many as it takes (4 million). */
bool symbol_table_add(struct symbol_table_builder *builder, const struct symbol_candidate *candidate);

/* The same with a name that the builder takes over (from malloc). */
bool symbol_table_add_owned(struct symbol_table_builder *builder, struct symbol_candidate candidate,
                            char *name);

/* The winner among those added so far that begin exactly at the address, or NULL. Valid until the next add.
 */
const struct symbol_candidate *symbol_table_candidate_at(struct symbol_table_builder *builder,
                                                         uint64_t address);

/* Never NULL; empties the builder. */
struct symbol_table *symbol_table_build(struct symbol_table_builder *builder);
void symbol_table_builder_finish(struct symbol_table_builder *builder);

void symbol_table_destroy(struct symbol_table *table); /* NULL allowed */

/* The name of the range that holds the address, or NULL. Valid until the table is destroyed. table may be
 * NULL. */
const char *symbol_table_find(const struct symbol_table *table, uint64_t address);
size_t symbol_table_count(const struct symbol_table *table);

#endif
