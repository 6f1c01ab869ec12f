#include "profiler/unwind/cfi_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/unwind/cfi_reader.h"
#include "profiler/unwind/cfi_sections.h"

enum {
    HEADER_MAX_BYTES = 64,
    HEADER_VERSION = 1,
    TABLE_ENCODING = 0x3b, /* data relative, signed 4 bytes: what every linker writes */
    MAX_FUNCTIONS = 8 << 20,
};

/* As .eh_frame_hdr has them, so that its table can be read as it is. */
struct entry {
    int32_t start; /* of the code, from the table's code_base */
    int32_t fde;   /* from the table's fde_base */
};

struct table {
    struct cfi_section section;
    struct entry *entries; /* by start, ascending, as far as the file tells the truth */
    size_t count;
    uint64_t code_base;
    uint64_t fde_base; /* what fde is added to gives an offset of the section */
};

struct cfi_index {
    const struct binary *binary;
    struct table eh_frame;
    struct table debug_frame;
    uint8_t *debug_frame_bytes;
    bool is_debug_frame_read; /* only once .eh_frame has had no answer */
};

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;

    return (a->start > b->start) - (a->start < b->start);
}

/* Reads a section's records one after another. Functions further than 2 GiB from the first are left out: no
 * code model that x86-64 compilers default to makes such files. */
static void scan_section(struct table *table)
{
    AUTO_FREE struct cfi_buffer *buffer = memory_zeroed(1, sizeof *buffer);
    VEC_OF(struct entry) entries = {0};
    uint64_t offset = 0;
    uint64_t next;

    for (; cfi_record_next(&table->section, offset, &next) == 0 && entries.count < MAX_FUNCTIONS;
         offset = next) {
        struct cfi_record record;
        int64_t distance;

        if (offset > INT32_MAX || cfi_record_read(&table->section, offset, buffer, &record) < 0 ||
            record.start == record.end)
            continue;
        if (entries.count == 0)
            table->code_base = record.start;
        distance = (int64_t)(record.start - table->code_base);
        if (distance < INT32_MIN || distance > INT32_MAX)
            continue;
        VEC_PUSH(&entries, ((struct entry){.start = (int32_t)distance, .fde = (int32_t)offset}));
    }
    if (entries.count > 0)
        qsort(entries.items, entries.count, sizeof *entries.items, compare_entries);
    table->entries = entries.items;
    table->count = entries.count;
    table->fde_base = 0;
}

/* A copy in memory makes scanning one read instead of two a function. */
static void scan_loaded_section(struct table *table)
{
    const struct cfi_section in_file = table->section;
    AUTO_FREE uint8_t *bytes = memory_zeroed(in_file.size_bytes + 1, 1);
    uint64_t file_offset;
    ssize_t got;

    if (!binary_vaddr_to_offset(in_file.binary, in_file.vaddr, &file_offset))
        return;
    got = binary_read(in_file.binary, file_offset, bytes, in_file.size_bytes);
    if (got <= 0)
        return;
    table->section.bytes = bytes;
    table->section.size_bytes = (uint64_t)got;
    scan_section(table);
    table->section = in_file;
}

/* .eh_frame may be anywhere in its segment, and only section headers say how long it is, which may be
 * stripped: up to the segment's end then, since the section's terminator ends a scan, and a record that is
 * looked up knows its length. */
static bool section_from(const struct binary *binary, uint64_t vaddr, struct cfi_section *ret_section)
{
    for (size_t i = 0; i < binary->segment_count; i++) {
        const struct binary_segment *segment = &binary->segments[i];

        if (vaddr - segment->vaddr < segment->file_size_bytes) {
            *ret_section = (struct cfi_section){
                .binary = binary,
                .vaddr = segment->vaddr,
                .size_bytes = segment->file_size_bytes,
            };
            return true;
        }
    }
    return false;
}

/* version, three encodings, pointer to .eh_frame, count of entries, entries. */
static bool read_header(const struct binary *binary, struct table *table, uint64_t *ret_eh_frame_vaddr)
{
    uint8_t bytes[HEADER_MAX_BYTES];
    struct cfi_reader reader;
    uint64_t offset;
    uint64_t eh_frame;
    uint64_t count;
    uint64_t table_size;
    uint8_t encodings[3];
    ssize_t got;

    if (binary->eh_frame_hdr_vaddr == 0 ||
        !binary_vaddr_to_offset(binary, binary->eh_frame_hdr_vaddr, &offset))
        return false;
    got = binary_read(binary, offset, bytes, sizeof bytes);
    if (got <= 0)
        return false;
    reader = cfi_reader_of(bytes, (size_t)got, binary->eh_frame_hdr_vaddr);
    if (cfi_read_u8(&reader) != HEADER_VERSION)
        return false;
    for (size_t i = 0; i < sizeof encodings; i++)
        encodings[i] = cfi_read_u8(&reader);
    eh_frame = cfi_read_pointer(&reader, encodings[0], binary->eh_frame_hdr_vaddr);
    if (reader.failed || encodings[0] == CFI_POINTER_OMITTED ||
        !section_from(binary, eh_frame, &table->section))
        return false;
    *ret_eh_frame_vaddr = eh_frame;
    count = cfi_read_pointer(&reader, encodings[1], binary->eh_frame_hdr_vaddr);
    if (reader.failed || encodings[1] == CFI_POINTER_OMITTED || encodings[2] != TABLE_ENCODING || count == 0)
        return true; /* no table, but the section */
    if (count > MAX_FUNCTIONS)
        count = MAX_FUNCTIONS;
    table_size = count * sizeof *table->entries;
    if (table_size > binary->eh_frame_hdr_size_bytes)
        table_size = binary->eh_frame_hdr_size_bytes;
    table->entries = memory_zeroed(table_size / sizeof *table->entries + 1, sizeof *table->entries);
    got = binary_read(binary, offset + (uint64_t)(reader.at - reader.begin), table->entries, table_size);
    table->count = got < 0 ? 0 : (size_t)got / sizeof *table->entries;
    table->code_base = binary->eh_frame_hdr_vaddr;
    table->fde_base = binary->eh_frame_hdr_vaddr - table->section.vaddr;
    return true;
}

static void read_eh_frame(const struct binary *binary, struct table *table)
{
    uint64_t eh_frame_vaddr;

    if (read_header(binary, table, &eh_frame_vaddr)) {
        if (table->count > 0)
            return;
        free(table->entries);
        table->entries = NULL;
        table->section.size_bytes -= eh_frame_vaddr - table->section.vaddr;
        table->section.vaddr = eh_frame_vaddr;
        if (table->section.size_bytes > CFI_SECTION_MAX_BYTES)
            table->section.size_bytes = CFI_SECTION_MAX_BYTES;
        scan_loaded_section(table);
    } else if (cfi_sections_find_eh_frame(binary, &table->section) == 0) {
        scan_loaded_section(table);
    }
}

struct cfi_index *cfi_index_create(const struct binary *binary)
{
    struct cfi_index *index = memory_zeroed(1, sizeof *index);

    index->binary = binary;
    read_eh_frame(binary, &index->eh_frame);
    return index;
}

struct cfi_index *cfi_index_create_section(const struct cfi_section *section)
{
    struct cfi_index *index = memory_zeroed(1, sizeof *index);
    struct table *table = section->is_debug_frame ? &index->debug_frame : &index->eh_frame;

    index->is_debug_frame_read = true;
    table->section = *section;
    scan_section(table);
    return index;
}

void cfi_index_destroy(struct cfi_index *index)
{
    if (index == NULL)
        return;
    free(index->eh_frame.entries);
    free(index->debug_frame.entries);
    free(index->debug_frame_bytes);
    free(index);
}

static void read_debug_frame(struct cfi_index *index)
{
    struct table *table = &index->debug_frame;
    size_t size;

    index->is_debug_frame_read = true;
    if (cfi_sections_read_debug_frame(index->binary, &index->debug_frame_bytes, &size) < 0)
        return;
    table->section =
        (struct cfi_section){.bytes = index->debug_frame_bytes, .size_bytes = size, .is_debug_frame = true};
    scan_section(table);
}

static int find_in_table(const struct table *table, uint64_t vaddr, struct cfi_buffer *buffer,
                         struct cfi_record *ret_record)
{
    int64_t distance = (int64_t)(vaddr - table->code_base);
    struct cfi_record record;
    size_t low = 0;
    size_t high = table->count;

    while (low < high) { /* the first entry that begins behind vaddr */
        size_t middle = low + (high - low) / 2;

        if (table->entries[middle].start > distance)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == 0)
        return -ENOENT;
    if (cfi_record_read(&table->section, table->fde_base + (uint64_t)(int64_t)table->entries[low - 1].fde,
                        buffer, &record) < 0 ||
        vaddr < record.start || vaddr >= record.end)
        return -ENOENT;
    *ret_record = record;
    return 0;
}

int cfi_index_find(struct cfi_index *index, uint64_t vaddr, struct cfi_buffer *buffer,
                   struct cfi_record *ret_record)
{
    if (find_in_table(&index->eh_frame, vaddr, buffer, ret_record) == 0)
        return 0;
    if (!index->is_debug_frame_read)
        read_debug_frame(index);
    return find_in_table(&index->debug_frame, vaddr, buffer, ret_record);
}
