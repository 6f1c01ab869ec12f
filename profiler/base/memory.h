/* Allocation that cannot fail: out of memory ends the program with one line on stderr (nothing else
 * below cli/ prints). What is returned is freed with free(). */
#ifndef STALLGRAPH_BASE_MEMORY_H
#define STALLGRAPH_BASE_MEMORY_H

#include <stddef.h>

void *memory_zeroed(size_t count, size_t item_size);
void *memory_resize(void *old, size_t count, size_t item_size);
void *memory_copy(const void *bytes, size_t size_bytes);
char *string_copy(const char *text);
char *string_copy_length(const char *text, size_t length_bytes); /* adds the NUL */
char *string_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
