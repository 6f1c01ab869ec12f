#include "profiler/collect/perf_registers.h"

#include <asm/perf_regs.h>

#if !defined(__x86_64__)
#error "add this machine's table of registers here"
#endif

#define BIT(number) (UINT64_C(1) << (number))

const uint64_t perf_registers_mask = BIT(PERF_REG_X86_AX) | BIT(PERF_REG_X86_BX) | BIT(PERF_REG_X86_CX) |
                                     BIT(PERF_REG_X86_DX) | BIT(PERF_REG_X86_SI) | BIT(PERF_REG_X86_DI) |
                                     BIT(PERF_REG_X86_BP) | BIT(PERF_REG_X86_SP) | BIT(PERF_REG_X86_IP) |
                                     BIT(PERF_REG_X86_R8) | BIT(PERF_REG_X86_R9) | BIT(PERF_REG_X86_R10) |
                                     BIT(PERF_REG_X86_R11) | BIT(PERF_REG_X86_R12) | BIT(PERF_REG_X86_R13) |
                                     BIT(PERF_REG_X86_R14) | BIT(PERF_REG_X86_R15);

/* One more than the register, so that a gap in the table is told from rax. */
static const uint8_t register_plus_one[] = {
    [PERF_REG_X86_AX] = REGISTER_RAX + 1,  [PERF_REG_X86_BX] = REGISTER_RBX + 1,
    [PERF_REG_X86_CX] = REGISTER_RCX + 1,  [PERF_REG_X86_DX] = REGISTER_RDX + 1,
    [PERF_REG_X86_SI] = REGISTER_RSI + 1,  [PERF_REG_X86_DI] = REGISTER_RDI + 1,
    [PERF_REG_X86_BP] = REGISTER_RBP + 1,  [PERF_REG_X86_SP] = REGISTER_RSP + 1,
    [PERF_REG_X86_IP] = REGISTER_IP + 1,   [PERF_REG_X86_R8] = REGISTER_R8 + 1,
    [PERF_REG_X86_R9] = REGISTER_R9 + 1,   [PERF_REG_X86_R10] = REGISTER_R10 + 1,
    [PERF_REG_X86_R11] = REGISTER_R11 + 1, [PERF_REG_X86_R12] = REGISTER_R12 + 1,
    [PERF_REG_X86_R13] = REGISTER_R13 + 1, [PERF_REG_X86_R14] = REGISTER_R14 + 1,
    [PERF_REG_X86_R15] = REGISTER_R15 + 1,
};

void perf_registers_store(struct registers *registers, unsigned number, uint64_t value)
{
    if (number >= sizeof register_plus_one || register_plus_one[number] == 0)
        return;
    registers_set(registers, (enum register_number)(register_plus_one[number] - 1), value);
}
