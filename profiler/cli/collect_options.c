#include "profiler/cli/collect_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/clock.h"
#include "profiler/cli/duration.h"

enum { MAX_FREQUENCY_HZ = 10000 };

struct choice {
    const char *word;
    int value;
};

static int choose(const struct choice *choices, size_t count, const char *value, struct error *err)
{
    char words[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(choices[i].word, value) == 0)
            return choices[i].value;
        used +=
            (size_t)snprintf(words + used, sizeof words - used, "%s%s", i > 0 ? ", " : "", choices[i].word);
    }
    return error_say(err, -EINVAL, "\"%s\": must be one of %s", value, words);
}

#define CHOOSE(choices, value, err) choose((choices), sizeof(choices) / sizeof *(choices), (value), (err))

static int parse_pids(void *target, const char *value, struct error *err)
{
    struct collect_options *options = target;
    const char *at = value;

    for (;;) {
        char *end;
        long pid = strtol(at, &end, 10);

        if (end == at || (*end != ',' && *end != '\0') || pid <= 0 || pid > INT32_MAX)
            return error_say(err, -EINVAL, "\"%s\": must be a process id, or several with commas", value);
        if (options->pid_count == MAX_PIDS)
            return error_say(err, -EINVAL, "more than %d process ids", MAX_PIDS);
        options->pids[options->pid_count++] = (pid_t)pid;
        if (*end == '\0')
            return 0;
        at = end + 1;
    }
}

static int parse_name(void *target, const char *value, struct error *err)
{
    struct collect_options *options = target;

    if (value[0] == '\0')
        return error_say(err, -EINVAL, "must not be empty");
    options->process_name = value;
    return 0;
}

static int parse_formats(void *target, const char *value, struct error *err)
{
    struct collect_options *options = target;

    options->format_count = 0;
    while (true) {
        size_t length = strcspn(value, ",");
        char name[32] = "";
        const struct exporter *exporter;

        if (length < sizeof name)
            memcpy(name, value, length);
        exporter = exporter_find(name);
        if (exporter == NULL) {
            char words[128] = "";
            size_t used = 0;

            for (size_t i = 0; exporters[i] != NULL; i++)
                used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i > 0 ? ", " : "",
                                         exporters[i]->name);
            return error_say(err, -EINVAL, "\"%.*s\": must be one of %s", (int)length, value, words);
        }
        for (size_t i = 0; i < options->format_count; i++)
            if (options->formats[i] == exporter)
                return error_say(err, -EINVAL, "\"%s\" stands there twice", name);
        options->formats[options->format_count++] = exporter;
        if (value[length] == '\0')
            return 0;
        value += length + 1;
    }
}

static int parse_output(void *target, const char *value, struct error *err)
{
    if (value[0] == '\0')
        return error_say(err, -EINVAL, "must not be empty");
    ((struct collect_options *)target)->output = value;
    return 0;
}

static int parse_duration(void *target, const char *value, struct error *err)
{
    if (!duration_parse(value, &((struct collect_options *)target)->session.duration_ns))
        return error_say(err, -EINVAL,
                         "\"%s\": must be a time above zero such as 30, 0.5, 200ms, 2m or 00:00:30", value);
    return 0;
}

static int parse_number(const char *value, double low, double high, double *ret_number, struct error *err)
{
    char *end;
    double number = strtod(value, &end);

    if (end == value || *end != '\0' || !(number >= low && number <= high))
        return error_say(err, -EINVAL, "\"%s\": must be a number from %g to %g", value, low, high);
    *ret_number = number;
    return 0;
}

static int parse_frequency(void *target, const char *value, struct error *err)
{
    return parse_number(value, 1, MAX_FREQUENCY_HZ, &((struct collect_options *)target)->session.frequency_hz,
                        err);
}

static int parse_mode(void *target, const char *value, struct error *err)
{
    static const struct choice choices[] = {
        {"wall", SESSION_WALL}, {"on-cpu", SESSION_ON_CPU}, {"off-cpu", SESSION_OFF_CPU}};
    int chosen = CHOOSE(choices, value, err);

    if (chosen >= 0)
        ((struct collect_options *)target)->session.mode = (enum session_mode)chosen;
    return chosen < 0 ? chosen : 0;
}

static int parse_off_cpu(void *target, const char *value, struct error *err)
{
    static const struct choice choices[] = {
        {"auto", SESSION_OFF_CPU_AUTO}, {"tick", SESSION_OFF_CPU_TICK}, {"trace", SESSION_OFF_CPU_TRACE}};
    int chosen = CHOOSE(choices, value, err);

    if (chosen >= 0)
        ((struct collect_options *)target)->session.off_cpu = (enum session_off_cpu)chosen;
    return chosen < 0 ? chosen : 0;
}

static int parse_max_overhead(void *target, const char *value, struct error *err)
{
    return parse_number(value, 0, 10000, &((struct collect_options *)target)->session.max_overhead_percent,
                        err);
}

static int parse_call_graph(void *target, const char *value, struct error *err)
{
    static const struct choice choices[] = {{"auto", SESSION_CALL_GRAPH_AUTO},
                                            {"dwarf", SESSION_CALL_GRAPH_DWARF},
                                            {"fp", SESSION_CALL_GRAPH_FP}};
    int chosen = CHOOSE(choices, value, err);

    if (chosen >= 0)
        ((struct collect_options *)target)->session.call_graph = (enum session_call_graph)chosen;
    return chosen < 0 ? chosen : 0;
}

static int parse_kernel(void *target, const char *value, struct error *err)
{
    static const struct choice choices[] = {
        {"on-cpu", SESSION_KERNEL_ON_CPU}, {"all", SESSION_KERNEL_ALL}, {"none", SESSION_KERNEL_NONE}};
    int chosen = CHOOSE(choices, value, err);

    if (chosen >= 0)
        ((struct collect_options *)target)->session.kernel = (enum session_kernel_frames)chosen;
    return chosen < 0 ? chosen : 0;
}

static int parse_threads(void *target, const char *value, struct error *err)
{
    static const struct choice choices[] = {
        {"pool", THREADS_POOL}, {"each", THREADS_EACH}, {"merge", THREADS_MERGE}};
    int chosen = CHOOSE(choices, value, err);

    if (chosen >= 0)
        ((struct collect_options *)target)->export.tree.threads = (enum thread_grouping)chosen;
    return chosen < 0 ? chosen : 0;
}

static int parse_idle(void *target, const char *value, struct error *err)
{
    static const struct choice choices[] = {
        {"separate", IDLE_SEPARATE}, {"hide", IDLE_HIDE}, {"merge", IDLE_MERGE}};
    int chosen = CHOOSE(choices, value, err);

    if (chosen >= 0)
        ((struct collect_options *)target)->export.tree.idle = (enum idle_mode)chosen;
    return chosen < 0 ? chosen : 0;
}

static int add_rule(const char **rules, size_t *count, const char *value, struct error *err)
{
    struct idle_rules *tried;
    int r = idle_rules_create(&value, 1, NULL, 0, &tried, err);

    if (r < 0)
        return r;
    idle_rules_destroy(tried);
    if (*count == IDLE_RULES_MAX_EXPRESSIONS)
        return error_say(err, -EINVAL, "more than %d of them", IDLE_RULES_MAX_EXPRESSIONS);
    rules[(*count)++] = value;
    return 0;
}

static int parse_idle_rule(void *target, const char *value, struct error *err)
{
    struct collect_options *options = target;

    return add_rule(options->idle_rules, &options->session.idle_rule_count, value, err);
}

static int parse_busy_rule(void *target, const char *value, struct error *err)
{
    struct collect_options *options = target;

    return add_rule(options->busy_rules, &options->session.busy_rule_count, value, err);
}

static int parse_no_children(void *target, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    ((struct collect_options *)target)->session.children = false;
    return 0;
}

static int parse_summary(void *target, const char *value, struct error *err)
{
    return summary_mode_parse(value, &((struct collect_options *)target)->summary, err);
}

static int parse_max_loss(void *target, const char *value, struct error *err)
{
    return parse_number(value, 0, 100, &((struct collect_options *)target)->max_loss_percent, err);
}

static int parse_counts(void *target, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    ((struct collect_options *)target)->session.counts = true;
    return 0;
}

static int parse_quiet(void *target, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    ((struct collect_options *)target)->quiet = true;
    return 0;
}

static int parse_verbose(void *target, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    ((struct collect_options *)target)->verbose = true;
    return 0;
}

static const struct option_row rows[] = {
    {.name = "format",
     .argument = "LIST",
     .help = "speedscope, folded, svg, pprof; comma-separated, one file each",
     .default_text = "speedscope",
     .parse = parse_formats},
    {.name = "output",
     .letter = 'o',
     .argument = "OUT",
     .help = "the file; a base name when there are several formats; - is stdout (one format); a name ending "
             "in .gz is gzipped",
     .default_text = "<name>_<pid>_<yyyymmdd>_<hhmmss> and the format's extension",
     .parse = parse_output},
    {.letter = 'p',
     .argument = "PID[,PID...]",
     .help = "the processes, and their descendants, alive now or forked later; ends when all are gone",
     .parse = parse_pids},
    {.letter = 'n',
     .argument = "NAME",
     .help = "the one process whose comm or executable's base name is NAME",
     .parse = parse_name},
    {.name = "duration",
     .letter = 'd',
     .argument = "T",
     .help = "30, 0.5, 200ms, 30s, 2m, 00:00:30 or dd:hh:mm:ss",
     .default_text = "until Ctrl-C, SIGTERM or the target's exit",
     .parse = parse_duration},
    {.name = "frequency",
     .letter = 'F',
     .argument = "HZ",
     .help = "on-CPU samples a second",
     .default_text = "99",
     .parse = parse_frequency},
    {.name = "mode",
     .argument = "M",
     .help = "wall (everything), on-cpu, off-cpu",
     .default_text = "wall",
     .parse = parse_mode},
    {.name = "off-cpu",
     .argument = "E",
     .help = "how blocked time is taken: auto, tick (looks at blocked threads at its own pace), trace (every "
             "switch)",
     .default_text = "auto",
     .parse = parse_off_cpu},
    {.name = "call-graph",
     .argument = "U",
     .help = "how stacks are walked: auto, dwarf, fp",
     .default_text = "auto",
     .parse = parse_call_graph},
    {.name = "kernel",
     .argument = "W",
     .help = "kernel frames: on-cpu (of threads that run), all, none",
     .default_text = "on-cpu",
     .parse = parse_kernel},
    {.name = "threads",
     .argument = "W",
     .help =
         "in folded, svg and pprof: pool (threads whose names differ only in digits are one), each, merge",
     .default_text = "pool",
     .parse = parse_threads},
    {.name = "idle",
     .argument = "W",
     .help = "in folded, svg and pprof, threads that wait for work: separate (under [idle]), hide, merge "
             "(among the "
             "rest)",
     .default_text = "separate",
     .parse = parse_idle},
    {.name = "idle-rule",
     .argument = "RE",
     .help = "a wait below a function that this regular expression (POSIX extended) matches is idle; may be "
             "given "
             "several times",
     .parse = parse_idle_rule},
    {.name = "busy-rule",
     .argument = "RE",
     .help = "the same for waits that are not idle; it prevails",
     .parse = parse_busy_rule},
    {.name = "no-children",
     .help = "the named processes alone, not their descendants",
     .parse = parse_no_children},
    {.name = "counts", .help = "count every wait exactly: number, mean, percentiles", .parse = parse_counts},
    {.name = "max-overhead",
     .argument = "PERCENT",
     .help = "of one CPU, for the sampler itself: above it fewer stacks are taken, chosen at random, then "
             "fewer ticks made; 0 = no limit",
     .default_text = "2",
     .parse = parse_max_overhead},
    {.name = "summary",
     .argument = "W",
     .help = "what is said at the end, on stderr: text, json, none",
     .default_text = "text",
     .parse = parse_summary},
    {.name = "max-loss",
     .argument = "PERCENT",
     .help = "above this share of time without a stack (and a tenth of a second of it) the exit code is 3",
     .default_text = "5",
     .parse = parse_max_loss},
    {.name = "quiet", .letter = 'q', .help = "no progress line, no summary", .parse = parse_quiet},
    {.name = "verbose",
     .letter = 'v',
     .help = "say what is done, and print each thread's ledger",
     .parse = parse_verbose},
};

const struct option_table collect_option_table = {
    .subcommand = "collect",
    .usage = "stallgraph collect (-p PID[,PID...] | -n NAME | -- COMMAND [ARG...]) [options]",
    .about = "Samples every thread of the target, while it runs and while it is blocked, and writes where "
             "its time went and what it "
             "waited for. The first Ctrl-C ends sampling and writes the files.",
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

static int check(const struct collect_options *options, struct error *err)
{
    int targets = (options->pid_count > 0) + (options->process_name != NULL) + (options->command != NULL);

    if (targets == 0)
        error_say(err, -EINVAL, "nothing to profile: give -p PID, -n NAME or -- COMMAND");
    else if (targets > 1)
        error_say(err, -EINVAL, "only one of -p, -n and -- COMMAND can be given");
    else if (options->output != NULL && strcmp(options->output, "-") == 0 && options->format_count > 1)
        error_say(err, -EINVAL, "-o -: stdout takes one format, not %zu", options->format_count);
    else if (options->output != NULL && strcmp(options->output, "-") == 0 && options->command != NULL)
        error_say(err, -EINVAL, "-o -: stdout belongs to the command");
    else
        return 0;
    return error_hint(err, "see stallgraph collect --help");
}

int collect_options_parse(int argc, char **argv, struct collect_options *ret_options, struct error *err)
{
    int operand;
    int r;

    *ret_options = (struct collect_options){
        .formats = {&exporter_speedscope},
        .format_count = 1,
        .session = {.children = true, .frequency_hz = 99, .max_overhead_percent = 2},
        .max_loss_percent = 5,
    };
    r = option_table_parse(&collect_option_table, argc, argv, ret_options, &operand, err);
    if (r != 0)
        return r;
    if (operand < argc && strcmp(argv[operand - 1], "--") == 0) {
        ret_options->command = &argv[operand];
    } else if (operand < argc) {
        error_say(err, -EINVAL, "%s: not understood", argv[operand]);
        error_hint(err, "a command to run stands behind --");
        return -EINVAL;
    }
    ret_options->session.pids = ret_options->pids;
    ret_options->session.idle_rules = ret_options->idle_rules;
    ret_options->session.busy_rules = ret_options->busy_rules;
    ret_options->session.pid_count = ret_options->pid_count;
    return check(ret_options, err);
}
