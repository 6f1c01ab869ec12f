/* Reads the primitive types of call frame information from bytes that nobody vouches for.
 *
 *   struct cfi_reader reader = cfi_reader_of(bytes, size, vaddr);
 *   uint32_t length = cfi_read_u32(&reader);
 *   if (reader.failed) ...
 *
 * A read beyond the end sets failed, gives 0 and moves nothing; so one check after several reads is enough.
 * Formats: DWARF 5 section 7.6 (LEB128); the Linux Standard Base, "DWARF Extensions" (encoded pointers). */
#ifndef STALLGRAPH_UNWIND_CFI_READER_H
#define STALLGRAPH_UNWIND_CFI_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_reader {
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *begin;
    uint64_t vaddr; /* of begin, for pointers that are relative to their own place */
    bool failed;
};

enum { CFI_POINTER_ABSOLUTE = 0x00, CFI_POINTER_OMITTED = 0xff };

struct cfi_reader cfi_reader_of(const uint8_t *bytes, size_t size_bytes, uint64_t vaddr);
size_t cfi_reader_left(const struct cfi_reader *reader);

uint8_t cfi_read_u8(struct cfi_reader *reader);
uint16_t cfi_read_u16(struct cfi_reader *reader);
uint32_t cfi_read_u32(struct cfi_reader *reader);
uint64_t cfi_read_u64(struct cfi_reader *reader);
uint64_t cfi_read_uleb(struct cfi_reader *reader);
int64_t cfi_read_sleb(struct cfi_reader *reader);

/* Moves on by count bytes and returns where they began; NULL when there are fewer. */
const uint8_t *cfi_read_bytes(struct cfi_reader *reader, uint64_t count);

/* A NUL-terminated string; NULL when it does not end. */
const char *cfi_read_string(struct cfi_reader *reader);

/* A pointer in an encoding of DW_EH_PE_*. data_vaddr is what "data relative" refers to; 0 = such pointers
 * fail. Indirect pointers, which would need the target's memory, give the address of the pointer itself. */
uint64_t cfi_read_pointer(struct cfi_reader *reader, uint8_t encoding, uint64_t data_vaddr);

#endif
