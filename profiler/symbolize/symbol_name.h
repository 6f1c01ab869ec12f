/* How long a name may be. */
#ifndef STALLGRAPH_SYMBOLIZE_SYMBOL_NAME_H
#define STALLGRAPH_SYMBOLIZE_SYMBOL_NAME_H

#include <stddef.h>

/* A longer one is cut to at most this, with "..." at its end, and not within a UTF-8 character. */
enum { SYMBOL_NAME_MAX_BYTES = 4096 };

/* Copies a name of length_bytes, shortened where need be, and a NUL. to has room for the name or for
 * SYMBOL_NAME_MAX_BYTES, whichever is less, and the NUL. A NUL within the name becomes '?'. Returns the
 * length of the copy. */
size_t symbol_name_copy(char *to, const char *name, size_t length_bytes);

#endif
