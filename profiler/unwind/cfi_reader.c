#include "profiler/unwind/cfi_reader.h"

#include <string.h>

enum {
    FORMAT_MASK = 0x0f,
    FORMAT_POINTER = 0x00,
    FORMAT_ULEB = 0x01,
    FORMAT_U16 = 0x02,
    FORMAT_U32 = 0x03,
    FORMAT_U64 = 0x04,
    FORMAT_SLEB = 0x09,
    FORMAT_S16 = 0x0a,
    FORMAT_S32 = 0x0b,
    FORMAT_S64 = 0x0c,
    BASE_MASK = 0x70,
    BASE_ABSOLUTE = 0x00,
    BASE_OWN_PLACE = 0x10,
    BASE_DATA = 0x30,
};

struct cfi_reader cfi_reader_of(const uint8_t *bytes, size_t size_bytes, uint64_t vaddr)
{
    return (struct cfi_reader){.at = bytes, .end = bytes + size_bytes, .begin = bytes, .vaddr = vaddr};
}

size_t cfi_reader_left(const struct cfi_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

const uint8_t *cfi_read_bytes(struct cfi_reader *reader, uint64_t count)
{
    const uint8_t *bytes = reader->at;

    if (count > cfi_reader_left(reader)) {
        reader->failed = true;
        return NULL;
    }
    reader->at += count;
    return bytes;
}

static void read_into(struct cfi_reader *reader, void *value, size_t size)
{
    const uint8_t *bytes = cfi_read_bytes(reader, size);

    if (bytes != NULL)
        memcpy(value, bytes, size);
}

uint8_t cfi_read_u8(struct cfi_reader *reader)
{
    uint8_t value = 0;

    read_into(reader, &value, sizeof value);
    return value;
}

uint16_t cfi_read_u16(struct cfi_reader *reader)
{
    uint16_t value = 0;

    read_into(reader, &value, sizeof value);
    return value;
}

uint32_t cfi_read_u32(struct cfi_reader *reader)
{
    uint32_t value = 0;

    read_into(reader, &value, sizeof value);
    return value;
}

uint64_t cfi_read_u64(struct cfi_reader *reader)
{
    uint64_t value = 0;

    read_into(reader, &value, sizeof value);
    return value;
}

/* Bits beyond the 64th are dropped, as other readers do; *ret_shift tells where the sign is. */
static uint64_t read_leb(struct cfi_reader *reader, unsigned *ret_shift, uint8_t *ret_last)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = cfi_read_u8(reader);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += shift < 64 ? 7 : 0;
    } while ((byte & 0x80) != 0 && !reader->failed);
    *ret_shift = shift;
    *ret_last = byte;
    return reader->failed ? 0 : value;
}

uint64_t cfi_read_uleb(struct cfi_reader *reader)
{
    unsigned shift;
    uint8_t last;

    return read_leb(reader, &shift, &last);
}

int64_t cfi_read_sleb(struct cfi_reader *reader)
{
    unsigned shift;
    uint8_t last;
    uint64_t value = read_leb(reader, &shift, &last);

    if ((last & 0x40) != 0 && shift < 64)
        value |= ~UINT64_C(0) << shift;
    return (int64_t)value;
}

const char *cfi_read_string(struct cfi_reader *reader)
{
    const uint8_t *end = memchr(reader->at, 0, cfi_reader_left(reader));

    if (end == NULL) {
        reader->failed = true;
        return NULL;
    }
    return (const char *)cfi_read_bytes(reader, (uint64_t)(end - reader->at) + 1);
}

static uint64_t read_format(struct cfi_reader *reader, uint8_t format)
{
    switch (format) {
    case FORMAT_POINTER:
    case FORMAT_U64:
    case FORMAT_S64:
        return cfi_read_u64(reader);
    case FORMAT_ULEB:
        return cfi_read_uleb(reader);
    case FORMAT_SLEB:
        return (uint64_t)cfi_read_sleb(reader);
    case FORMAT_U16:
        return cfi_read_u16(reader);
    case FORMAT_S16:
        return (uint64_t)(int64_t)(int16_t)cfi_read_u16(reader);
    case FORMAT_U32:
        return cfi_read_u32(reader);
    case FORMAT_S32:
        return (uint64_t)(int64_t)(int32_t)cfi_read_u32(reader);
    default:
        reader->failed = true;
        return 0;
    }
}

uint64_t cfi_read_pointer(struct cfi_reader *reader, uint8_t encoding, uint64_t data_vaddr)
{
    uint64_t place = reader->vaddr + (uint64_t)(reader->at - reader->begin);
    uint64_t value;

    if (encoding == CFI_POINTER_OMITTED)
        return 0;
    value = read_format(reader, encoding & FORMAT_MASK);
    switch (encoding & BASE_MASK) {
    case BASE_ABSOLUTE:
        return value;
    case BASE_OWN_PLACE:
        return place + value;
    case BASE_DATA:
        if (data_vaddr != 0)
            return data_vaddr + value;
        break;
    default: /* relative to text or function, aligned: nobody writes them on x86-64 */
        break;
    }
    reader->failed = true;
    return 0;
}
