/* Names for the stubs of the procedure linkage table, which have no symbols: "puts@plt". */
#ifndef STALLGRAPH_SYMBOLIZE_PLT_H
#define STALLGRAPH_SYMBOLIZE_PLT_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/symbolize/elf_file.h"
#include "profiler/symbolize/symbol_table.h"

/* Of .plt, .plt.sec, .plt.got and .iplt; x86-64 only. The symbols of the file must have been added before,
 * since the stubs of functions that are chosen at start (IRELATIVE) are named by them. */
void plt_add_symbols(struct symbol_table_builder *builder, struct elf_file *file);

enum plt_stub_kind {
    PLT_NONE,
    PLT_JUMP_SLOT,  /* jumps through the slot of the GOT at an address */
    PLT_PUSH_INDEX, /* pushes the number of a relocation (first half of a lazily bound pair) */
};

struct plt_stub {
    enum plt_stub_kind kind;
    uint64_t slot_address; /* PLT_JUMP_SLOT */
    uint32_t index;        /* PLT_PUSH_INDEX */
};

/* What the x86-64 code at an address does, from at least the first 8 of its bytes. */
struct plt_stub plt_decode(const uint8_t *code, size_t size_bytes, uint64_t address);

#endif
