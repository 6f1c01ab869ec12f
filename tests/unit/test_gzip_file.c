#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "exporters/gzip_file.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"

enum { BIG_BYTES = 3 << 20 };

/* Hard to compress, so that many chunks go through. */
static char *noise(size_t size)
{
    char *bytes = memory_zeroed(size, 1);
    uint32_t seed = 1;

    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (char)(seed >> 24);
    }
    return bytes;
}

static char *pack(const char *bytes, size_t size, size_t *ret_size)
{
    char *packed = NULL;
    FILE *plain = open_memstream(&packed, ret_size);
    FILE *file = gzip_wrap(plain);

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(fclose(plain), 0);
    return packed;
}

static void expect_back(const char *bytes, size_t size)
{
    size_t packed_size = 0;
    AUTO_FREE char *packed = pack(bytes, size, &packed_size);
    AUTO_FREE char *unpacked = memory_zeroed(size + 1, 1);
    z_stream stream = {.next_in = (Bytef *)packed,
                       .avail_in = (uInt)packed_size,
                       .next_out = (Bytef *)unpacked,
                       .avail_out = (uInt)size + 1};

    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK); /* gzip only */
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.total_out, size);
    assert_int_equal(stream.avail_in, 0);
    inflateEnd(&stream);
    assert_memory_equal(unpacked, bytes, size);
}

static void test_round_trip(void **state)
{
    (void)state;
    AUTO_FREE char *big = noise(BIG_BYTES);

    expect_back("hello", 5);
    expect_back("", 0);
    expect_back(big, BIG_BYTES);
}

/* RFC 1952: MTIME is bytes 4 to 7 of the header; 0 means that there is none. */
static void test_deterministic(void **state)
{
    (void)state;
    size_t size = 0;
    AUTO_FREE char *packed = pack("hello", 5, &size);

    assert_memory_equal(packed, "\x1f\x8b\x08\x00\x00\x00\x00\x00", 8);
}

static ssize_t refuse(void *cookie, const char *bytes, size_t size)
{
    (void)cookie;
    (void)bytes;
    (void)size;
    errno = ENOSPC;
    return 0;
}

static void test_full_disk(void **state)
{
    (void)state;
    AUTO_FREE char *big = noise(BIG_BYTES);
    FILE *plain = fopencookie(NULL, "w", (cookie_io_functions_t){.write = refuse});
    FILE *file = gzip_wrap(plain);

    assert_true(fwrite(big, 1, BIG_BYTES, file) < BIG_BYTES);
    assert_true(ferror(file));
    fclose(file);
    fclose(plain);

    /* Little enough to show at the close only. */
    plain = fopencookie(NULL, "w", (cookie_io_functions_t){.write = refuse});
    file = gzip_wrap(plain);
    assert_int_equal(fwrite("hello", 1, 5, file), 5);
    errno = 0;
    assert_int_equal(fclose(file), EOF);
    assert_int_equal(errno, ENOSPC);
    fclose(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_full_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
