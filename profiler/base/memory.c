#include "profiler/base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(void)
{
    static const char text[] = "stallgraph: out of memory\n";

    fwrite(text, 1, sizeof text - 1, stderr);
    abort();
}

void *memory_zeroed(size_t count, size_t item_size)
{
    void *bytes = calloc(count > 0 ? count : 1, item_size);

    if (bytes == NULL)
        out_of_memory();
    return bytes;
}

void *memory_resize(void *old, size_t count, size_t item_size)
{
    void *bytes;

    if (item_size != 0 && count > SIZE_MAX / item_size)
        out_of_memory();
    bytes = realloc(old, count * item_size > 0 ? count * item_size : 1);
    if (bytes == NULL)
        out_of_memory();
    return bytes;
}

void *memory_copy(const void *bytes, size_t size_bytes)
{
    void *copy = memory_resize(NULL, size_bytes, 1);

    if (size_bytes > 0)
        memcpy(copy, bytes, size_bytes);
    return copy;
}

char *string_copy(const char *text)
{
    return memory_copy(text, strlen(text) + 1);
}

char *string_copy_length(const char *text, size_t length_bytes)
{
    char *copy = memory_resize(NULL, length_bytes + 1, 1);

    if (length_bytes > 0)
        memcpy(copy, text, length_bytes);
    copy[length_bytes] = '\0';
    return copy;
}

char *string_format(const char *format, ...)
{
    va_list args;
    char *text = NULL;
    int length;

    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        out_of_memory();
    return text;
}
