#include "profiler/base/scanner.h"

#include <string.h>

bool scanner_take_char(struct scanner *in, char wanted)
{
    if (in->at == in->end || *in->at != wanted)
        return false;
    in->at++;
    return true;
}

bool scanner_take_text(struct scanner *in, const char *wanted)
{
    size_t length = strlen(wanted);

    if ((size_t)(in->end - in->at) < length || memcmp(in->at, wanted, length) != 0)
        return false;
    in->at += length;
    return true;
}

void scanner_skip_spaces(struct scanner *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t'))
        in->at++;
}

/* The digit's value, or 16 when it is none. */
static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

static bool take_number(struct scanner *in, unsigned base, uint64_t *ret_value)
{
    const char *at = in->at;
    uint64_t value = 0;

    for (; at < in->end && digit_value(*at) < base; at++)
        if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit_value(*at), &value))
            return false;
    if (at == in->at)
        return false;
    in->at = at;
    *ret_value = value;
    return true;
}

bool scanner_take_decimal(struct scanner *in, uint64_t *ret_value)
{
    return take_number(in, 10, ret_value);
}

bool scanner_take_hex(struct scanner *in, uint64_t *ret_value)
{
    return take_number(in, 16, ret_value);
}

bool scanner_take_signed(struct scanner *in, int64_t *ret_value)
{
    struct scanner ahead = *in;
    bool negative = scanner_take_char(&ahead, '-');
    uint64_t value = 0;

    if (!take_number(&ahead, 10, &value) || value > INT64_MAX)
        return false;
    *in = ahead;
    *ret_value = negative ? -(int64_t)value : (int64_t)value;
    return true;
}
