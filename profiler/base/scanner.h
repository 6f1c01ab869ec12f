/* A cursor over text that is not NUL-terminated and not trusted: each call takes what it is asked for from
 * the front, or says false and takes nothing.
 *
 *   struct scanner in = {.at = text, .end = text + length};
 *   if (!scanner_take_hex(&in, &start) || !scanner_take_char(&in, '-') || !scanner_take_hex(&in, &end))
 *       return -EBADMSG;
 */
#ifndef STALLGRAPH_BASE_SCANNER_H
#define STALLGRAPH_BASE_SCANNER_H

#include <stdbool.h>
#include <stdint.h>

struct scanner {
    const char *at;
    const char *end;
};

bool scanner_take_char(struct scanner *in, char wanted);
bool scanner_take_text(struct scanner *in, const char *wanted); /* NUL-terminated */
void scanner_skip_spaces(struct scanner *in);                   /* ' ' and tabs, no newline */

/* Digits alone: no sign, no "0x", no leading space. A number that exceeds 64 bits is refused. */
bool scanner_take_decimal(struct scanner *in, uint64_t *ret_value);
bool scanner_take_hex(struct scanner *in, uint64_t *ret_value);

/* The same with an optional '-' in front. */
bool scanner_take_signed(struct scanner *in, int64_t *ret_value);

#endif
