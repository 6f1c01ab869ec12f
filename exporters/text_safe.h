/* Names as found in a target hold any bytes. This makes them safe for one format: valid UTF-8, bounded, and
 * free of what the format cannot hold.
 *
 *   AUTO_FREE char *name = text_safe("a;b\n", TEXT_FOLDED);    // "a:b "
 */
#ifndef STALLGRAPH_EXPORTERS_TEXT_SAFE_H
#define STALLGRAPH_EXPORTERS_TEXT_SAFE_H

#include <stddef.h>
#include <stdint.h>

enum text_use {
    TEXT_JSON,   /* any code point: json_writer escapes what must be */
    TEXT_FOLDED, /* no ';' (becomes ':'), no line breaks (become spaces), no control characters */
    TEXT_XML, /* only what XML 1.0 allows, no control characters; "<", "&" and quotes are still to be escaped
               */
};

enum {
    TEXT_MAX_CODE_POINTS = 1000, /* a longer name keeps its first 600 and its last 399, with U+2026 between */
    TEXT_REPLACEMENT = 0xFFFD,   /* stands for what is not UTF-8, and for characters that a format forbids */
    TEXT_ENCODED_MAX_BYTES = 4,
};

/* Caller frees. The empty name becomes "[unknown]". */
char *text_safe(const char *raw, enum text_use use);

/* The next code point of a NUL-terminated text, moving *cursor behind it; 0 at the end, where the cursor
 * stays. A byte that is no part of well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms) is
 * TEXT_REPLACEMENT. */
uint32_t text_decode(const char **cursor);

/* Writes the UTF-8 of a code point, without a NUL. Returns how many bytes. */
size_t text_encode(uint32_t code_point, char bytes[TEXT_ENCODED_MAX_BYTES]);

/* Code points of a text. */
size_t text_length(const char *text);

#endif
