/* What a person reads on stderr: the progress line and the account of each thread. */
#ifndef STALLGRAPH_CLI_REPORT_H
#define STALLGRAPH_CLI_REPORT_H

#include <stdio.h>

#include "profiler/model/profile.h"
#include "profiler/session.h"

/* "[00:00:12] 14,212 samples, 0 lost", without a line's end. */
void report_progress(FILE *out, const struct session_progress *progress);

/* Every thread's account beside the kernel's own counters. */
void report_ledger(FILE *out, const struct profile *profile);

/* Percent of the reported time that is loss: no stack for it, or not even a state. Less than a tenth of a second in all is
 * none. */
double report_loss_percent(const struct profile *profile);

#endif
