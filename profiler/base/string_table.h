/* Strings kept once and named by an id. Id 0 is always the empty string. Bytes are kept as they came
 * (any byte but NUL); making them safe is each exporter's work. */
#ifndef STALLGRAPH_BASE_STRING_TABLE_H
#define STALLGRAPH_BASE_STRING_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct string_table;

struct string_table *string_table_create(void);
void string_table_destroy(struct string_table *table);

uint32_t string_table_intern(struct string_table *table, const char *text);
uint32_t string_table_intern_length(struct string_table *table, const char *bytes, size_t length_bytes);

/* NUL-terminated; valid until the table is destroyed. The id must come from this table. */
const char *string_table_get(const struct string_table *table, uint32_t id);
uint32_t string_table_count(const struct string_table *table);

#endif
