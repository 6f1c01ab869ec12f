#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/memory.h"
#include "profiler/symbolize/minidebuginfo.h"

static uint8_t *pack(const void *bytes, size_t size, uint32_t preset, size_t *ret_size)
{
    size_t bound = lzma_stream_buffer_bound(size);
    uint8_t *packed = memory_zeroed(bound, 1);

    *ret_size = 0;
    assert_int_equal(
        lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC32, NULL, bytes, size, packed, ret_size, bound),
        LZMA_OK);
    return packed;
}

static void unpacks(void **state)
{
    static const char text[] = "what was packed";
    char *bytes = NULL;
    size_t packed_size;
    size_t size = 0;
    uint8_t *packed = pack(text, sizeof text, 6, &packed_size);

    (void)state;
    assert_int_equal(minidebuginfo_unpack(packed, packed_size, sizeof text, &bytes, &size), 0);
    assert_int_equal(size, sizeof text);
    assert_string_equal(bytes, text);
    free(bytes);
    assert_int_equal(minidebuginfo_unpack(packed, packed_size, sizeof text - 1, &bytes, &size), -EFBIG);
    free(packed);
}

/* A few kilobytes that unpack to 16 MiB. */
static void bomb_is_refused(void **state)
{
    size_t zeros_size = 16 << 20;
    char *zeros = memory_zeroed(zeros_size, 1);
    char *bytes = NULL;
    size_t packed_size;
    size_t size = 0;
    uint8_t *packed = pack(zeros, zeros_size, 1, &packed_size);

    (void)state;
    assert_true(packed_size < 10000);
    assert_int_equal(minidebuginfo_unpack(packed, packed_size, 4 << 20, &bytes, &size), -EFBIG);
    assert_null(bytes);
    assert_int_equal(minidebuginfo_unpack(packed, packed_size, zeros_size, &bytes, &size), 0);
    assert_int_equal(size, zeros_size);
    free(bytes);
    free(packed);
    free(zeros);
}

static void broken_input(void **state)
{
    static const char text[] = "what was packed, and long enough to be cut anywhere";
    char *bytes = NULL;
    size_t packed_size;
    size_t size = 0;
    uint8_t *packed = pack(text, sizeof text, 6, &packed_size);

    (void)state;
    for (size_t keep = 0; keep < packed_size; keep++)
        assert_int_equal(minidebuginfo_unpack(packed, keep, 1000, &bytes, &size), -ENOEXEC);
    packed[packed_size / 2] ^= 0x10;
    assert_int_equal(minidebuginfo_unpack(packed, packed_size, 1000, &bytes, &size), -ENOEXEC);
    assert_int_equal(minidebuginfo_unpack("no xz", 5, 1000, &bytes, &size), -ENOEXEC);
    assert_null(bytes);
    free(packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpacks),
        cmocka_unit_test(bomb_is_refused),
        cmocka_unit_test(broken_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
