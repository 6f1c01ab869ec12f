#include "profiler/symbolize/symbol_name.h"

#include <stdbool.h>
#include <string.h>

static const char mark[] = "...";

/* UTF-8: all bytes of a character but the first are 10xxxxxx. */
static bool is_inside_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t symbol_name_copy(char *to, const char *name, size_t length_bytes)
{
    bool is_cut = length_bytes > SYMBOL_NAME_MAX_BYTES;
    size_t length = is_cut ? SYMBOL_NAME_MAX_BYTES - (sizeof mark - 1) : length_bytes;

    for (int i = 0; is_cut && i < 3 && is_inside_character(name[length]); i++)
        length--;
    for (size_t i = 0; i < length; i++) {
        if (name[i] == '\0')
            to[i] = '?';
        else
            to[i] = name[i];
    }
    if (is_cut) {
        memcpy(to + length, mark, sizeof mark - 1);
        length += sizeof mark - 1;
    }
    to[length] = '\0';
    return length;
}
