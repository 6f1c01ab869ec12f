#include "profiler/unwind/unwind_rules.h"

#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/unwind/cfi_index.h"
#include "profiler/unwind/cfi_program.h"

/* Exported by libunwind for those who have tables of their own, but in no header. */
int _Ux86_64_dwarf_search_unwind_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *table,
                                       unw_proc_info_t *info, int need_unwind_info, void *context);

/* Addresses with the highest bit set are the kernel's on x86-64: no user stack lies there. */
#define PROGRAM_ADDRESS (UINT64_C(1) << 63)

enum {
    SOME_ADDRESS = 1 << 20,
    RULE_NONE = UINT32_MAX,
    MAX_PLACES = 1 << 18, /* of one binary; then it starts afresh: a bound on memory, not on what works */
    MAX_PROGRAM_BYTES = 64 << 20, /* of expressions kept */
};

struct places {
    struct cfi_index *index; /* NULL: nobody asked yet */
    struct id_map rule_of;   /* vaddr -> rule id */
    struct id_map fde_of;    /* start of a function with expressions -> offset of its FDE in programs */
};

struct unwind_rules {
    const struct binary_table *binaries;
    unw_addr_space_t space;
    struct cfi_buffer *buffer;
    VEC_OF(struct places) places; /* by binary id */
    VEC_OF(struct unwind_rule) rules;
    struct id_map rule_of_hash; /* most functions share few states */
    VEC_OF(uint8_t) programs;   /* at PROGRAM_ADDRESS: those that are kept, then the one being compiled */

    /* The compilation under way. */
    uint64_t vaddr;
    uint64_t fde_address;
    struct cfi_record record;
    uint32_t found_rule;
    bool keeps_program;
};

bool unwind_rules_read(const struct unwind_rules *rules, uint64_t address, uint64_t *ret_word)
{
    uint64_t offset = address - PROGRAM_ADDRESS;

    if (address < PROGRAM_ADDRESS || offset > rules->programs.count ||
        rules->programs.count - offset < sizeof *ret_word)
        return false;
    memcpy(ret_word, rules->programs.items + offset, sizeof *ret_word);
    return true;
}

static int access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *word, int write,
                         void *context)
{
    (void)space;
    return write == 0 && unwind_rules_read(context, address, word) ? 0 : -UNW_EINVAL;
}

/* While compiling, the instruction pointer is an ELF address; the rest is only there for the cursor to begin
 * with. */
static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *word, int write,
                           void *context)
{
    const struct unwind_rules *rules = context;

    (void)space;
    if (write != 0)
        return -UNW_EREADONLYREG;
    *word = number == UNW_REG_IP ? rules->vaddr : SOME_ADDRESS;
    return 0;
}

static int access_fp_register(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int write,
                              void *context)
{
    (void)space;
    (void)number;
    (void)value;
    (void)write;
    (void)context;
    return -UNW_EBADREG;
}

/* The record is known already: it is given as a table of one entry, whose two offsets from start_ip and
 * segbase are 0. That table is 8 zero bytes, with which every composed program begins. */
static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info,
                          void *context)
{
    const struct unwind_rules *rules = context;
    unw_dyn_info_t table = {
        .start_ip = rules->record.start,
        .end_ip = rules->record.end,
        .format = UNW_INFO_FORMAT_IP_OFFSET,
        .u.rti = {.segbase = rules->fde_address, .table_len = 1, .table_data = PROGRAM_ADDRESS},
    };

    if (ip < rules->record.start || ip >= rules->record.end)
        return -UNW_ENOINFO;
    return _Ux86_64_dwarf_search_unwind_table(space, ip, &table, info, need_unwind_info, context);
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *context)
{
    (void)space;
    (void)info;
    (void)context;
}

static int get_dynamic_info_list(unw_addr_space_t space, unw_word_t *address, void *context)
{
    (void)space;
    (void)address;
    (void)context;
    return -UNW_ENOINFO;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context)
{
    (void)space;
    (void)cursor;
    (void)context;
    return -UNW_EINVAL;
}

static int get_name(unw_addr_space_t space, unw_word_t address, char *name, size_t size, unw_word_t *offset,
                    void *context)
{
    (void)space;
    (void)address;
    (void)name;
    (void)size;
    (void)offset;
    (void)context;
    return -UNW_ENOINFO;
}

struct unwind_rules *unwind_rules_create(const struct binary_table *binaries)
{
    struct unwind_rules *rules = memory_zeroed(1, sizeof *rules);
    unw_accessors_t accessors = {
        .find_proc_info = find_proc_info,
        .put_unwind_info = put_unwind_info,
        .get_dyn_info_list_addr = get_dynamic_info_list,
        .access_mem = access_memory,
        .access_reg = access_register,
        .access_fpreg = access_fp_register,
        .resume = resume,
        .get_proc_name = get_name,
    };

    rules->binaries = binaries;
    rules->space = unw_create_addr_space(&accessors, 0);
    if (rules->space == NULL) {
        free(rules);
        return NULL;
    }
    unw_set_caching_policy(rules->space, UNW_CACHE_NONE);
    rules->buffer = memory_zeroed(1, sizeof *rules->buffer);
    for (size_t i = 0; i < sizeof(uint64_t); i++) /* the table of one entry */
        VEC_PUSH(&rules->programs, 0);
    return rules;
}

void unwind_rules_destroy(struct unwind_rules *rules)
{
    if (rules == NULL)
        return;
    for (size_t i = 0; i < rules->places.count; i++) {
        cfi_index_destroy(rules->places.items[i].index);
        id_map_finish(&rules->places.items[i].rule_of);
        id_map_finish(&rules->places.items[i].fde_of);
    }
    for (size_t i = 0; i < rules->rules.count; i++)
        free(rules->rules.items[i].state);
    free(rules->places.items);
    free(rules->rules.items);
    free(rules->programs.items);
    id_map_finish(&rules->rule_of_hash);
    unw_destroy_addr_space(rules->space);
    free(rules->buffer);
    free(rules);
}

/* DWARF 5 section 6.4.4: a return address that is undefined ends the stack. libunwind then sets the
 * instruction pointer to 0 without reading memory; any other rule reads memory, of which there is none here.
 */
static bool is_outermost(struct unwind_rules *rules, void *state)
{
    unw_cursor_t cursor;
    unw_word_t ip = 1;

    return unw_init_remote(&cursor, rules->space, rules) == 0 && unw_apply_reg_state(&cursor, state) >= 0 &&
           unw_get_reg(&cursor, UNW_REG_IP, &ip) == 0 && ip == 0;
}

static uint32_t intern_rule(struct unwind_rules *rules, const void *state, size_t size)
{
    uint64_t hash = hash_mix(hash_bytes(state, size), rules->record.is_signal_frame);
    struct unwind_rule rule = {.is_signal_frame = rules->record.is_signal_frame};
    uint32_t id;

    if (id_map_get(&rules->rule_of_hash, hash, &id) &&
        rules->rules.items[id].is_signal_frame == rule.is_signal_frame &&
        memcmp(rules->rules.items[id].state, state, size) == 0)
        return id;
    rule.state = memory_copy(state, size);
    rule.is_outermost = is_outermost(rules, rule.state);
    id = (uint32_t)rules->rules.count;
    VEC_PUSH(&rules->rules, rule);
    id_map_put(&rules->rule_of_hash, hash, id);
    return id;
}

static int visit_state(void *context, void *state, size_t size, unw_word_t start, unw_word_t end)
{
    struct unwind_rules *rules = context;

    if (rules->vaddr >= start && rules->vaddr < end)
        rules->found_rule = intern_rule(rules, state, size);
    return 0;
}

/* Puts the record's program into programs[kept, count). Returns false when there is none that can be run. */
static bool compose(struct unwind_rules *rules, size_t kept, bool *ret_has_expressions)
{
    size_t fde_offset;
    size_t padded;
    long size;

    if (kept > MAX_PROGRAM_BYTES)
        return false;
    VEC_RESERVE(&rules->programs, kept + CFI_PROGRAM_MAX_BYTES + 2 * sizeof(uint64_t));
    size = cfi_program_compose(&rules->record, rules->programs.items + kept, CFI_PROGRAM_MAX_BYTES,
                               &fde_offset, ret_has_expressions);
    if (size < 0)
        return false;
    /* libunwind reads aligned words, also for the last byte. */
    padded = ((size_t)size / sizeof(uint64_t) + 2) * sizeof(uint64_t);
    memset(rules->programs.items + kept + size, 0, padded - (size_t)size);
    rules->programs.count = kept + padded;
    rules->fde_address = PROGRAM_ADDRESS + kept + fde_offset;
    return true;
}

/* Runs the record's program up to vaddr. Rules with expressions refer to the composed bytes, which then stay,
 * once for each function. */
static uint32_t compile(struct unwind_rules *rules, struct places *places)
{
    size_t kept = rules->programs.count;
    bool has_expressions = false;
    unw_cursor_t cursor;
    uint32_t known;

    if (id_map_get(&places->fde_of, rules->record.start, &known))
        rules->fde_address = PROGRAM_ADDRESS + known;
    else if (!compose(rules, kept, &has_expressions))
        return RULE_NONE;
    rules->found_rule = RULE_NONE;
    if (unw_init_remote(&cursor, rules->space, rules) == 0)
        unw_reg_states_iterate(&cursor, visit_state, rules);
    if (has_expressions)
        id_map_put(&places->fde_of, rules->record.start, (uint32_t)(rules->fde_address - PROGRAM_ADDRESS));
    else
        rules->programs.count = kept;
    return rules->found_rule;
}

static uint32_t compute_rule(struct unwind_rules *rules, struct places *places, uint32_t binary_id,
                             uint64_t vaddr)
{
    const struct binary *binary = binary_table_get(rules->binaries, binary_id);

    if (binary == NULL)
        return RULE_NONE;
    if (places->index == NULL)
        places->index = cfi_index_create(binary);
    if (cfi_index_find(places->index, vaddr, rules->buffer, &rules->record) < 0)
        return RULE_NONE;
    rules->vaddr = vaddr;
    return compile(rules, places);
}

const struct unwind_rule *unwind_rules_find(struct unwind_rules *rules, uint32_t binary, uint64_t vaddr)
{
    struct places *places;
    uint32_t id;

    while (rules->places.count <= binary) {
        if (rules->places.count >= binary_table_count(rules->binaries))
            return NULL;
        VEC_PUSH(&rules->places, (struct places){0});
    }
    places = &rules->places.items[binary];
    if (!id_map_get(&places->rule_of, vaddr, &id)) {
        id = compute_rule(rules, places, binary, vaddr);
        if (places->rule_of.count >= MAX_PLACES)
            id_map_clear(&places->rule_of);
        id_map_put(&places->rule_of, vaddr, id);
    }
    return id == RULE_NONE ? NULL : &rules->rules.items[id];
}
