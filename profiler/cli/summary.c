#include "profiler/cli/summary.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "exporters/profile_file.h"
#include "profiler/cli/collect.h"

static int parse_mode(void *target, const char *value, struct error *err)
{
    return summary_mode_parse(value, &((struct summary_options *)target)->mode, err);
}

static const struct option_row rows[] = {
    {.name = "summary",
     .argument = "W",
     .help = "how it is written: text, json",
     .default_text = "text",
     .parse = parse_mode},
};

const struct option_table summary_option_table = {
    .subcommand = "summary",
    .usage = "stallgraph summary FILE [options]",
    .about = "Says what a profile shows: what is wrong, what the threads wait for and in which function, and "
             "which pools "
             "they belong to. FILE is a speedscope file, gzipped or not; - is stdin.",
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

/* Options may stand on both sides of the file. */
int summary_options_parse(int argc, char **argv, struct summary_options *ret_options, struct error *err)
{
    *ret_options = (struct summary_options){0};
    for (;;) {
        int operand;
        int r = option_table_parse(&summary_option_table, argc, argv, ret_options, &operand, err);

        if (r != 0)
            return r;
        if (operand >= argc)
            break;
        if (ret_options->path != NULL) {
            error_say(err, -EINVAL, "%s: only one file can be given", argv[operand]);
            return error_hint(err, "see stallgraph summary --help");
        }
        ret_options->path = argv[operand];
        argc -= operand;
        argv += operand;
    }
    if (ret_options->path != NULL)
        return 0;
    error_say(err, -EINVAL, "no file is given");
    return error_hint(err, "see stallgraph summary --help");
}

static int complain(const struct error *err, int code)
{
    fprintf(stderr, "stallgraph: %s\n", err->message);
    return code;
}

static int finish_stdout(void)
{
    struct error err = {0};

    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return EXIT_PROFILE;
    error_set(&err, -errno, "write to stdout");
    return complain(&err, EXIT_NO_PROFILE);
}

int summary_main(int argc, char **argv)
{
    struct summary_options options;
    struct profile *profile = NULL;
    struct error err = {0};
    int r = summary_options_parse(argc, argv, &options, &err);

    if (r == OPTION_HELP) {
        option_table_print_help(&summary_option_table, stdout);
        return finish_stdout();
    }
    if (r < 0)
        return complain(&err, EXIT_USAGE);
    signal(SIGPIPE, SIG_IGN);
    if (profile_file_read(options.path, &profile, &err) < 0)
        return complain(&err, EXIT_NO_PROFILE);
    summary_mode_print(options.mode, stdout, profile);
    profile_destroy(profile);
    return finish_stdout();
}
