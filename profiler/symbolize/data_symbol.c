#include "profiler/symbolize/data_symbol.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/symbolize/demangle.h"
#include "profiler/symbolize/elf_file.h"

enum { SYMBOLS_MAX_BYTES = 256 * 1024 * 1024, NAME_MAX_BYTES = 4096 };

static bool find_table(struct elf_file *file, uint32_t type, struct elf_section *ret_symbols,
                       struct elf_section *ret_strings)
{
    for (size_t index = 1; index < file->section_count; index++) {
        if (!elf_file_section(file, index, ret_symbols) || ret_symbols->header.sh_type != type)
            continue;
        return elf_file_section(file, ret_symbols->header.sh_link, ret_strings) &&
               elf_file_load(file, ret_symbols, SYMBOLS_MAX_BYTES) &&
               elf_file_load(file, ret_strings, SYMBOLS_MAX_BYTES);
    }
    return false;
}

/* Where several hold it, the one that begins last. */
static char *search(const struct elf_section *symbols, const struct elf_section *strings, uint64_t vaddr)
{
    const char *name = NULL;
    size_t length = 0;
    uint64_t best = 0;

    for (size_t at = 0; symbols->size_bytes - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;

        memcpy(&symbol, symbols->bytes + at, sizeof symbol);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF ||
            vaddr < symbol.st_value || vaddr - symbol.st_value >= symbol.st_size ||
            (name != NULL && symbol.st_value <= best))
            continue;
        name = elf_section_string(strings, symbol.st_name, &length);
        best = symbol.st_value;
    }
    return name != NULL && length > 0 && length < NAME_MAX_BYTES ? string_copy_length(name, length) : NULL;
}

char *data_symbol_find(const struct binary *binary, uint64_t vaddr)
{
    static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
    AUTO_FREE char *mangled = NULL;
    struct elf_file file;

    if (elf_file_open_binary(&file, binary) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof types / sizeof types[0] && mangled == NULL; i++) {
        struct elf_section symbols;
        struct elf_section strings;

        if (find_table(&file, types[i], &symbols, &strings))
            mangled = search(&symbols, &strings, vaddr);
    }
    elf_file_close(&file);
    return mangled != NULL ? demangle_name(mangled) : NULL;
}
