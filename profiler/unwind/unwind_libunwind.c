/* "dwarf": libunwind on the registers and the stack of a sample.
 *
 * libunwind applies one rule at a time (unw_apply_reg_state); which rule, and what happens where there is
 * none, is decided here. Its own unw_step guesses then, and its guesses cannot be told from frames. */
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/memory.h"
#include "profiler/unwind/unwind_chain.h"
#include "profiler/unwind/unwind_fallback.h"
#include "profiler/unwind/unwind_memory.h"
#include "profiler/unwind/unwind_rules.h"
#include "profiler/unwind/unwinder.h"

_Static_assert((int)UNW_X86_64_RAX == (int)REGISTER_RAX && (int)UNW_X86_64_RDX == (int)REGISTER_RDX &&
                   (int)UNW_X86_64_RCX == (int)REGISTER_RCX && (int)UNW_X86_64_RBX == (int)REGISTER_RBX &&
                   (int)UNW_X86_64_RSI == (int)REGISTER_RSI && (int)UNW_X86_64_RDI == (int)REGISTER_RDI &&
                   (int)UNW_X86_64_RBP == (int)REGISTER_RBP && (int)UNW_X86_64_RSP == (int)REGISTER_RSP &&
                   (int)UNW_X86_64_R8 == (int)REGISTER_R8 && (int)UNW_X86_64_R15 == (int)REGISTER_R15 &&
                   (int)UNW_X86_64_RIP == (int)REGISTER_IP,
               "libunwind numbers registers as DWARF does");

/* A read further above the stack pointer than any stack is long is not a copy that was too short: it is
 * nonsense. */
#define STACK_SPAN_MAX_BYTES (UINT64_C(1) << 32)

/* A callee-saved register that an epilogue has popped already. */
struct popped {
    uint64_t address; /* where its rule still says it is saved */
    uint64_t value;
};

enum { CALLEE_SAVED_COUNT = 6 };

static const enum register_number callee_saved[CALLEE_SAVED_COUNT] = {
    REGISTER_RBX, REGISTER_RBP, REGISTER_R12, REGISTER_R13, REGISTER_R14, REGISTER_R15,
};

struct unwinder {
    const struct binary_table *binaries;
    struct unwind_rules *rules;
    unw_addr_space_t space;
    struct unwind_memory memory;

    /* The walk under way. */
    struct registers registers; /* where the cursor began: of the sample, or behind the last fallback */
    bool is_register_missing;   /* a rule needed one that is not known */
    struct popped popped[CALLEE_SAVED_COUNT];
    size_t popped_count;
    unw_cursor_t cursor;
};

/* Where the walk stands. */
struct position {
    uint64_t ip;
    uint64_t sp;
    bool is_exact;          /* ip was executing, it is no return address */
    bool has_changed_stack; /* a signal frame was passed: its handler may have had a stack of its own */
};

static int access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *word, int write,
                         void *context)
{
    struct unwinder *unwinder = context;

    (void)space;
    if (write != 0)
        return -UNW_EINVAL;
    for (size_t i = 0; i < unwinder->popped_count; i++)
        if (unwinder->popped[i].address == address) {
            *word = unwinder->popped[i].value;
            return 0;
        }
    if (unwind_rules_read(unwinder->rules, address, word) ||
        unwind_memory_read_word(&unwinder->memory, address, word))
        return 0;
    return -UNW_EINVAL;
}

static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *word, int write,
                           void *context)
{
    struct unwinder *unwinder = context;

    (void)space;
    if (write != 0)
        return -UNW_EREADONLYREG;
    if (number < 0 || number >= REGISTER_COUNT ||
        !registers_has(&unwinder->registers, (enum register_number)number)) {
        unwinder->is_register_missing = true;
        return -UNW_EBADREG;
    }
    *word = unwinder->registers.value[number];
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

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info,
                          void *context)
{
    (void)space;
    (void)ip;
    (void)info;
    (void)need_unwind_info;
    (void)context;
    return -UNW_ENOINFO;
}

static void dwarf_destroy(struct unwinder *unwinder)
{
    if (unwinder == NULL)
        return;
    if (unwinder->space != NULL)
        unw_destroy_addr_space(unwinder->space);
    unwind_rules_destroy(unwinder->rules);
    free(unwinder);
}

static struct unwinder *dwarf_create(const struct binary_table *binaries)
{
    struct unwinder *unwinder = memory_zeroed(1, sizeof *unwinder);
    unw_accessors_t accessors = {
        .find_proc_info = find_proc_info,
        .access_mem = access_memory,
        .access_reg = access_register,
        .access_fpreg = access_fp_register,
    };

    unwinder->binaries = binaries;
    unwinder->memory.binaries = binaries;
    unwinder->rules = unwind_rules_create(binaries);
    unwinder->space = unw_create_addr_space(&accessors, 0);
    if (unwinder->rules == NULL || unwinder->space == NULL) {
        dwarf_destroy(unwinder);
        return NULL;
    }
    unw_set_caching_policy(unwinder->space, UNW_CACHE_NONE); /* see unwind_rules.h */
    return unwinder;
}

static const struct unwind_rule *find_rule(struct unwinder *unwinder, const struct address_space *space,
                                           uint64_t address)
{
    const struct mapping *mapping = address_space_find(space, address);
    const struct binary *binary;
    uint64_t vaddr;

    if (mapping == NULL)
        return NULL;
    binary = binary_table_get(unwinder->binaries, mapping->binary);
    if (binary == NULL || binary->kind == BINARY_JIT ||
        !binary_offset_to_vaddr(binary, address - mapping->start + mapping->file_offset, &vaddr))
        return NULL;
    return unwind_rules_find(unwinder->rules, binary->id, vaddr);
}

/* Puts the cursor where the given registers are. */
static bool begin_at(struct unwinder *unwinder, const struct registers *registers)
{
    unwinder->registers = *registers;
    return unw_init_remote(&unwinder->cursor, unwinder->space, unwinder) == 0;
}

static enum unwind_end why_it_failed(const struct unwinder *unwinder, const struct position *position)
{
    const struct unwind_memory *memory = &unwinder->memory;
    uint64_t distance = memory->failed_address - memory->request->sample->stack_address;

    if (unwinder->is_register_missing)
        return UNWIND_NO_RULE;
    if (!memory->has_failed || memory->failed_address % sizeof(uint64_t) != 0)
        return UNWIND_BAD_STACK;
    if (position->has_changed_stack) /* the other stack was not copied */
        return UNWIND_COPY_ENDED;
    return unwind_memory_failed_beyond_copy(memory) && distance < STACK_SPAN_MAX_BYTES ? UNWIND_COPY_ENDED
                                                                                       : UNWIND_BAD_STACK;
}

/* Compilers do not write down in an epilogue that a register has its old value again: the rule still tells
 * the slot, which now lies below the stack pointer, where the copy has nothing. The register itself holds
 * what was there. */
static void note_popped_registers(struct unwinder *unwinder, uint64_t leaf_sp)
{
    for (size_t i = 0; i < CALLEE_SAVED_COUNT; i++) {
        enum register_number number = callee_saved[i];
        unw_save_loc_t saved;

        if (registers_has(&unwinder->registers, number) &&
            unw_get_save_loc(&unwinder->cursor, (int)number, &saved) == 0 && saved.type == UNW_SLT_MEMORY &&
            saved.u.addr < leaf_sp)
            unwinder->popped[unwinder->popped_count++] =
                (struct popped){.address = saved.u.addr, .value = unwinder->registers.value[number]};
    }
}

/* Returns false when the walk ends here, and why. */
static bool step_by_rule(struct unwinder *unwinder, const struct unwind_rule *rule, bool is_first,
                         struct position *position, enum unwind_end *ret_end)
{
    unw_word_t ip = 0;
    unw_word_t sp = 0;

    if (rule->is_outermost) {
        *ret_end = UNWIND_REACHED_START;
        return false;
    }
    position->has_changed_stack |= rule->is_signal_frame;
    if (unw_apply_reg_state(&unwinder->cursor, rule->state) < 0 ||
        unw_get_reg(&unwinder->cursor, UNW_REG_IP, &ip) < 0 ||
        unw_get_reg(&unwinder->cursor, UNW_REG_SP, &sp) < 0) {
        *ret_end = why_it_failed(unwinder, position);
        return false;
    }
    if (ip == 0 && !rule->is_signal_frame) { /* a signal may find a call through NULL */
        *ret_end = UNWIND_REACHED_START;
        return false;
    }
    /* A handler may run above or below what it interrupted; callers are always above. Only a leaf that holds
     * its return address in a register, as vfork does, has the stack pointer of its caller. */
    if (sp % sizeof(uint64_t) != 0 ||
        (!rule->is_signal_frame && (sp < position->sp || (sp == position->sp && !position->is_exact)))) {
        *ret_end = UNWIND_BAD_STACK;
        return false;
    }
    if (is_first)
        note_popped_registers(unwinder, position->sp);
    position->ip = ip;
    position->sp = sp;
    position->is_exact = rule->is_signal_frame;
    return true;
}

static bool step_without_rule(struct unwinder *unwinder, struct position *position, enum unwind_end *ret_end)
{
    struct registers registers = {0};
    struct registers caller;
    unw_word_t frame;
    enum unwind_fallback result;

    registers_set(&registers, REGISTER_IP, position->ip);
    registers_set(&registers, REGISTER_RSP, position->sp);
    if (unw_get_reg(&unwinder->cursor, UNW_X86_64_RBP, &frame) == 0)
        registers_set(&registers, REGISTER_RBP, frame);
    result = unwind_fallback_step(&unwinder->memory, &registers, position->is_exact, &caller);
    switch (result) {
    case UNWIND_FALLBACK_CALLER:
    case UNWIND_FALLBACK_INTERRUPTED:
        break;
    case UNWIND_FALLBACK_START:
        *ret_end = UNWIND_REACHED_START;
        return false;
    case UNWIND_FALLBACK_NONE:
        *ret_end = UNWIND_NO_RULE;
        return false;
    case UNWIND_FALLBACK_UNREADABLE:
        *ret_end = why_it_failed(unwinder, position);
        return false;
    }
    if (!begin_at(unwinder, &caller)) {
        *ret_end = UNWIND_BAD_STACK;
        return false;
    }
    position->ip = caller.value[REGISTER_IP];
    position->sp = caller.value[REGISTER_RSP];
    position->is_exact = result == UNWIND_FALLBACK_INTERRUPTED;
    position->has_changed_stack |= position->is_exact;
    return true;
}

/* One frame: its address onto the stack, then out of it. */
static bool walk_frame(struct unwinder *unwinder, const struct unwind_request *request,
                       struct position *position, struct unwound_stack *stack)
{
    uint64_t address = position->is_exact ? position->ip : position->ip - 1;
    const struct unwind_rule *rule;

    if (stack->count == UNWIND_MAX_FRAMES) {
        stack->end = UNWIND_TOO_DEEP;
        return false;
    }
    if (!position->is_exact && address_space_find(request->space, address) == NULL) {
        stack->end = UNWIND_BAD_STACK; /* the caller is no code: it is not shown as one */
        return false;
    }
    stack->addresses[stack->count++] = address;
    unwinder->memory.has_failed = false;
    unwinder->is_register_missing = false;
    rule = find_rule(unwinder, request->space, address);
    if (rule == NULL)
        return step_without_rule(unwinder, position, &stack->end);
    /* The restorer is not called: its return address is its first instruction, and its name is found there.
     */
    if (rule->is_signal_frame)
        stack->addresses[stack->count - 1] = position->ip;
    return step_by_rule(unwinder, rule, stack->count == 1, position, &stack->end);
}

/* The chain knows frames that the copy was too short for. They end in the first function only if its own rule
 * says that it is: a chain that breaks off looks no different. */
static void splice(struct unwinder *unwinder, const struct unwind_request *request, size_t next,
                   struct unwound_stack *stack)
{
    enum unwind_end end = stack->end;
    const struct unwind_rule *last;

    unwind_chain_append(request, next, stack);
    if (stack->end == UNWIND_REACHED_START) {
        last =
            stack->count > 0 ? find_rule(unwinder, request->space, stack->addresses[stack->count - 1]) : NULL;
        stack->end = last != NULL && last->is_outermost ? UNWIND_REACHED_START : end;
    }
}

static void dwarf_walk(struct unwinder *unwinder, const struct unwind_request *request,
                       struct unwound_stack *ret_stack)
{
    const struct raw_sample *sample = request->sample;
    struct position position = {.is_exact = true};

    ret_stack->count = 0;
    ret_stack->end = UNWIND_NO_REGISTERS;
    unwind_memory_begin(&unwinder->memory, request);
    unwinder->popped_count = 0;
    if (!registers_has(&sample->registers, REGISTER_IP) || !registers_has(&sample->registers, REGISTER_RSP) ||
        !begin_at(unwinder, &sample->registers)) {
        if (sample->user_chain_count > 0) {
            ret_stack->end = UNWIND_COPY_ENDED;
            splice(unwinder, request, 0, ret_stack);
        }
        return;
    }
    position.ip = sample->registers.value[REGISTER_IP];
    position.sp = sample->registers.value[REGISTER_RSP];
    while (walk_frame(unwinder, request, &position, ret_stack))
        continue;
    if (ret_stack->end == UNWIND_COPY_ENDED) {
        size_t next = unwind_chain_find_next(sample, ret_stack);

        if (next > 0)
            splice(unwinder, request, next, ret_stack);
    }
}

const struct unwinder_backend unwind_libunwind = {
    .name = "dwarf",
    .needs = UNWIND_NEEDS_STACK_COPY,
    .create = dwarf_create,
    .walk = dwarf_walk,
    .destroy = dwarf_destroy,
};
