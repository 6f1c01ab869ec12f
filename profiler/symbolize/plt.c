#include "profiler/symbolize/plt.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/symbolize/symbol_name.h"

enum { SLOTS_MAX = 1 << 20 };
#define RELOCATIONS_MAX_BYTES (UINT64_C(128) << 20)
#define SYMBOLS_MAX_BYTES (UINT64_C(128) << 20)
#define STRINGS_MAX_BYTES (UINT64_C(256) << 20)
#define CODE_MAX_BYTES (UINT64_C(16) << 20)

/* A place in the GOT that a relocation fills with a function's address. */
struct got_slot {
    uint64_t address;
    const char *name; /* in the file's or the builder's memory; NULL = not known */
    uint32_t name_length;
};

struct slots {
    struct got_slot *items;
    size_t count;
    size_t capacity;
};

struct plt_stub plt_decode(const uint8_t *code, size_t size_bytes, uint64_t address)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    struct plt_stub stub = {.kind = PLT_NONE};
    int32_t displacement;
    size_t at = 0;

    if (size_bytes >= sizeof endbr64 && memcmp(code, endbr64, sizeof endbr64) == 0)
        at = sizeof endbr64;
    if (size_bytes - at >= 5 && code[at] == 0x68) { /* push imm32 */
        stub.kind = PLT_PUSH_INDEX;
        memcpy(&stub.index, code + at + 1, sizeof stub.index);
        return stub;
    }
    if (size_bytes > at && code[at] == 0xf2) /* bnd */
        at++;
    if (size_bytes - at >= 6 && code[at] == 0xff && code[at + 1] == 0x25) { /* jmp *disp32(%rip) */
        stub.kind = PLT_JUMP_SLOT;
        memcpy(&displacement, code + at + 2, sizeof displacement);
        stub.slot_address = address + at + 6 + (uint64_t)(int64_t)displacement;
    }
    return stub;
}

/* The symbols and names that a relocation section refers to. */
struct symbol_source {
    struct elf_section symbols;
    struct elf_section strings;
};

static void name_by_symbol(const struct symbol_source *source, uint64_t index, struct got_slot *slot)
{
    Elf64_Sym symbol;
    size_t length;
    const char *name;

    if (source->symbols.bytes == NULL || index >= source->symbols.size_bytes / sizeof symbol)
        return;
    memcpy(&symbol, source->symbols.bytes + index * sizeof symbol, sizeof symbol);
    name = elf_section_string(&source->strings, symbol.st_name, &length);
    if (length == 0 || length > SYMBOL_NAME_MAX_BYTES)
        return;
    slot->name = name;
    slot->name_length = (uint32_t)length;
}

/* An IRELATIVE relocation has no symbol: its addend is the resolver, which is the function's own (IFUNC)
 * symbol. */
static void name_by_resolver(struct symbol_table_builder *builder, uint64_t resolver, struct got_slot *slot)
{
    const struct symbol_candidate *candidate = symbol_table_candidate_at(builder, resolver);

    if (candidate == NULL || candidate->name_length > SYMBOL_NAME_MAX_BYTES)
        return;
    slot->name = candidate->name;
    slot->name_length = candidate->name_length;
}

static void add_slots(struct slots *slots, struct symbol_table_builder *builder,
                      const struct elf_section *relocations, const struct symbol_source *source)
{
    for (size_t at = 0; relocations->size_bytes - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
        Elf64_Rela rela;
        struct got_slot slot = {0};

        memcpy(&rela, relocations->bytes + at, sizeof rela);
        slot.address = rela.r_offset;
        switch (ELF64_R_TYPE(rela.r_info)) {
        case R_X86_64_JUMP_SLOT:
        case R_X86_64_GLOB_DAT:
            name_by_symbol(source, ELF64_R_SYM(rela.r_info), &slot);
            break;
        case R_X86_64_IRELATIVE:
            name_by_resolver(builder, (uint64_t)rela.r_addend, &slot);
            break;
        default:
            break;
        }
        if (slot.name == NULL || slots->count >= SLOTS_MAX)
            continue;
        slots->items = vec_reserve(slots->items, &slots->capacity, slots->count + 1, sizeof *slots->items);
        slots->items[slots->count++] = slot;
    }
}

static int compare_slots(const void *left, const void *right)
{
    const struct got_slot *a = left;
    const struct got_slot *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

static const struct got_slot *find_slot(const struct slots *slots, uint64_t address)
{
    struct got_slot key = {.address = address};

    return slots->count == 0 ? NULL
                             : bsearch(&key, slots->items, slots->count, sizeof *slots->items, compare_slots);
}

/* Loads what is common to .rela.plt and .rela.dyn. */
static struct slots read_slots(struct symbol_table_builder *builder, struct elf_file *file,
                               struct elf_section *ret_rela_plt)
{
    static const char *const names[] = {".rela.plt", ".rela.dyn"};
    struct symbol_source source = {0};
    struct slots slots = {0};

    *ret_rela_plt = (struct elf_section){0};
    if (elf_file_find(file, ".dynsym", &source.symbols) &&
        elf_file_load(file, &source.symbols, SYMBOLS_MAX_BYTES) &&
        elf_file_section(file, source.symbols.header.sh_link, &source.strings))
        elf_file_load(file, &source.strings, STRINGS_MAX_BYTES);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct elf_section section;

        if (!elf_file_find(file, names[i], &section) || section.header.sh_type != SHT_RELA ||
            !elf_file_load(file, &section, RELOCATIONS_MAX_BYTES))
            continue;
        add_slots(&slots, builder, &section, &source);
        if (i == 0)
            *ret_rela_plt = section;
    }
    if (slots.count > 0)
        qsort(slots.items, slots.count, sizeof *slots.items, compare_slots);
    return slots;
}

static const struct got_slot *slot_of_stub(const struct plt_stub *stub, const struct slots *slots,
                                           const struct elf_section *rela_plt)
{
    Elf64_Rela rela;

    switch (stub->kind) {
    case PLT_NONE:
        return NULL;
    case PLT_JUMP_SLOT:
        return find_slot(slots, stub->slot_address);
    case PLT_PUSH_INDEX:
        if (stub->index >= rela_plt->size_bytes / sizeof rela)
            return NULL;
        memcpy(&rela, rela_plt->bytes + stub->index * sizeof rela, sizeof rela);
        return find_slot(slots, rela.r_offset);
    }
    return NULL;
}

static void add_stubs(struct symbol_table_builder *builder, const struct elf_section *section,
                      const struct slots *slots, const struct elf_section *rela_plt)
{
    /* Without branch tracking, .plt.got and a static program's .plt have stubs of 8 bytes; the section says,
     * or its alignment does. */
    uint64_t entry_size =
        section->header.sh_entsize != 0 ? section->header.sh_entsize : section->header.sh_addralign;
    size_t stub_size = entry_size == 8 ? 8 : 16;

    for (size_t at = 0; section->size_bytes - at >= stub_size; at += stub_size) {
        uint64_t address = section->header.sh_addr + at;
        struct plt_stub stub = plt_decode(section->bytes + at, stub_size, address);
        const struct got_slot *slot = slot_of_stub(&stub, slots, rela_plt);

        if (slot == NULL)
            continue;
        symbol_table_add_owned(
            builder,
            (struct symbol_candidate){
                .address = address, .size_bytes = stub_size, .is_sized = true, .rank = SYMBOL_RANK_STUB},
            string_format("%.*s@plt", (int)slot->name_length, slot->name));
    }
}

void plt_add_symbols(struct symbol_table_builder *builder, struct elf_file *file)
{
    static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
    struct elf_section rela_plt;
    struct slots slots;

    if (file->machine != EM_X86_64)
        return;
    slots = read_slots(builder, file, &rela_plt);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct elf_section section;

        if (slots.count > 0 && elf_file_find(file, names[i], &section) &&
            elf_file_load(file, &section, CODE_MAX_BYTES))
            add_stubs(builder, &section, &slots, &rela_plt);
    }
    free(slots.items);
}
