/* The summary of a profile for a person: the verdict first, then what waits, where, and whose threads they are. At most
 * a screen. */
#ifndef STALLGRAPH_CLI_SUMMARY_TEXT_H
#define STALLGRAPH_CLI_SUMMARY_TEXT_H

#include <stdio.h>

#include "profiler/model/profile.h"

void summary_text_print(FILE *out, const struct profile *profile);

#endif
