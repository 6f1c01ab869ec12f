#include "profiler/symbolize/elf_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/memory.h"
#include "profiler/symbolize/debug_file.h"
#include "profiler/symbolize/elf_file.h"
#include "profiler/symbolize/minidebuginfo.h"
#include "profiler/symbolize/plt.h"

#define SYMBOLS_MAX_BYTES (UINT64_C(128) << 20)
#define STRINGS_MAX_BYTES (UINT64_C(256) << 20)

/* The addresses of an executable section. */
struct code_range {
    uint64_t start;
    uint64_t end;
};

struct code {
    struct code_range *ranges; /* by start, ascending */
    size_t count;
};

static int compare_ranges(const void *left, const void *right)
{
    const struct code_range *a = left;
    const struct code_range *b = right;

    return a->start < b->start ? -1 : a->start > b->start;
}

/* --only-keep-debug leaves addresses and flags in place though the code is gone. */
static struct code find_code(const struct elf_file *file)
{
    struct code code = {.ranges = memory_zeroed(file->section_count, sizeof *code.ranges)};

    for (size_t i = 1; i < file->section_count; i++) {
        struct elf_section section;

        if (elf_file_section(file, i, &section) && (section.header.sh_flags & SHF_EXECINSTR) != 0 &&
            section.header.sh_size <= UINT64_MAX - section.header.sh_addr)
            code.ranges[code.count++] =
                (struct code_range){section.header.sh_addr, section.header.sh_addr + section.header.sh_size};
    }
    qsort(code.ranges, code.count, sizeof *code.ranges, compare_ranges);
    return code;
}

/* By address and not by st_shndx: objcopy and strip leave the section numbers of .dynsym as they were when
 * they remove a section. */
static const struct code_range *code_at(const struct code *code, uint64_t address)
{
    size_t low = 0;
    size_t high = code->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (code->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && address < code->ranges[low - 1].end ? &code->ranges[low - 1] : NULL;
}

static bool rank_symbol(const Elf64_Sym *symbol, const char *name, uint8_t *ret_rank)
{
    int rank;

    switch (ELF64_ST_BIND(symbol->st_info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
        rank = SYMBOL_RANK_GLOBAL;
        break;
    case STB_WEAK:
        rank = SYMBOL_RANK_WEAK;
        break;
    default:
        rank = SYMBOL_RANK_LOCAL;
        break;
    }
    switch (ELF64_ST_TYPE(symbol->st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
        break;
    case STT_NOTYPE:
        /* Marks of assemblers and compilers: $x, .L42, .annobin_... */
        if (name[0] == '$' || name[0] == '.')
            return false;
        rank += SYMBOL_RANK_UNTYPED;
        break;
    default:
        return false;
    }
    *ret_rank = (uint8_t)rank;
    return true;
}

static void add_symbol(struct symbol_table_builder *builder, const Elf64_Sym *symbol,
                       const struct elf_section *strings, const struct code *code)
{
    const struct code_range *range = code_at(code, symbol->st_value);
    struct symbol_candidate candidate = {.address = symbol->st_value, .is_sized = symbol->st_size > 0};
    const char *version;
    uint64_t reach_bytes;
    size_t length;

    if (range == NULL || symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
        return;
    candidate.name = elf_section_string(strings, symbol->st_name, &length);
    if (length == 0 || !rank_symbol(symbol, candidate.name, &candidate.rank))
        return;
    version = memchr(candidate.name + 1, '@', length - 1);
    if (version != NULL)
        length = (size_t)(version - candidate.name);
    candidate.name_length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
    reach_bytes = range->end - symbol->st_value;
    candidate.size_bytes =
        candidate.is_sized && symbol->st_size < reach_bytes ? symbol->st_size : reach_bytes;
    symbol_table_add(builder, &candidate);
}

/* Adds the symbols of one section, .symtab or .dynsym. Returns whether it is there. The names stay in the
 * file's memory. */
static bool add_section(struct symbol_table_builder *builder, struct elf_file *file, uint32_t type)
{
    struct elf_section symbols;
    struct elf_section strings;
    struct code code;
    size_t index;

    for (index = 1; index < file->section_count; index++)
        if (elf_file_section(file, index, &symbols) && symbols.header.sh_type == type)
            break;
    if (index >= file->section_count || !elf_file_section(file, symbols.header.sh_link, &strings) ||
        !elf_file_load(file, &symbols, SYMBOLS_MAX_BYTES) ||
        !elf_file_load(file, &strings, STRINGS_MAX_BYTES))
        return false;
    code = find_code(file);
    for (size_t at = 0; symbols.size_bytes - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;

        memcpy(&symbol, symbols.bytes + at, sizeof symbol);
        add_symbol(builder, &symbol, &strings, &code);
    }
    free(code.ranges);
    return true;
}

struct symbol_table *elf_symbols_load(const struct symbolizer_context *context, const struct binary *binary)
{
    struct symbol_table_builder builder = {0};
    struct elf_file file;
    struct elf_file debug = {.fd = -1};
    struct elf_file inner = {.fd = -1};
    struct symbol_table *table;

    if (elf_file_open_binary(&file, binary) < 0)
        return symbol_table_build(&builder);
    add_section(&builder, &file, SHT_DYNSYM);
    if (!add_section(&builder, &file, SHT_SYMTAB) && binary->kind == BINARY_FILE &&
        (debug_file_open(context, binary, &file, &debug) < 0 || !add_section(&builder, &debug, SHT_SYMTAB)) &&
        minidebuginfo_open(&file, &inner) == 0)
        add_section(&builder, &inner, SHT_SYMTAB);
    plt_add_symbols(&builder, &file);
    table = symbol_table_build(&builder);
    elf_file_close(&inner);
    elf_file_close(&debug);
    elf_file_close(&file);
    return table;
}
