#include "exporters/gzip_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "profiler/base/memory.h"

enum {
    GZIP_WINDOW_BITS = 15 + 16, /* 32 KiB; +16 asks zlib for a gzip header */
    GZIP_MEMORY_LEVEL = 8,      /* zlib's default */
    CHUNK_BYTES = 64 * 1024,
};

struct gzip_file {
    FILE *plain;
    z_stream stream;
    unsigned char chunk[CHUNK_BYTES];
};

/* Runs deflate until it has taken all input (and, with Z_FINISH, given all output). Returns 0 or -1 with
 * errno. */
static int pump(struct gzip_file *file, int flush)
{
    int result = Z_OK;

    do {
        file->stream.next_out = file->chunk;
        file->stream.avail_out = CHUNK_BYTES;
        result = deflate(&file->stream, flush);
        size_t ready = CHUNK_BYTES - file->stream.avail_out;

        errno = 0;
        if (ready > 0 && fwrite(file->chunk, 1, ready, file->plain) != ready) {
            if (errno == 0)
                errno = EIO;
            return -1;
        }
    } while (file->stream.avail_out == 0 || (flush == Z_FINISH && result == Z_OK));
    return 0;
}

static ssize_t gzip_write(void *cookie, const char *bytes, size_t size_bytes)
{
    struct gzip_file *file = cookie;
    size_t size = size_bytes < UINT_MAX ? size_bytes : UINT_MAX;

    file->stream.next_in = (z_const Bytef *)bytes;
    file->stream.avail_in = (uInt)size;
    /* fopencookie(3): a write function tells an error by 0. */
    return pump(file, Z_NO_FLUSH) == 0 ? (ssize_t)size : 0;
}

static int gzip_close(void *cookie)
{
    struct gzip_file *file = cookie;
    int result = 0;

    file->stream.avail_in = 0;
    result = pump(file, Z_FINISH);
    if (result == 0 && fflush(file->plain) != 0)
        result = -1;
    int saved = errno;

    deflateEnd(&file->stream);
    free(file);
    errno = saved;
    return result;
}

FILE *gzip_wrap(FILE *plain)
{
    static const cookie_io_functions_t functions = {.write = gzip_write, .close = gzip_close};
    struct gzip_file *file = memory_zeroed(1, sizeof *file);
    FILE *wrapper = NULL;

    file->plain = plain;
    if (deflateInit2(&file->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(file);
        errno = ENOMEM;
        return NULL;
    }
    wrapper = fopencookie(file, "w", functions);
    if (wrapper == NULL) {
        deflateEnd(&file->stream);
        free(file);
        errno = ENOMEM;
    }
    return wrapper;
}
