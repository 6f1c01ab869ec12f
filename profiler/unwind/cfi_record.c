#include "profiler/unwind/cfi_record.h"

#include <errno.h>
#include <string.h>

#include "profiler/unwind/cfi_reader.h"

enum { FIRST_READ_BYTES = 512, LENGTH_ESCAPE_BYTES = 12, LENGTH_BYTES = 4 };

static const uint32_t LONG_LENGTH = 0xffffffff; /* a 64-bit length follows */

/* Length and id, which begin every record. */
struct record_head {
    uint64_t id_offset; /* of the section */
    uint64_t end_offset;
    bool is_long;
};

static size_t read_section(const struct cfi_section *section, uint64_t offset, uint8_t *bytes, size_t size)
{
    uint64_t file_offset;
    ssize_t got;

    if (offset >= section->size_bytes)
        return 0;
    if (size > section->size_bytes - offset)
        size = section->size_bytes - offset;
    if (section->bytes != NULL) {
        memcpy(bytes, section->bytes + offset, size);
        return size;
    }
    if (!binary_vaddr_to_offset(section->binary, section->vaddr + offset, &file_offset))
        return 0;
    got = binary_read(section->binary, file_offset, bytes, size);
    return got < 0 ? 0 : (size_t)got;
}

static int parse_head(const struct cfi_section *section, uint64_t offset, struct cfi_reader *reader,
                      struct record_head *ret_head)
{
    uint64_t length = cfi_read_u32(reader);
    bool is_long = length == LONG_LENGTH;

    if (is_long)
        length = cfi_read_u64(reader);
    if (reader->failed)
        return -EBADMSG;
    if (length == 0)
        return -ENOENT;
    offset += is_long ? LENGTH_ESCAPE_BYTES : LENGTH_BYTES;
    if (length > section->size_bytes - offset)
        return -EBADMSG;
    *ret_head = (struct record_head){.id_offset = offset, .end_offset = offset + length, .is_long = is_long};
    return 0;
}

int cfi_record_next(const struct cfi_section *section, uint64_t offset, uint64_t *ret_next)
{
    uint8_t bytes[LENGTH_ESCAPE_BYTES];
    struct cfi_reader reader = cfi_reader_of(bytes, read_section(section, offset, bytes, sizeof bytes), 0);
    struct record_head head;

    if (parse_head(section, offset, &reader, &head) < 0)
        return -ENOENT;
    *ret_next = head.end_offset;
    return 0;
}

/* Reads a whole record into bytes; *ret_reader then stands behind its length and ends with it. */
static int load(const struct cfi_section *section, uint64_t offset, uint8_t *bytes,
                struct cfi_reader *ret_reader, struct record_head *ret_head)
{
    size_t got = read_section(section, offset, bytes, FIRST_READ_BYTES);
    struct cfi_reader reader = cfi_reader_of(bytes, got, section->vaddr + offset);
    int code = parse_head(section, offset, &reader, ret_head);
    uint64_t size;

    if (code < 0)
        return code;
    size = ret_head->end_offset - offset;
    if (size > CFI_RECORD_MAX_BYTES)
        return -EBADMSG;
    if (size > got) {
        got = read_section(section, offset, bytes, size);
        if (got < size)
            return -EBADMSG;
    }
    reader.end = bytes + size;
    *ret_reader = reader;
    return 0;
}

/* "zRPLS": each letter says what stands in the augmentation data, whose size 'z' says. */
static int parse_augmentation(struct cfi_reader *reader, const char *augmentation, struct cfi_record *record,
                              uint8_t *ret_encoding)
{
    struct cfi_reader data;
    uint64_t size;

    *ret_encoding = CFI_POINTER_ABSOLUTE;
    if (augmentation[0] == '\0')
        return 0;
    if (augmentation[0] != 'z') /* "eh" of gcc 2: its data has no size, and nobody has such files */
        return -EBADMSG;
    size = cfi_read_uleb(reader);
    data = *reader;
    if (cfi_read_bytes(reader, size) == NULL)
        return -EBADMSG;
    data.end = reader->at;
    for (const char *letter = augmentation + 1; *letter != '\0'; letter++) {
        switch (*letter) {
        case 'R':
            *ret_encoding = cfi_read_u8(&data);
            break;
        case 'P':
            cfi_read_pointer(&data, cfi_read_u8(&data), 1); /* skipped: any base will do */
            break;
        case 'L':
            cfi_read_u8(&data);
            break;
        case 'S':
            record->is_signal_frame = true;
            break;
        case 'B': /* arm64: return addresses are signed with the B key */
            break;
        default:
            return -EBADMSG;
        }
    }
    return data.failed ? -EBADMSG : 0;
}

static int parse_cie(struct cfi_reader *reader, bool is_long, const struct cfi_section *section,
                     struct cfi_record *record, uint8_t *ret_encoding, bool *ret_is_sized)
{
    uint64_t id = is_long ? cfi_read_u64(reader) : cfi_read_u32(reader);
    uint64_t expected_id = !section->is_debug_frame ? 0 : is_long ? UINT64_MAX : UINT32_MAX;
    uint8_t version = cfi_read_u8(reader);
    const char *augmentation = cfi_read_string(reader);

    if (reader->failed || id != expected_id || (version != 1 && version != 3 && version != 4))
        return -EBADMSG;
    if (version == 4) {
        uint8_t address_size = cfi_read_u8(reader);
        uint8_t segment_size = cfi_read_u8(reader);

        if (address_size != sizeof(uint64_t) || segment_size != 0)
            return -EBADMSG;
    }
    record->code_align = cfi_read_uleb(reader);
    record->data_align = cfi_read_sleb(reader);
    record->return_address_register = version == 1 ? cfi_read_u8(reader) : cfi_read_uleb(reader);
    if (parse_augmentation(reader, augmentation, record, ret_encoding) < 0 || reader->failed)
        return -EBADMSG;
    *ret_is_sized = augmentation[0] == 'z';
    record->cie_program = reader->at;
    record->cie_program_size_bytes = cfi_reader_left(reader);
    return 0;
}

int cfi_record_read(const struct cfi_section *section, uint64_t offset, struct cfi_buffer *buffer,
                    struct cfi_record *ret_record)
{
    struct cfi_record record = {0};
    struct cfi_reader fde;
    struct cfi_reader cie;
    struct record_head head;
    struct record_head cie_head;
    uint64_t pointer;
    uint64_t range;
    uint8_t encoding;
    bool is_sized;
    int code = load(section, offset, buffer->fde, &fde, &head);

    if (code < 0)
        return code;
    pointer = head.is_long ? cfi_read_u64(&fde) : cfi_read_u32(&fde);
    if (fde.failed)
        return -EBADMSG;
    if (section->is_debug_frame ? pointer == (head.is_long ? UINT64_MAX : UINT32_MAX) : pointer == 0)
        return -ENOENT;
    /* .debug_frame: an offset of the section; .eh_frame: how far before this field. */
    if (!section->is_debug_frame) {
        if (pointer > head.id_offset)
            return -EBADMSG;
        pointer = head.id_offset - pointer;
    }
    if (load(section, pointer, buffer->cie, &cie, &cie_head) < 0 ||
        parse_cie(&cie, cie_head.is_long, section, &record, &encoding, &is_sized) < 0)
        return -EBADMSG;
    record.start = cfi_read_pointer(&fde, encoding, 0);
    range = cfi_read_pointer(&fde, encoding & 0x0f, 0);
    if (is_sized)
        cfi_read_bytes(&fde, cfi_read_uleb(&fde));
    if (fde.failed || range > UINT64_MAX - record.start)
        return -EBADMSG;
    record.end = record.start + range;
    record.program = fde.at;
    record.program_size_bytes = cfi_reader_left(&fde);
    *ret_record = record;
    return 0;
}
