/* User registers of a perf sample: the kernel's numbers (asm/perf_regs.h) and ours. One table a machine. */
#ifndef STALLGRAPH_COLLECT_PERF_REGISTERS_H
#define STALLGRAPH_COLLECT_PERF_REGISTERS_H

#include <stdint.h>

#include "profiler/model/registers.h"

/* sample_regs_user: every register that enum register_number has. */
extern const uint64_t perf_registers_mask;

/* Sets the register that the kernel calls number; one that we have no use for is ignored. */
void perf_registers_store(struct registers *registers, unsigned number, uint64_t value);

#endif
