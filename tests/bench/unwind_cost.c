/* What walking one stack costs: by our "dwarf" backend and by plain libunwind, in turns, on the same stopped
 * thread.
 *
 *   unwind_cost program PATH MODE DEPTH BATCHES WALKS
 *   unwind_cost stops TID STOPS
 *
 * The first starts PATH, which prints its own truth as frames.c does. The other stops a thread of a running
 * program again and again.
 *
 * The first prints one line of JSON: the frames, and nanoseconds of CPU time a walk for each batch of walks.
 * The second compares the frames of both at each stop, and prints how many stacks were the same:
 *
 *   {"stops": 200, "same": 200, "different": 0, "longer": 0}
 *
 * libunwind walks with its cache, on the same copy of the stack; its tables are found by libunwind-ptrace,
 * once. Its unw_step goes on by guesses where there is no rule: "longer" counts stacks that ours has whole,
 * and that libunwind leaves earlier. */
#include <libunwind-ptrace.h>
#include <time.h>

#include "profiler/unwind/unwinder.h"
#include "tests/unit/unwind_child.h"

enum { STACK_BYTES = 65536, MAX_FRAMES = 512, MAX_BATCHES = 1000, LONGEST_PAUSE_US = 20000 };

static struct child child;

/* libunwind's walk: memory is the sample's copy, registers are the sample's. */
struct plain {
    unw_addr_space_t space;
    void *ptrace; /* _UPT_create() */
};

static int plain_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *word, int write,
                        void *context)
{
    const struct raw_sample *sample = &child.sample;
    uint64_t offset = address - sample->stack_address;

    if (write != 0)
        return -UNW_EINVAL;
    if (offset <= sample->stack_size_bytes && sample->stack_size_bytes - offset >= sizeof *word) {
        memcpy(word, sample->stack + offset, sizeof *word);
        return 0;
    }
    return _UPT_access_mem(space, address, word, write, context);
}

static int plain_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *word, int write,
                          void *context)
{
    (void)space;
    (void)context;
    if (write != 0 || number < 0 || number >= REGISTER_COUNT)
        return -UNW_EBADREG;
    *word = child.sample.registers.value[number];
    return 0;
}

static bool plain_open(struct plain *plain)
{
    unw_accessors_t accessors = _UPT_accessors;

    accessors.access_mem = plain_memory;
    accessors.access_reg = plain_register;
    plain->space = unw_create_addr_space(&accessors, 0);
    plain->ptrace = _UPT_create(child.tid);
    if (plain->space == NULL || plain->ptrace == NULL)
        return false;
    unw_set_caching_policy(plain->space, UNW_CACHE_GLOBAL);
    return true;
}

static void plain_close(struct plain *plain)
{
    _UPT_destroy(plain->ptrace);
    unw_destroy_addr_space(plain->space);
}

/* Addresses as ours has them: of callers, the return address minus 1. */
static size_t plain_walk(const struct plain *plain, uint64_t *addresses)
{
    unw_cursor_t cursor;
    size_t count = 0;
    bool interrupted = true; /* ip is no return address */

    if (unw_init_remote(&cursor, plain->space, plain->ptrace) < 0)
        return 0;
    do {
        unw_word_t ip;

        if (unw_get_reg(&cursor, UNW_REG_IP, &ip) < 0 || ip == 0)
            break;
        interrupted |= unw_is_signal_frame(&cursor) > 0;
        addresses[count++] = interrupted ? ip : ip - 1;
        interrupted = unw_is_signal_frame(&cursor) > 0;
    } while (count < MAX_FRAMES && unw_step(&cursor) > 0);
    return count;
}

struct bench {
    struct binary_table *binaries;
    struct unwinder *ours;
    struct plain plain;
    struct unwind_request request;
    struct unwound_stack stack;
    uint64_t plain_addresses[MAX_FRAMES];
    size_t plain_count;
};

/* CPU time: the machine may be busy with other things. */
static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void walk_ours(struct bench *bench)
{
    unwind_libunwind.walk(bench->ours, &bench->request, &bench->stack);
}

static void walk_plain(struct bench *bench)
{
    bench->plain_count = plain_walk(&bench->plain, bench->plain_addresses);
}

static double time_walks(struct bench *bench, void (*walk)(struct bench *), int walks)
{
    double begin_ns = now_ns();

    for (int i = 0; i < walks; i++)
        walk(bench);
    return (now_ns() - begin_ns) / walks;
}

static void print_list(const char *name, const double *values, int count)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < count; i++)
        printf("%s%.1f", i > 0 ? ", " : "", values[i]);
    printf("]");
}

static bool is_same(const struct bench *bench)
{
    return bench->stack.count == bench->plain_count &&
           memcmp(bench->stack.addresses, bench->plain_addresses,
                  bench->plain_count * sizeof *bench->plain_addresses) == 0;
}

/* How many of the program's own return addresses are there, in order. */
static size_t known_frames(const struct bench *bench)
{
    size_t known = 0;

    for (size_t i = 0; i < bench->stack.count && known < child.truth_count; i++)
        known += bench->stack.addresses[i] + 1 == child.truth[known];
    return known;
}

/* Starts the program, stops it, and takes its stack. */
static bool prepare(struct bench *bench, const char *path, const char *mode, const char *depth)
{
    if (!child_start(&child, path, mode, depth))
        return false;
    usleep(50000); /* the spinning one has no system call to be waited for */
    if (ptrace(PTRACE_ATTACH, child.tid, NULL, NULL) != 0 || waitpid(child.tid, NULL, __WALL) != child.tid)
        return false;
    bench->binaries = binary_table_create();
    if (!child_read_maps(&child, bench->binaries) || !child_take_sample(&child, STACK_BYTES))
        return false;
    bench->ours = unwind_libunwind.create(bench->binaries);
    bench->request = (struct unwind_request){.sample = &child.sample, .space = &child.space};
    return bench->ours != NULL && plain_open(&bench->plain);
}

static void finish(struct bench *bench)
{
    plain_close(&bench->plain);
    unwind_libunwind.destroy(bench->ours);
    binary_table_destroy(bench->binaries);
}

static int time_program(char **arguments)
{
    static struct bench bench;
    static double ours_ns[MAX_BATCHES];
    static double plain_ns[MAX_BATCHES];
    int batches = atoi(arguments[3]);
    int walks = atoi(arguments[4]);
    double cold_ours_ns;
    double cold_plain_ns;

    if (batches < 1 || batches > MAX_BATCHES || walks < 1 ||
        !prepare(&bench, arguments[0], arguments[1], arguments[2]))
        return 1;
    cold_ours_ns = time_walks(&bench, walk_ours, 1);
    cold_plain_ns = time_walks(&bench, walk_plain, 1);
    for (int i = 0; i < batches; i++) {
        ours_ns[i] = time_walks(&bench, walk_ours, walks);
        plain_ns[i] = time_walks(&bench, walk_plain, walks);
    }
    printf("{\"frames\": %zu, \"whole\": %s, \"known\": %zu, \"known_found\": %zu, ", bench.stack.count,
           bench.stack.end == UNWIND_REACHED_START ? "true" : "false", child.truth_count,
           known_frames(&bench));
    printf("\"plain_frames\": %zu, \"same\": %s, \"cold_ours_ns\": %.0f, \"cold_plain_ns\": %.0f, ",
           bench.plain_count, is_same(&bench) ? "true" : "false", cold_ours_ns, cold_plain_ns);
    print_list("ours_ns", ours_ns, batches);
    printf(", ");
    print_list("plain_ns", plain_ns, batches);
    printf("}\n");
    finish(&bench);
    child_end(&child);
    return 0;
}

static void print_difference(const struct bench *bench)
{
    fprintf(stderr, "ours: end %d\n", bench->stack.end);
    for (size_t i = 0; i < bench->stack.count || i < bench->plain_count; i++)
        fprintf(stderr, "  %12" PRIx64 " %12" PRIx64 "\n",
                i < bench->stack.count ? bench->stack.addresses[i] : 0,
                i < bench->plain_count ? bench->plain_addresses[i] : 0);
}

static int compare_at_stops(pid_t pid, int stops)
{
    static struct bench bench;
    int same = 0;
    int different = 0;
    int longer = 0;

    child.pid = child.tid = pid;
    bench.binaries = binary_table_create();
    bench.ours = unwind_libunwind.create(bench.binaries);
    bench.request = (struct unwind_request){.sample = &child.sample, .space = &child.space};
    if (bench.ours == NULL || !plain_open(&bench.plain) || ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
        return 1;
    for (int i = 0; i < stops; i++) {
        int status;

        usleep((useconds_t)(random() % LONGEST_PAUSE_US));
        if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 || waitpid(pid, &status, __WALL) != pid ||
            !WIFSTOPPED(status))
            return 1;
        if (child_read_maps(&child, bench.binaries) && child_take_sample(&child, STACK_BYTES)) {
            walk_ours(&bench);
            walk_plain(&bench);
            if (is_same(&bench)) {
                same++;
            } else if (bench.stack.end == UNWIND_REACHED_START && bench.stack.count > bench.plain_count) {
                longer++;
            } else {
                different++;
                print_difference(&bench);
            }
        }
        if (ptrace(PTRACE_CONT, pid, NULL, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status)) != 0)
            return 1;
    }
    printf("{\"stops\": %d, \"same\": %d, \"different\": %d, \"longer\": %d}\n", stops, same, different,
           longer);
    return 0; /* the kernel lets the thread go when its tracer ends */
}

int main(int count, char **arguments)
{
    if (count == 7 && strcmp(arguments[1], "program") == 0)
        return time_program(arguments + 2);
    if (count == 4 && strcmp(arguments[1], "stops") == 0)
        return compare_at_stops(atoi(arguments[2]), atoi(arguments[3]));
    fprintf(stderr,
            "usage: unwind_cost program PATH MODE DEPTH BATCHES WALKS | unwind_cost stops PID STOPS\n");
    return 2;
}
