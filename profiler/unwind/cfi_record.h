/* One function's call frame information: its FDE joined with the CIE that it refers to.
 *
 *   struct cfi_section section = {.binary = b, .vaddr = ..., .size_bytes = ...};
 *   struct cfi_buffer *buffer = memory_zeroed(1, sizeof *buffer);
 *   struct cfi_record record;
 *   if (cfi_record_read(&section, fde_offset, buffer, &record) == 0 && record.start <= pc && pc < record.end)
 * ...
 *
 * Formats: .debug_frame of DWARF 5 section 6.4.1, .eh_frame of the Linux Standard Base. */
#ifndef STALLGRAPH_UNWIND_CFI_RECORD_H
#define STALLGRAPH_UNWIND_CFI_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/model/binary.h"

enum { CFI_RECORD_MAX_BYTES = 1 << 16 };

/* Where records are read from: bytes in memory, or a binary's .eh_frame as it is loaded. */
struct cfi_section {
    const uint8_t *bytes;        /* NULL: read from binary */
    const struct binary *binary; /* NULL where bytes are given */
    uint64_t vaddr;              /* of the section's first byte; 0 for .debug_frame, which is not loaded */
    uint64_t size_bytes;
    bool is_debug_frame;
};

/* Room for the bytes of one record and its CIE. */
struct cfi_buffer {
    uint8_t fde[CFI_RECORD_MAX_BYTES];
    uint8_t cie[CFI_RECORD_MAX_BYTES];
};

struct cfi_record {
    uint64_t start; /* ELF virtual addresses of the code, half-open */
    uint64_t end;
    bool is_signal_frame; /* augmentation 'S': what lies above was interrupted, it did not call */
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_address_register; /* DWARF number */
    const uint8_t *cie_program;       /* programs point into the buffer */
    size_t cie_program_size_bytes;
    const uint8_t *program;
    size_t program_size_bytes;
};

/* Reads the FDE at offset of the section. Returns 0; -ENOENT when a CIE or the terminator is there; -EBADMSG
 * when it is malformed, too long, or of a version or augmentation that is not known. */
int cfi_record_read(const struct cfi_section *section, uint64_t offset, struct cfi_buffer *buffer,
                    struct cfi_record *ret_record);

/* The offset behind the record at offset, whatever it is. Returns 0, or -ENOENT at the end. */
int cfi_record_next(const struct cfi_section *section, uint64_t offset, uint64_t *ret_next);

#endif
