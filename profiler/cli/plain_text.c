#include "profiler/cli/plain_text.h"

#include <stdbool.h>
#include <string.h>

static bool is_control(unsigned char byte, unsigned char next)
{
    return byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next >= 0x80 && next < 0xa0);
}

void plain_text_print(FILE *out, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++)
        fputc(is_control(at[0], at[1]) ? '?' : at[0], out);
}

void plain_text_print_padded(FILE *out, const char *text, size_t width)
{
    plain_text_print(out, text);
    for (size_t length = strlen(text); length < width; length++)
        fputc(' ', out);
}
