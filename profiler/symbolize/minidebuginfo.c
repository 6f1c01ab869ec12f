#include "profiler/symbolize/minidebuginfo.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "profiler/base/memory.h"

enum { UNPACKED_MAX_BYTES = 128 << 20, PACKED_MAX_BYTES = 64 << 20, CHUNK_BYTES = 1 << 20 };

/* xz -9 needs 65 MiB; the dictionary's size is the file's to say. */
#define DECODER_MEMORY_MAX_BYTES (UINT64_C(128) << 20)

static int unpack_stream(lzma_stream *stream, size_t limit_bytes, char **bytes, size_t *size)
{
    size_t capacity = 0;
    lzma_ret status = LZMA_OK;

    while (status == LZMA_OK) {
        if (capacity - *size == 0) {
            if (capacity > limit_bytes)
                return -EFBIG;
            capacity = capacity * 2 + CHUNK_BYTES;
            if (capacity > limit_bytes)
                capacity = limit_bytes + 1; /* one byte more tells "just fits" from "too long" */
            *bytes = memory_resize(*bytes, capacity, 1);
        }
        stream->next_out = (uint8_t *)*bytes + *size;
        stream->avail_out = capacity - *size;
        status = lzma_code(stream, LZMA_FINISH);
        *size = capacity - stream->avail_out;
    }
    if (status == LZMA_MEMLIMIT_ERROR || *size > limit_bytes)
        return -EFBIG;
    return status == LZMA_STREAM_END ? 0 : -ENOEXEC;
}

int minidebuginfo_unpack(const void *packed, size_t packed_size, size_t limit_bytes, char **ret_bytes,
                         size_t *ret_size)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    char *bytes = NULL;
    size_t size = 0;
    int r;

    if (lzma_stream_decoder(&stream, DECODER_MEMORY_MAX_BYTES, 0) != LZMA_OK)
        return -ENOEXEC;
    stream.next_in = packed;
    stream.avail_in = packed_size;
    r = unpack_stream(&stream, limit_bytes, &bytes, &size);
    lzma_end(&stream);
    if (r < 0) {
        free(bytes);
        return r;
    }
    *ret_bytes = bytes;
    *ret_size = size;
    return 0;
}

int minidebuginfo_open(struct elf_file *file, struct elf_file *ret_inner)
{
    struct elf_section section;
    char *image = NULL;
    size_t size;
    int r;

    if (!elf_file_find(file, ".gnu_debugdata", &section) || !elf_file_load(file, &section, PACKED_MAX_BYTES))
        return -ENOENT;
    r = minidebuginfo_unpack(section.bytes, section.size_bytes, UNPACKED_MAX_BYTES, &image, &size);
    return r < 0 ? r : elf_file_open_image(ret_inner, image, size);
}
