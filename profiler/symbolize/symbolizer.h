/* Names for places, asked once for each distinct place after sampling. A source is a const struct, the
 * sources are tried in the order of a const array; a new source is one file, one row, one test.
 *
 *   struct symbolizer *s = symbolizer_create(&context);
 *   struct symbol symbol;
 *   symbolizer_resolve(s, &location, &symbol);   // always gives a name: "module+0x1234" in the last resort
 *   symbolizer_destroy(s);
 */
#ifndef STALLGRAPH_SYMBOLIZE_SYMBOLIZER_H
#define STALLGRAPH_SYMBOLIZE_SYMBOLIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "profiler/model/location.h"
#include "profiler/symbolize/symbolizer_context.h"

/* Strings belong to the symbolizer and are valid until the next resolve. */
struct symbol {
    const char *name;     /* demangled; raw bytes otherwise */
    const char *module;   /* base name of the file, "[kernel]", "[jit]", "[vdso]"; "" when unknown */
    const char *build_id; /* lower-case hexadecimal, or "" */
    bool is_named;        /* false: the name is only module+0xoffset, "[kernel]" or a bare address */
};

struct symbolizer;

struct symbolizer *symbolizer_create(const struct symbolizer_context *context);
void symbolizer_destroy(struct symbolizer *symbolizer);
void symbolizer_resolve(struct symbolizer *symbolizer, const struct location *location,
                        struct symbol *ret_symbol);

/* Reads the perf maps of a process now, while its root directory can still be reached; what was read later
 * wins. */
void symbolizer_load_perf_map(struct symbolizer *symbolizer, uint32_t process);

#endif
