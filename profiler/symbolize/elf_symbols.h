/* All that an ELF binary and what belongs to it say about the names of its functions, as one table.
 *
 * Sources: .symtab, else that of a separate debug file, else .gnu_debugdata; .dynsym always; PLT stubs.
 * Symbols: STT_FUNC, STT_GNU_IFUNC and STT_NOTYPE in executable sections, without mapping symbols ($x),
 * section-local labels (.L) and versions ("foo@@V1" is foo). */
#ifndef STALLGRAPH_SYMBOLIZE_ELF_SYMBOLS_H
#define STALLGRAPH_SYMBOLIZE_ELF_SYMBOLS_H

#include "profiler/model/binary.h"
#include "profiler/symbolize/symbol_table.h"
#include "profiler/symbolize/symbolizer_context.h"

/* Addresses in the table are ELF virtual addresses, names are mangled. Never NULL: empty where nothing could
 * be read. The caller destroys it. The context serves the search for debug files only. */
struct symbol_table *elf_symbols_load(const struct symbolizer_context *context, const struct binary *binary);

#endif
