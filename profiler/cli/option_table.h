/* Options as rows of a table: the one table makes getopt_long's, --help and the error texts.
 *
 *   static const struct option_row rows[] = {
 *       {.name = "duration", .letter = 'd', .argument = "T", .help = "...", .default_text = "...", .parse =
 * parse_duration},
 *   };
 *   r = option_table_parse(&table, argc, argv, &options, &first_operand, &err);
 */
#ifndef STALLGRAPH_CLI_OPTION_TABLE_H
#define STALLGRAPH_CLI_OPTION_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "profiler/base/error.h"

struct option_row {
    const char *name;     /* without the dashes; NULL: has a letter only */
    char letter;          /* 0 = none */
    const char *argument; /* NULL = takes none */
    const char *help;
    const char *default_text; /* NULL = none worth saying */
    /* Takes the value (NULL for a flag) into target. 0, or -EINVAL having said what is wrong with it. */
    int (*parse)(void *target, const char *value, struct error *err);
};

struct option_table {
    const char *subcommand;
    const char *usage; /* the lines behind "usage: " */
    const char *about; /* a paragraph */
    const struct option_row *rows;
    size_t count;
};

/* argv[0] is the subcommand. Sets *ret_operand to the index of the first argument that is no option (argc
 * when none). Options end at
 * "--" and at the first operand. Returns 0, OPTION_HELP when --help was asked for, or -EINVAL with a message
 * for the user. */
enum { OPTION_HELP = 1 };
int option_table_parse(const struct option_table *table, int argc, char **argv, void *target,
                       int *ret_operand, struct error *err);
void option_table_print_help(const struct option_table *table, FILE *out);

#endif
