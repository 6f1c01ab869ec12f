#include "exporters/text_safe.h"

#include <stdbool.h>

#include "profiler/base/memory.h"

enum {
    KEPT_HEAD = 600, /* of a name that is too long */
    KEPT_TAIL = TEXT_MAX_CODE_POINTS - KEPT_HEAD - 1,
    ELLIPSIS = 0x2026,
};

uint32_t text_decode(const char **cursor)
{
    static const uint32_t smallest_of_length[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)*cursor;
    uint32_t code_point = bytes[0];
    size_t length = 1;

    if (code_point == 0)
        return 0;
    *cursor += 1;
    if (code_point < 0x80)
        return code_point;
    if (code_point >= 0xC2 && code_point < 0xE0)
        length = 2;
    else if (code_point >= 0xE0 && code_point < 0xF0)
        length = 3;
    else if (code_point >= 0xF0 && code_point < 0xF5)
        length = 4;
    else
        return TEXT_REPLACEMENT;
    code_point &= 0x7Fu >> length;
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80) /* the terminating NUL too */
            return TEXT_REPLACEMENT;
        code_point = code_point << 6 | (bytes[i] & 0x3Fu);
    }
    if (code_point < smallest_of_length[length] || code_point > 0x10FFFF ||
        (code_point >= 0xD800 && code_point <= 0xDFFF))
        return TEXT_REPLACEMENT;
    *cursor += length - 1;
    return code_point;
}

size_t text_encode(uint32_t code_point, char bytes[TEXT_ENCODED_MAX_BYTES])
{
    if (code_point < 0x80) {
        bytes[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        bytes[0] = (char)(0xC0 | code_point >> 6);
        bytes[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        bytes[0] = (char)(0xE0 | code_point >> 12);
        bytes[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
        bytes[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    bytes[0] = (char)(0xF0 | code_point >> 18);
    bytes[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
    bytes[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
    bytes[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}

size_t text_length(const char *text)
{
    size_t length = 0;

    while (text_decode(&text) != 0)
        length++;
    return length;
}

/* C0, DEL and C1; and characters that reorder or break the text around them, with which a name could pose as
 * another. */
static bool is_control(uint32_t code_point)
{
    return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) ||
           (code_point >= 0x202A && code_point <= 0x202E) || (code_point >= 0x2066 && code_point <= 0x2069) ||
           code_point == 0xFEFF || code_point == 0xFFFE || code_point == 0xFFFF;
}

static bool is_line_break(uint32_t code_point)
{
    return code_point == '\n' || code_point == '\r' || code_point == 0x2028 || code_point == 0x2029;
}

static uint32_t safe_code_point(uint32_t code_point, enum text_use use)
{
    if (use == TEXT_JSON)
        return code_point;
    if (is_line_break(code_point) || code_point == '\t')
        return ' ';
    if (is_control(code_point))
        return TEXT_REPLACEMENT;
    return use == TEXT_FOLDED && code_point == ';' ? ':' : code_point;
}

char *text_safe(const char *raw, enum text_use use)
{
    size_t length = text_length(raw);
    bool cut = length > TEXT_MAX_CODE_POINTS;
    size_t kept = cut ? TEXT_MAX_CODE_POINTS : length;
    char *safe = NULL;
    size_t size = 0;

    if (length == 0)
        return string_copy("[unknown]");
    safe = memory_zeroed(kept * TEXT_ENCODED_MAX_BYTES + 1, 1);
    for (size_t i = 0; i < length; i++) {
        uint32_t code_point = text_decode(&raw);

        if (cut && i >= KEPT_HEAD && i < length - KEPT_TAIL) {
            if (i == KEPT_HEAD)
                size += text_encode(ELLIPSIS, safe + size);
            continue;
        }
        size += text_encode(safe_code_point(code_point, use), safe + size);
    }
    safe[size] = '\0';
    return safe;
}
