/* How a summary is written. */
#ifndef STALLGRAPH_CLI_SUMMARY_MODE_H
#define STALLGRAPH_CLI_SUMMARY_MODE_H

#include <stdio.h>

#include "profiler/base/error.h"
#include "profiler/model/profile.h"

enum summary_mode { SUMMARY_TEXT, SUMMARY_JSON, SUMMARY_OFF };

/* "text", "json", "none". 0, or -EINVAL with a message. */
int summary_mode_parse(const char *word, enum summary_mode *ret_mode, struct error *err);

void summary_mode_print(enum summary_mode mode, FILE *out, const struct profile *profile);

#endif
