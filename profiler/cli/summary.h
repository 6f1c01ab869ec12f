/* stallgraph summary: what a profile says, read back from its file. */
#ifndef STALLGRAPH_CLI_SUMMARY_H
#define STALLGRAPH_CLI_SUMMARY_H

#include <stdio.h>

#include "profiler/cli/option_table.h"
#include "profiler/cli/summary_mode.h"
#include "profiler/model/profile.h"

struct summary_options {
    const char *path;
    enum summary_mode mode;
};

extern const struct option_table summary_option_table;

/* 0, OPTION_HELP, or -EINVAL with a message. */
int summary_options_parse(int argc, char **argv, struct summary_options *ret_options, struct error *err);

/* argv[0] is the subcommand. Returns the exit code. */
int summary_main(int argc, char **argv);

#endif
