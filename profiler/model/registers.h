/* User-mode registers of a thread, by DWARF register number, whatever the machine.
 *
 * x86-64 (System V psABI, figure 3.36): 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8-15 r8-r15,
 * 16 ip. */
#ifndef STALLGRAPH_MODEL_REGISTERS_H
#define STALLGRAPH_MODEL_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

enum register_number {
    REGISTER_RAX,
    REGISTER_RDX,
    REGISTER_RCX,
    REGISTER_RBX,
    REGISTER_RSI,
    REGISTER_RDI,
    REGISTER_RBP,
    REGISTER_RSP,
    REGISTER_R8,
    REGISTER_R9,
    REGISTER_R10,
    REGISTER_R11,
    REGISTER_R12,
    REGISTER_R13,
    REGISTER_R14,
    REGISTER_R15,
    REGISTER_IP,
    REGISTER_COUNT,
};

struct registers {
    uint64_t value[REGISTER_COUNT];
    uint32_t known; /* bit n set: value[n] is known */
};

static inline bool registers_has(const struct registers *registers, enum register_number number)
{
    return (registers->known >> number & 1) != 0;
}

static inline void registers_set(struct registers *registers, enum register_number number, uint64_t value)
{
    registers->value[number] = value;
    registers->known |= UINT32_C(1) << number;
}

#endif
