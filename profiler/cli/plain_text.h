/* Names of the target on a terminal: nothing in them may move the cursor or change its colours. */
#ifndef STALLGRAPH_CLI_PLAIN_TEXT_H
#define STALLGRAPH_CLI_PLAIN_TEXT_H

#include <stdio.h>

/* Control bytes (and DEL, and C1 as UTF-8) become '?'; all else is printed as it is. */
void plain_text_print(FILE *out, const char *text);
/* The same, filled up with blanks to width bytes. */
void plain_text_print_padded(FILE *out, const char *text, size_t width);

#endif
