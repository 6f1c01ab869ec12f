/* One file to be written: refused before sampling where it cannot be, and there whole or not at all.
 *
 *   r = output_file_check(path, &err);                    // before sampling
 *   r = output_file_write(path, false, write_it, context, &err); // to a temporary name beside it, then renamed
 */
#ifndef STALLGRAPH_CLI_OUTPUT_FILE_H
#define STALLGRAPH_CLI_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "profiler/base/error.h"

/* path "-" is stdout. Says so when a file could not be made there: no such folder, no rights, a folder of
 * that name. */
int output_file_check(const char *path, struct error *err);

/* write gets a stream that compresses when path ends in ".gz", unless it packs_itself. What is no regular file (a pipe, /dev/null) is
 * written as it is. */
int output_file_write(const char *path, bool packs_itself,
                      int (*write)(void *context, FILE *out, struct error *err), void *context,
                      struct error *err);

#endif
