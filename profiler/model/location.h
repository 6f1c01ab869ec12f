/* A place in code before it has a name: (binary, address), a kernel address, or a synthetic frame. Interned:
 * equal places have equal ids. */
#ifndef STALLGRAPH_MODEL_LOCATION_H
#define STALLGRAPH_MODEL_LOCATION_H

#include <stdint.h>

enum location_kind {
    LOCATION_USER,      /* owner = binary id; address = ELF virtual address (BINARY_JIT: absolute address) */
    LOCATION_KERNEL,    /* address = kernel address */
    LOCATION_UNMAPPED,  /* owner = process id; address = absolute address that no known mapping holds */
    LOCATION_SYNTHETIC, /* owner = string id of the frame's text, in the profile's string table */
};

/* Addresses are look-up addresses: of the instruction that was executing, so a return address is given
 * minus 1. */
struct location {
    enum location_kind kind;
    uint32_t owner;
    uint64_t address;
};

struct location_table;

struct location_table *location_table_create(void);
void location_table_destroy(struct location_table *table);
uint32_t location_table_intern(struct location_table *table, const struct location *location);
/* Valid until the next intern. */
const struct location *location_table_get(const struct location_table *table, uint32_t id);
uint32_t location_table_count(const struct location_table *table);

#endif
