/* Whether a function is the program's own, by its name and the file that it is in. Pure.
 *
 *   library_code_is_runtime("pthread_cond_wait", "libc.so.6")   yes: between a program and the kernel
 *   library_code_is_library("PQexec", "libpq.so.5")             yes: what a program is made with
 *   library_code_is_library("query_database", "dbserver")       no
 */
#ifndef STALLGRAPH_MODEL_LIBRARY_CODE_H
#define STALLGRAPH_MODEL_LIBRARY_CODE_H

#include <stdbool.h>

/* Code of the C library, of the C++ or Go or Rust runtime, that stands between a program and the kernel.
 * module: base name of the file, "[jit]", or "". */
bool library_code_is_runtime(const char *name, const char *module);

/* That, or code of a well-known library: clients of databases, TLS, event loops. Who reads a summary wants the function
 * of their own that calls it. */
bool library_code_is_library(const char *name, const char *module);

#endif
