#include "profiler/cli/option_table.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"

/* getopt_long's value of a row: its letter, or this and its index. */
enum { LONG_ONLY = 256, HELP_VALUE = 255, HELP_COLUMN = 30, HELP_WIDTH = 100 };

static int row_value(const struct option_table *table, size_t index)
{
    return table->rows[index].letter != 0 ? table->rows[index].letter : LONG_ONLY + (int)index;
}

static const struct option_row *row_of_value(const struct option_table *table, int value)
{
    for (size_t i = 0; i < table->count; i++)
        if (row_value(table, i) == value)
            return &table->rows[i];
    return NULL;
}

static void make_getopt(const struct option_table *table, char *short_options, struct option *long_options)
{
    size_t longs = 0;

    *short_options++ = '+'; /* options end at the first operand */
    *short_options++ = ':'; /* a missing argument is told apart */
    for (size_t i = 0; i < table->count; i++) {
        const struct option_row *row = &table->rows[i];

        if (row->letter != 0) {
            *short_options++ = row->letter;
            if (row->argument != NULL)
                *short_options++ = ':';
        }
        if (row->name != NULL)
            long_options[longs++] =
                (struct option){row->name, row->argument != NULL ? required_argument : no_argument, NULL,
                                row_value(table, i)};
    }
    long_options[longs] = (struct option){"help", no_argument, NULL, HELP_VALUE};
    *short_options = '\0';
}

static int refuse(const struct option_table *table, struct error *err)
{
    return error_hint(err, "see stallgraph %s --help", table->subcommand);
}

static int take_value(const struct option_table *table, const struct option_row *row, void *target,
                      const char *value, struct error *err)
{
    struct error why = {0};
    int r = row->parse(target, value, &why);

    if (r == 0)
        return 0;
    if (row->name != NULL)
        error_say(err, r, "--%s: %s", row->name, why.message);
    else
        error_say(err, r, "-%c: %s", row->letter, why.message);
    return refuse(table, err);
}

int option_table_parse(const struct option_table *table, int argc, char **argv, void *target,
                       int *ret_operand, struct error *err)
{
    AUTO_FREE char *short_options = memory_zeroed(table->count * 2 + 3, 1);
    AUTO_FREE struct option *long_options = memory_zeroed(table->count + 2, sizeof *long_options);
    int value;

    make_getopt(table, short_options, long_options);
    opterr = 0;
    optind = 0; /* glibc: forget what an earlier call left unread */
    while ((value = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
        const struct option_row *row = row_of_value(table, value);
        int r;

        if (value == HELP_VALUE)
            return OPTION_HELP;
        if (value == ':') {
            error_say(err, -EINVAL, "%s: wants an argument", argv[optind - 1]);
            return refuse(table, err);
        }
        if (row == NULL) {
            error_say(err, -EINVAL, "%s: no such option",
                      optopt > 0 && optopt < HELP_VALUE ? (char[]){'-', (char)optopt, 0} : argv[optind - 1]);
            return refuse(table, err);
        }
        r = take_value(table, row, target, optarg, err);
        if (r < 0)
            return r;
    }
    *ret_operand = optind;
    return 0;
}

/* Words of text, wrapped, the first line going on at column. */
static void print_wrapped(FILE *out, const char *text, size_t column, size_t indent)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " ");

        if (column + length > HELP_WIDTH && column > indent) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        fprintf(out, "%.*s", (int)length, text);
        column += length;
        text += length;
        if (*text == ' ') {
            fputc(' ', out);
            column++;
            text++;
        }
    }
    fputc('\n', out);
}

static void print_row(const struct option_row *row, FILE *out)
{
    AUTO_FREE char *letter = row->letter != 0 ? string_format("-%c", row->letter) : string_copy("");
    AUTO_FREE char *name = row->name != NULL ? string_format("--%s", row->name) : string_copy("");
    AUTO_FREE char *left =
        string_format("  %s%s%s%s%s", letter, row->letter != 0 && row->name != NULL ? ", " : "", name,
                      row->argument != NULL ? " " : "", row->argument != NULL ? row->argument : "");
    AUTO_FREE char *right = row->default_text != NULL
                                ? string_format("%s (default: %s)", row->help, row->default_text)
                                : string_copy(row->help);

    fprintf(out, "%-*s", HELP_COLUMN, left);
    if (strlen(left) >= HELP_COLUMN)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    print_wrapped(out, right, HELP_COLUMN, HELP_COLUMN);
}

void option_table_print_help(const struct option_table *table, FILE *out)
{
    fprintf(out, "usage: %s\n\n", table->usage);
    print_wrapped(out, table->about, 0, 0);
    fprintf(out, "\n");
    for (size_t i = 0; i < table->count; i++)
        print_row(&table->rows[i], out);
    print_row(&(const struct option_row){.name = "help", .help = "this page"}, out);
}
