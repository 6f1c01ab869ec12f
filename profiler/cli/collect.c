#include "profiler/cli/collect.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/cli/collect_options.h"
#include "profiler/cli/command.h"
#include "profiler/cli/find_process.h"
#include "profiler/cli/output_file.h"
#include "profiler/cli/report.h"

static volatile sig_atomic_t stop_requested;

struct run {
    struct collect_options options;
    struct command command;
    bool command_released;
    bool progress_shown;
    char *paths[MAX_FORMATS];
};

static void on_stop_signal(int number)
{
    /* The second one ends at once, as if nobody had caught it. */
    if (stop_requested != 0) {
        signal(number, SIG_DFL);
        raise(number);
    }
    stop_requested = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_stop_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write(2), told like any other */
}

static int complain(const struct error *err)
{
    fprintf(stderr, "stallgraph: %s\n", err->message);
    return EXIT_NO_PROFILE;
}

/* <name>_<pid>_<yyyymmdd>_<hhmmss> */
static char *default_base(const char *name, pid_t pid)
{
    AUTO_FREE char *safe = string_copy(name);
    char stamp[32] = "";
    time_t now = time(NULL);
    struct tm tm;

    for (char *at = safe; *at != '\0'; at++)
        if (*at == '/' || (unsigned char)*at <= ' ' || *at == 0x7f)
            *at = '_';
    if (localtime_r(&now, &tm) != NULL)
        strftime(stamp, sizeof stamp, "%Y%m%d_%H%M%S", &tm);
    return string_format("%s_%d_%s", safe, pid, stamp);
}

static void choose_paths(struct run *run, const char *name)
{
    const struct collect_options *options = &run->options;
    AUTO_FREE char *base =
        options->output != NULL ? string_copy(options->output) : default_base(name, options->session.pids[0]);
    size_t length = strlen(base);
    const char *suffix = "";

    if (options->output != NULL && options->format_count == 1) {
        run->paths[0] = string_copy(options->output);
        return;
    }
    if (length > 3 && strcmp(base + length - 3, ".gz") == 0) {
        base[length - 3] = '\0';
        suffix = ".gz";
    }
    for (size_t i = 0; i < options->format_count; i++)
        run->paths[i] = string_format("%s%s%s", base, options->formats[i]->extension,
                                      options->formats[i]->packs_itself ? "" : suffix);
}

static int check_paths(const struct run *run, struct error *err)
{
    for (size_t i = 0; i < run->options.format_count; i++) {
        int r = output_file_check(run->paths[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int find_target(struct run *run, char **ret_name, struct error *err)
{
    struct collect_options *options = &run->options;
    int r = 0;

    if (options->command != NULL) {
        const char *slash = strrchr(options->command[0], '/');

        r = command_start(options->command, &run->command, err);
        if (r < 0)
            return r;
        options->pids[0] = run->command.pid;
        options->session.command = true;
        options->pid_count = 1;
        *ret_name = string_copy(slash != NULL ? slash + 1 : options->command[0]);
    } else {
        if (options->process_name != NULL)
            r = find_process_by_name(options->process_name, &options->pids[0], err);
        if (r < 0)
            return r;
        if (options->process_name != NULL)
            options->pid_count = 1;
        *ret_name = process_display_name(options->pids[0]);
    }
    options->session.pid_count = options->pid_count;
    return 0;
}

static void on_started(void *context, const char *choice, const char *limits)
{
    struct run *run = context;
    struct error err = {0};

    if (!run->options.quiet) {
        fprintf(stderr, "%s\n", choice);
        if (limits[0] != '\0')
            fprintf(stderr, "limited: %s\n", limits);
    }
    if (run->options.command == NULL)
        return;
    if (command_release(&run->command, run->options.command[0], &err) < 0) {
        complain(&err);
        stop_requested = 1;
        return;
    }
    run->command_released = true;
}

static void on_progress(void *context, const struct session_progress *progress)
{
    struct run *run = context;

    if (run->options.quiet || isatty(STDERR_FILENO) == 0)
        return;
    fputc('\r', stderr);
    report_progress(stderr, progress);
    fflush(stderr);
    run->progress_shown = true;
}

static void on_trouble(void *context, const char *why)
{
    struct run *run = context;

    fprintf(stderr, "%sstallgraph: sampling ended early: %s\n", run->progress_shown ? "\n" : "", why);
    run->progress_shown = false;
}

struct export_job {
    const struct exporter *exporter;
    const struct profile *profile;
    const struct export_options *options;
};

static int write_export(void *context, FILE *out, struct error *err)
{
    const struct export_job *job = context;

    return job->exporter->write(job->profile, job->options, out, err);
}

static int write_files(const struct run *run, const struct profile *profile, struct error *err)
{
    const struct collect_options *options = &run->options;

    for (size_t i = 0; i < options->format_count; i++) {
        struct export_job job = {options->formats[i], profile, &options->export};
        int r = output_file_write(run->paths[i], job.exporter->packs_itself, write_export, &job, err);

        if (r == -ENOSPC || r == -EDQUOT)
            return error_say(err, r, "write %s: %s; make room there, or give another place with -o",
                             run->paths[i], strerror(-r));
        if (r < 0)
            return error_say(err, r, "write %s: %s", run->paths[i], strerror(-r));
        if (!options->quiet && strcmp(run->paths[i], "-") != 0)
            fprintf(stderr, "written: %s\n", run->paths[i]);
    }
    return 0;
}

static void set_command_line(struct profile *profile, int argc, char **argv)
{
    AUTO_FREE char *text = string_copy("stallgraph");

    for (int i = 0; i < argc; i++) {
        char *longer = string_format("%s %s", text, argv[i]);

        free(text);
        text = longer;
    }
    profile_set_text(&profile->meta.command_line, text);
}

static int report_and_write(struct run *run, const struct profile *profile)
{
    const struct collect_options *options = &run->options;
    struct error err = {0};
    double loss = report_loss_percent(profile);

    if (run->progress_shown)
        fputc('\n', stderr);
    if (write_files(run, profile, &err) < 0)
        return complain(&err);
    if (!options->quiet)
        summary_mode_print(options->summary, stderr, profile);
    if (options->verbose)
        report_ledger(stderr, profile);
    if (loss > options->max_loss_percent) {
        fprintf(stderr,
                "stallgraph: %.1f %% of the thread time is without a stack, more than --max-loss %g\n", loss,
                options->max_loss_percent);
        return EXIT_LOSS;
    }
    return EXIT_PROFILE;
}

static int sample_and_write(struct run *run, int argc, char **argv)
{
    const struct session_observer observer = {
        .context = run,
        .started = on_started,
        .progress = on_progress,
        .trouble = on_trouble,
        .stop = &stop_requested,
    };
    struct profile *profile = NULL;
    struct error err = {0};
    int code;

    if (session_run(&run->options.session, &observer, &profile, &err) < 0)
        return complain(&err);
    if (run->options.command != NULL && !run->command_released) {
        profile_destroy(profile);
        return EXIT_NO_PROFILE; /* said already: the command could not be executed */
    }
    set_command_line(profile, argc, argv);
    code = report_and_write(run, profile);
    profile_destroy(profile);
    return code;
}

/* The command's own code, unless there is something worse to tell. */
static int finish_command(struct run *run, int code)
{
    int command_code;

    if (!run->command_released) {
        command_abandon(&run->command);
        return EXIT_COMMAND_NO_PROFILE;
    }
    command_code = command_wait(&run->command);
    switch (code) {
    case EXIT_PROFILE:
        return command_code;
    case EXIT_LOSS:
        return command_code != 0 ? command_code : EXIT_COMMAND_LOSS;
    default:
        return EXIT_COMMAND_NO_PROFILE;
    }
}

static int run_collect(struct run *run, int argc, char **argv)
{
    AUTO_FREE char *name = NULL;
    struct error err = {0};
    int code;

    /* A name that is given can be refused before the command is started. */
    if (run->options.output != NULL) {
        choose_paths(run, "");
        if (check_paths(run, &err) < 0)
            return run->options.command != NULL ? (complain(&err), EXIT_COMMAND_NO_PROFILE) : complain(&err);
    }
    if (find_target(run, &name, &err) < 0)
        return run->options.command != NULL ? (complain(&err), EXIT_COMMAND_NO_PROFILE) : complain(&err);
    if (run->options.output == NULL)
        choose_paths(run, name);
    code = run->options.output == NULL && check_paths(run, &err) < 0 ? complain(&err)
                                                                     : sample_and_write(run, argc, argv);
    return run->options.command != NULL ? finish_command(run, code) : code;
}

int collect_main(int argc, char **argv)
{
    struct run *run = memory_zeroed(1, sizeof *run);
    struct error err = {0};
    int code = collect_options_parse(argc, argv, &run->options, &err);

    if (code == OPTION_HELP) {
        option_table_print_help(&collect_option_table, stdout);
        code = fflush(stdout) == 0 ? 0 : EXIT_NO_PROFILE;
    } else if (code < 0) {
        complain(&err);
        code = EXIT_USAGE;
    } else {
        catch_signals();
        code = run_collect(run, argc, argv);
    }
    for (size_t i = 0; i < MAX_FORMATS; i++)
        free(run->paths[i]);
    free(run);
    return code;
}
