/* Source-level names from the linker's names of C++, Rust (legacy and v0) and D. */
#ifndef STALLGRAPH_SYMBOLIZE_DEMANGLE_H
#define STALLGRAPH_SYMBOLIZE_DEMANGLE_H

/* Always a string, which the caller frees: the name as it is where it is not mangled, not decodable, or too
 * much to decode. What a compiler or this program appends stays behind, as it is: "_Z3foov.isra.0.cold" is
 * "foo().isra.0.cold",
 * "_Z3foov@plt" is "foo()@plt". The hash that legacy Rust names end in ("::h0123456789abcdef") is left out.
 */
char *demangle_name(const char *name);

#endif
