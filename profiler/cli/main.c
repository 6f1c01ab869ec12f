/* stallgraph: see README.md. Each subcommand is a file of its own. */
#include <stdio.h>
#include <string.h>

#include "profiler/cli/collect.h"
#include "profiler/cli/summary.h"

struct subcommand {
    const char *name;
    const char *help;
    int (*main)(int argc, char **argv);
};

static const struct subcommand subcommands[] = {
    {"collect", "record a profile of a running process", collect_main},
    {"summary", "say what a profile shows: what is wrong, what is waited for, and where", summary_main},
};

enum { SUBCOMMAND_COUNT = sizeof subcommands / sizeof subcommands[0] };

static void print_help(FILE *out)
{
    fprintf(
        out,
        "usage: stallgraph SUBCOMMAND [ARG...]\n"
        "       stallgraph --help | --version | SUBCOMMAND --help\n\n"
        "A sampling profiler that shows where a server's threads run, where they wait, and for what.\n\n");
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++)
        fprintf(out, "  %-10s %s\n", subcommands[i].name, subcommands[i].help);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return fflush(stdout) == 0 ? 0 : EXIT_NO_PROFILE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("stallgraph %s\n", STALLGRAPH_VERSION);
        return fflush(stdout) == 0 ? 0 : EXIT_NO_PROFILE;
    }
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++)
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].main(argc - 1, argv + 1);
    fprintf(stderr, "stallgraph: %s: no such subcommand; see stallgraph --help\n", argv[1]);
    return EXIT_USAGE;
}
