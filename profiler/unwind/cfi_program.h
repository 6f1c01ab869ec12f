/* Makes a call frame program that is safe to be run: libunwind trusts its input (an endless loop in an
 * expression, a division by zero, a frame address that was never defined or a strange return address column
 * hang or end the process), and ours comes from the target's files. */
#ifndef STALLGRAPH_UNWIND_CFI_PROGRAM_H
#define STALLGRAPH_UNWIND_CFI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/unwind/cfi_record.h"

enum { CFI_PROGRAM_MAX_BYTES = 3 * CFI_RECORD_MAX_BYTES };

/* Writes the record as a CIE and an FDE of .eh_frame with absolute 8-byte addresses, no augmentation, and
 * both programs checked; rules for registers beyond the general ones are left out. Returns the size in bytes,
 * with *ret_fde_offset where the FDE begins and *ret_has_expressions whether its rules refer back to these
 * bytes; -EBADMSG when the program is malformed or uses what no compiler writes; -ENOSPC when it does not
 * fit. */
long cfi_program_compose(const struct cfi_record *record, uint8_t *bytes, size_t capacity_bytes,
                         size_t *ret_fde_offset, bool *ret_has_expressions);

#endif
