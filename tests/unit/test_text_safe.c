#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/text_safe.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"

#define REPLACED "\xef\xbf\xbd"

static void expect(enum text_use use, const char *raw, const char *expected)
{
    AUTO_FREE char *safe = text_safe(raw, use);

    assert_string_equal(safe, expected);
}

static void test_plain(void **state)
{
    (void)state;
    const enum text_use uses[] = {TEXT_JSON, TEXT_FOLDED, TEXT_XML};

    for (size_t i = 0; i < 3; i++) {
        expect(uses[i], "std::vector<int>::push_back(int const&)", "std::vector<int>::push_back(int const&)");
        expect(uses[i], "", "[unknown]");
        expect(uses[i], "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    }
}

static void test_invalid_utf8(void **state)
{
    (void)state;
    expect(TEXT_XML, "\xff d", REPLACED " d");
    expect(TEXT_XML, "\x80", REPLACED);                                        /* a continuation alone */
    expect(TEXT_XML, "\xc3(", REPLACED "(");                                   /* cut by a character */
    expect(TEXT_XML, "\xe2\x82", REPLACED REPLACED);                           /* cut by the end */
    expect(TEXT_XML, "\xc0\xaf", REPLACED REPLACED);                           /* overlong '/' */
    expect(TEXT_XML, "\xe0\x80\xaf", REPLACED REPLACED REPLACED);              /* the same */
    expect(TEXT_XML, "\xed\xa0\x80", REPLACED REPLACED REPLACED);              /* a surrogate */
    expect(TEXT_XML, "\xf4\x90\x80\x80", REPLACED REPLACED REPLACED REPLACED); /* above U+10FFFF */
    expect(TEXT_XML, "\xf5\x80\x80\x80", REPLACED REPLACED REPLACED REPLACED);
}

static void test_each_format(void **state)
{
    (void)state;
    expect(TEXT_JSON, "a;b\n\x1b\x7f", "a;b\n\x1b\x7f");
    expect(TEXT_FOLDED, "a;b\nc\rd\te\x1b\x7f", "a:b c d e" REPLACED REPLACED);
    expect(TEXT_XML, "a;b\nc\rd\te\x1b\x7f", "a;b c d e" REPLACED REPLACED);
    expect(TEXT_FOLDED,
           "a\xe2\x80\xa8"
           "b\xc2\x85"
           "c",
           "a b" REPLACED "c"); /* U+2028, U+0085 */
    expect(TEXT_XML, "\xef\xbf\xbe\xef\xbf\xbf\xef\xbb\xbf", REPLACED REPLACED REPLACED);
    expect(TEXT_XML,
           "a\xe2\x80\xae"
           "b",
           "a" REPLACED "b"); /* right-to-left override */
}

static void fill_with_accents(char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = '\xc3';
        text[2 * i + 1] = '\xa9';
    }
}

static void test_long_names(void **state)
{
    (void)state;
    AUTO_FREE char *just_fits = memory_zeroed(TEXT_MAX_CODE_POINTS * 2 + 1, 1);
    AUTO_FREE char *too_long = memory_zeroed((TEXT_MAX_CODE_POINTS + 1) * 2 + 1, 1);

    fill_with_accents(just_fits, TEXT_MAX_CODE_POINTS);
    fill_with_accents(too_long, TEXT_MAX_CODE_POINTS + 1);
    too_long[0] = 'a';
    too_long[1] = 'b';
    expect(TEXT_JSON, just_fits, just_fits);

    AUTO_FREE char *cut = text_safe(too_long, TEXT_JSON);

    assert_int_equal(text_length(cut), TEXT_MAX_CODE_POINTS);
    assert_memory_equal(cut, "ab\xc3\xa9", 4);
    assert_non_null(strstr(cut, "\xe2\x80\xa6"));
    assert_memory_equal(cut + strlen(cut) - 2, "\xc3\xa9", 2);
}

static void test_decode_and_encode(void **state)
{
    (void)state;
    const uint32_t code_points[] = {0x1, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD, 0x10000, 0x10FFFF};

    for (size_t i = 0; i < sizeof code_points / sizeof code_points[0]; i++) {
        char bytes[TEXT_ENCODED_MAX_BYTES + 1] = "";
        const char *cursor = bytes;
        size_t size = text_encode(code_points[i], bytes);

        assert_int_equal(text_decode(&cursor), code_points[i]);
        assert_ptr_equal(cursor, bytes + size);
        assert_int_equal(text_decode(&cursor), 0);
        assert_ptr_equal(cursor, bytes + size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_invalid_utf8),
        cmocka_unit_test(test_each_format),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_decode_and_encode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
