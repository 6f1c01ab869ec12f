#include "profiler/unwind/unwind_fallback.h"

#include <string.h>

enum {
    WORD_BYTES = sizeof(uint64_t),
    ENDBR64_BYTES = 4,
    /* struct rt_sigframe of the kernel, from where rsp points in the restorer: ucontext's flags, link and
       stack. */
    SIGCONTEXT_OFFSET = 40,
};

static const uint8_t ENDBR64[ENDBR64_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};
static const uint8_t PUSH_RBP = 0x55;
static const uint8_t RETURN = 0xc3;
static const uint8_t MOVE_RSP_RBP[] = {0x48, 0x89, 0xe5};
static const uint8_t SIGRETURN[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00,
                                    0x00, 0x00, 0x0f, 0x05}; /* mov $15,%rax; syscall */

static bool is_code(const struct unwind_memory *memory, uint64_t address)
{
    return address_space_find(memory->request->space, address) != NULL;
}

/* The signal restorers of musl and of Go have no call frame information; debuggers know them by their bytes,
 * too. The order of registers is that of struct sigcontext (asm/sigcontext.h). */
static enum unwind_fallback step_signal_frame(struct unwind_memory *memory, const struct registers *registers,
                                              struct registers *ret_registers)
{
    static const enum register_number order[] = {
        REGISTER_R8,  REGISTER_R9,  REGISTER_R10, REGISTER_R11, REGISTER_R12, REGISTER_R13,
        REGISTER_R14, REGISTER_R15, REGISTER_RDI, REGISTER_RSI, REGISTER_RBP, REGISTER_RBX,
        REGISTER_RDX, REGISTER_RAX, REGISTER_RCX, REGISTER_RSP, REGISTER_IP,
    };
    uint64_t address = registers->value[REGISTER_RSP] + SIGCONTEXT_OFFSET;
    struct registers caller = {0};

    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        uint64_t value;

        if (!unwind_memory_read_word(memory, address + i * WORD_BYTES, &value))
            return UNWIND_FALLBACK_UNREADABLE;
        registers_set(&caller, order[i], value);
    }
    *ret_registers = caller;
    return UNWIND_FALLBACK_INTERRUPTED;
}

/* Where the return address is of a function that is entering or leaving, so that rbp is still, or again, its
 * caller's. Returns false when it does neither. */
static bool find_return_address_slot(const struct unwind_memory *memory, const struct registers *registers,
                                     uint64_t *ret_slot)
{
    uint64_t ip = registers->value[REGISTER_IP];
    uint64_t sp = registers->value[REGISTER_RSP];
    uint8_t code[ENDBR64_BYTES + 1] = {0};
    uint8_t previous = 0;
    size_t got;

    if (!is_code(memory, ip)) { /* a call through a bad pointer: nothing but the call has been executed */
        *ret_slot = sp;
        return true;
    }
    got = unwind_memory_read_code(memory, ip, code, sizeof code);
    if (got >= 1 && (code[0] == PUSH_RBP || code[0] == RETURN)) {
        *ret_slot = sp;
        return true;
    }
    if (got == sizeof code && memcmp(code, ENDBR64, ENDBR64_BYTES) == 0 && code[ENDBR64_BYTES] == PUSH_RBP) {
        *ret_slot = sp;
        return true;
    }
    if (got >= sizeof MOVE_RSP_RBP && memcmp(code, MOVE_RSP_RBP, sizeof MOVE_RSP_RBP) == 0 &&
        unwind_memory_read_code(memory, ip - 1, &previous, 1) == 1 && previous == PUSH_RBP) {
        *ret_slot = sp + WORD_BYTES;
        return true;
    }
    return false;
}

static bool step_unfinished_frame(struct unwind_memory *memory, const struct registers *registers,
                                  struct registers *ret_registers)
{
    struct registers caller = *registers;
    uint64_t slot;
    uint64_t return_address;

    if (!find_return_address_slot(memory, registers, &slot) ||
        !unwind_memory_read_word(memory, slot, &return_address) || !is_code(memory, return_address - 1))
        return false;
    registers_set(&caller, REGISTER_IP, return_address);
    registers_set(&caller, REGISTER_RSP, slot + WORD_BYTES);
    *ret_registers = caller;
    return true;
}

/* What the function has done to the other callee-saved registers is not known, so they are not known from here on. */
enum unwind_fallback unwind_fallback_step_frame_pointer(struct unwind_memory *memory,
                                                        const struct registers *registers,
                                                        struct registers *ret_registers)
{
    uint64_t frame = registers->value[REGISTER_RBP];
    struct registers caller = {0};
    const struct mapping *mapping;
    uint64_t caller_frame;
    uint64_t return_address;

    if (!registers_has(registers, REGISTER_RBP))
        return UNWIND_FALLBACK_NONE;
    if (frame == 0) {
        /* "The deepest frame is marked by a frame pointer of zero" (psABI 3.4.1). JIT code that keeps
         * something else in rbp may have a zero there any time, so it is not believed. */
        mapping = address_space_find(memory->request->space, registers->value[REGISTER_IP] - 1);
        return mapping != NULL && binary_table_get(memory->binaries, mapping->binary)->kind != BINARY_JIT
                   ? UNWIND_FALLBACK_START
                   : UNWIND_FALLBACK_NONE;
    }
    if (frame % WORD_BYTES != 0 || frame < registers->value[REGISTER_RSP] ||
        frame > UINT64_MAX - 2 * WORD_BYTES)
        return UNWIND_FALLBACK_NONE;
    if (!unwind_memory_read_word(memory, frame, &caller_frame) ||
        !unwind_memory_read_word(memory, frame + WORD_BYTES, &return_address))
        return UNWIND_FALLBACK_UNREADABLE;
    if (return_address == 0)
        return UNWIND_FALLBACK_START;
    if (!is_code(memory, return_address - 1))
        return UNWIND_FALLBACK_NONE;
    registers_set(&caller, REGISTER_IP, return_address);
    registers_set(&caller, REGISTER_RSP, frame + 2 * WORD_BYTES);
    registers_set(&caller, REGISTER_RBP, caller_frame);
    *ret_registers = caller;
    return UNWIND_FALLBACK_CALLER;
}

enum unwind_fallback unwind_fallback_step(struct unwind_memory *memory, const struct registers *registers,
                                          bool is_leaf, struct registers *ret_registers)
{
    uint8_t code[sizeof SIGRETURN];

    if (unwind_memory_read_code(memory, registers->value[REGISTER_IP], code, sizeof code) == sizeof code &&
        memcmp(code, SIGRETURN, sizeof code) == 0)
        return step_signal_frame(memory, registers, ret_registers);
    if (is_leaf && step_unfinished_frame(memory, registers, ret_registers))
        return UNWIND_FALLBACK_CALLER;
    return unwind_fallback_step_frame_pointer(memory, registers, ret_registers);
}
