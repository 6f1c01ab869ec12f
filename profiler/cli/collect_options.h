/* What the command line of `stallgraph collect` says. */
#ifndef STALLGRAPH_CLI_COLLECT_OPTIONS_H
#define STALLGRAPH_CLI_COLLECT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "exporters/exporter.h"
#include "profiler/cli/option_table.h"
#include "profiler/cli/summary_mode.h"
#include "profiler/session.h"
#include "profiler/wait/idle_rule.h"

enum { MAX_PIDS = 1024, MAX_FORMATS = 8 };

struct collect_options {
    pid_t pids[MAX_PIDS];
    size_t pid_count;
    const char *process_name;
    char **command; /* behind "--"; NULL = none; borrowed from argv */
    const struct exporter *formats[MAX_FORMATS];
    size_t format_count;
    const char *idle_rules[IDLE_RULES_MAX_EXPRESSIONS];
    const char *busy_rules[IDLE_RULES_MAX_EXPRESSIONS];
    const char *output; /* NULL = made from the target's name */
    struct session_options session;
    struct export_options export;
    enum summary_mode summary;
    double max_loss_percent;
    bool quiet;
    bool verbose;
};

extern const struct option_table collect_option_table;

/* 0, OPTION_HELP, or -EINVAL with a message. */
int collect_options_parse(int argc, char **argv, struct collect_options *ret_options, struct error *err);

#endif
