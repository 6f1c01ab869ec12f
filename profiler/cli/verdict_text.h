/* A verdict in words, with the figures it rests on. */
#ifndef STALLGRAPH_CLI_VERDICT_TEXT_H
#define STALLGRAPH_CLI_VERDICT_TEXT_H

#include <stdio.h>

#include "profiler/model/verdict.h"

/* Each one to three lines; one that says why there is none. */
void verdict_text_print(FILE *out, const struct profile *profile, const struct summary *summary);

#endif
