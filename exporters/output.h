/* The end of every exporter: was all of it written? */
#ifndef STALLGRAPH_EXPORTERS_OUTPUT_H
#define STALLGRAPH_EXPORTERS_OUTPUT_H

#include <stdio.h>

#include "profiler/base/error.h"

/* Flushes. 0, or -errno with err set where this or an earlier write failed (-EIO where the cause is no longer
 * known). */
int output_check(FILE *out, struct error *err);

#endif
