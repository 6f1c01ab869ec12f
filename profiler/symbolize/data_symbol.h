/* The variable that lies at an address of an ELF file's data: STT_OBJECT symbols of .symtab, else of .dynsym.
 */
#ifndef STALLGRAPH_SYMBOLIZE_DATA_SYMBOL_H
#define STALLGRAPH_SYMBOLIZE_DATA_SYMBOL_H

#include <stdint.h>

#include "profiler/model/binary.h"

/* The innermost variable that holds the ELF virtual address, demangled; the caller frees it. NULL = none, or
 * it has no symbols. Reads the whole table: for a few addresses, not for many. */
char *data_symbol_find(const struct binary *binary, uint64_t vaddr);

#endif
