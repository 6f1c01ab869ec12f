/* The "dwarf" unwinder against programs that print what stands on their stacks
 * (tests/workloads/unwind_targets.c), and against backtrace(3) in this process. */
#define UNW_LOCAL_ONLY
#include <execinfo.h>
#include <libunwind.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/base/clock.h"
#include "profiler/unwind/stack_rest.h"
#include "profiler/unwind/unwinder.h"
#include "tests/unit/unwind_child.h"

enum {
    STACK_BYTES = 65528, /* the most that perf copies */
    LIBC_FRAMES = 4,     /* read(2), its caller; __libc_start_main and _start above what calls main */
    ANY_NUMBER = -1,
    SKIPPED = 77,
};

static struct child child;
static struct unwound_stack stack;
static char workload_dir[512];

struct fixture {
    struct binary_table *binaries;
    struct unwinder *unwinder;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    fixture->binaries = binary_table_create();
    fixture->unwinder = unwind_libunwind.create(fixture->binaries);
    *state = fixture;
    return fixture->unwinder == NULL;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    child_end(&child);
    unwind_libunwind.destroy(fixture->unwinder);
    binary_table_destroy(fixture->binaries);
    free(fixture);
    return 0;
}

static bool has_build(const char *build)
{
    char path[600];

    snprintf(path, sizeof path, "%s/unwind_targets_%s", workload_dir, build);
    return access(path, X_OK) == 0;
}

static void stop_in(struct fixture *fixture, const char *build, const char *mode, const char *argument)
{
    char path[600];

    snprintf(path, sizeof path, "%s/unwind_targets_%s", workload_dir, build);
    assert_true(child_start(&child, path, mode, argument));
    assert_true(child_stop(&child));
    assert_true(child_read_maps(&child, fixture->binaries));
}

static void walk(struct fixture *fixture, size_t stack_bytes, unwind_read_memory read_memory)
{
    struct unwind_request request = {
        .sample = &child.sample, .space = &child.space, .read_memory = read_memory, .read_context = &child};

    assert_true(child_take_sample(&child, stack_bytes));
    unwind_libunwind.walk(fixture->unwinder, &request, &stack);
}

static void print_stack(const char *build, const char *mode)
{
    print_message("%s %s: end %d, %zu frames, %zu known\n", build, mode, stack.end, stack.count,
                  child.truth_count);
    for (size_t i = 0; i < stack.count && i < 40; i++)
        print_message("  %#" PRIx64 "\n", stack.addresses[i]);
    for (size_t i = 0; i < child.truth_count && i < 40; i++)
        print_message("  known %#" PRIx64 "\n", child.truth[i]);
}

/* A return address minus 1; what a signal interrupted, and the restorer below it, as they are. */
static uint64_t look_up_address(size_t i)
{
    int interrupted = child.interrupted;

    return child.truth[i] - (interrupted < 0 || ((int)i != interrupted && (int)i != interrupted - 1));
}

/* How many of the program's own frames are in the stack, in order. */
static size_t count_known_frames(void)
{
    size_t known = 0;

    for (size_t i = 0; i < stack.count && known < child.truth_count; i++)
        if (stack.addresses[i] == look_up_address(known))
            known++;
    return known;
}

static void check_whole(const char *build, const char *mode, int others)
{
    bool whole = stack.end == UNWIND_REACHED_START && count_known_frames() == child.truth_count &&
                 (others == ANY_NUMBER || stack.count == child.truth_count + (size_t)others);

    if (!whole)
        print_stack(build, mode);
    assert_true(whole);
    assert_int_equal(stack.addresses[0], child.sample.registers.value[REGISTER_IP]);
}

static void check_build(struct fixture *fixture, const char *build)
{
    static const struct {
        const char *mode;
        int others; /* frames besides the program's own */
    } modes[] = {
        {"plain", ANY_NUMBER}, /* qsort's */
        {"signal", LIBC_FRAMES},     {"altstack", LIBC_FRAMES},
        {"null", LIBC_FRAMES + 1},   /* the caller of address 0 */
        {"jit", LIBC_FRAMES + 1},    /* the caller of the JIT code */
        {"thread", LIBC_FRAMES - 1}, /* clone3 */
        {"deep", LIBC_FRAMES},
    };

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        stop_in(fixture, build, modes[i].mode, "100");
        /* The alternate stack alone is in the copy: the rest is read as from a blocked thread, below. */
        if (strcmp(modes[i].mode, "altstack") == 0) {
            walk(fixture, STACK_BYTES, NULL);
            if (stack.end != UNWIND_COPY_ENDED)
                print_stack(build, modes[i].mode);
            assert_int_equal(stack.end, UNWIND_COPY_ENDED);
        } else {
            walk(fixture, STACK_BYTES, NULL);
            check_whole(build, modes[i].mode, modes[i].others);
        }
        child_end(&child);
    }
}

static void test_every_build(void **state)
{
    static const char *const builds[] = {"O2",         "O0",     "frames",   "no_pie",      "static",
                                         "static_pie", "no_hdr", "stripped", "debug_frame", "debug_frame_gz"};

    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++)
        check_build(*state, builds[i]);
    if (has_build("lld"))
        check_build(*state, "lld");
    else
        print_message("not run: there is no lld\n");
}

static int read_child(void *context, uint64_t address, void *bytes, size_t size)
{
    const struct child *of = context;
    struct iovec local = {.iov_base = bytes, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)address, .iov_len = size};

    return process_vm_readv(of->pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

static void test_alternate_stack_with_memory(void **state)
{
    stop_in(*state, "O2", "altstack", NULL);
    walk(*state, 4096, read_child);
    check_whole("O2", "altstack", LIBC_FRAMES);
}

static void test_copy_that_is_too_short(void **state)
{
    size_t whole;

    stop_in(*state, "O2", "big", "4");
    walk(*state, STACK_BYTES, NULL);
    assert_int_equal(stack.end, UNWIND_COPY_ENDED);
    assert_in_range(count_known_frames(), 3, child.truth_count - 1);

    walk(*state, 4096, read_child);
    check_whole("O2", "big", LIBC_FRAMES);
    whole = stack.count;

    /* The copy may end with exactly the word that is needed: each word more gives the same frames or one
     * more. */
    for (size_t size = 8; size < 2048; size += 8) {
        walk(*state, size, NULL);
        assert_int_equal(stack.end, UNWIND_COPY_ENDED);
        assert_in_range(stack.count, 1, whole);
    }
}

struct fetches {
    size_t count, bytes;
    uint8_t window[STACK_REST_FETCH_BYTES];
};

static ssize_t fetch_from_child(void *context, uint64_t address, size_t size_bytes, const uint8_t **ret_bytes)
{
    struct fetches *fetches = context;

    fetches->count++;
    fetches->bytes += size_bytes;
    *ret_bytes = fetches->window;
    return read_child(&child, address, fetches->window, size_bytes) == 0 ? (ssize_t)size_bytes : -EFAULT;
}

static uint64_t end_of_stack(void)
{
    char path[64];
    char line[1024];
    uint64_t found = 0;
    uint64_t start, end;
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%d/maps", child.pid);
    maps = fopen(path, "re");
    assert_non_null(maps);
    while (found == 0 && fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && child.sample.stack_address >= start &&
            child.sample.stack_address < end)
            found = end;
    fclose(maps);
    return found;
}

/* The walk that a copy of every size leads to: where it is too short the rest is asked for, else nothing is. */
static void test_rest_continues_a_short_copy(void **state)
{
    static const char *const modes[] = {"big", "deep"};
    static const size_t copies[] = {64, 4096, 16384, STACK_BYTES};
    struct fixture *fixture = *state;
    static struct fetches fetches;

    for (size_t i = 0; i < 8; i++) {
        struct stack_rest rest = {.fetch = fetch_from_child, .context = &fetches};
        const struct unwind_request request = {.sample = &child.sample,
                                               .space = &child.space,
                                               .read_memory = stack_rest_read,
                                               .read_context = &rest};
        bool too_short;

        stop_in(fixture, "O2", modes[i / 4], i < 4 ? "4" : "1500");
        walk(fixture, copies[i % 4], NULL);
        too_short = stack.end == UNWIND_COPY_ENDED;
        rest.end = end_of_stack();
        fetches.count = 0;
        fetches.bytes = 0;
        stack_rest_begin(&rest, &child.sample);
        unwind_libunwind.walk(fixture->unwinder, &request, &stack);
        check_whole("O2", modes[i / 4], LIBC_FRAMES);
        assert_int_equal(fetches.bytes, rest.fetched_bytes);
        assert_int_equal(too_short, fetches.count > 0);
        assert_in_range(fetches.count, 0, 10);
        child_end(&child);
    }
}

static void test_last_word_of_the_copy(void **state)
{
    size_t size = STACK_BYTES;
    struct fixture *fixture = *state;
    struct unwind_request request = {.sample = &child.sample, .space = &child.space};

    stop_in(fixture, "O2", "thread", NULL);
    walk(fixture, size, NULL);
    check_whole("O2", "thread", LIBC_FRAMES - 1);
    /* The smallest copy that is enough ends with the return address into clone3. */
    for (size = child.sample.stack_size_bytes; size >= 8; size -= 8) {
        child.sample.stack_size_bytes = size;
        unwind_libunwind.walk(fixture->unwinder, &request, &stack);
        if (stack.end != UNWIND_REACHED_START)
            break;
    }
    assert_int_equal(stack.end, UNWIND_COPY_ENDED);
    {
        uint64_t last;

        memcpy(&last, child.stack + size, sizeof last);
        child.sample.stack_size_bytes = size + 8;
        unwind_libunwind.walk(fixture->unwinder, &request, &stack);
        assert_int_equal(stack.end, UNWIND_REACHED_START);
        assert_int_equal(stack.addresses[stack.count - 1], last - 1);
    }
}

static void test_chain_continues_a_short_copy(void **state)
{
    struct fixture *fixture = *state;
    static uint64_t chain[256];
    struct unwind_request request = {.sample = &child.sample, .space = &child.space};
    struct unwound_stack *whole = malloc(sizeof *whole);

    stop_in(fixture, "frames", "deep", "60");
    walk(fixture, STACK_BYTES, NULL);
    check_whole("frames", "deep", LIBC_FRAMES);
    *whole = stack;
    /* The kernel's chain has all but read(2)'s caller, whose frame libc did not link. */
    chain[0] = whole->addresses[0];
    for (size_t i = 2; i < whole->count; i++)
        chain[i - 1] = whole->addresses[i] + 1;

    child.sample.stack_size_bytes = 2000;
    unwind_libunwind.walk(fixture->unwinder, &request, &stack);
    assert_int_equal(stack.end, UNWIND_COPY_ENDED);
    assert_in_range(stack.count, 4, whole->count - 4);

    child.sample.user_chain = chain;
    child.sample.user_chain_count = whole->count - 1;
    unwind_libunwind.walk(fixture->unwinder, &request, &stack);
    assert_int_equal(stack.end, UNWIND_REACHED_START);
    assert_int_equal(stack.count, whole->count);
    assert_memory_equal(stack.addresses, whole->addresses, whole->count * sizeof *whole->addresses);

    /* A chain that breaks off before the first function did not reach it. */
    child.sample.user_chain_count -= 2;
    unwind_libunwind.walk(fixture->unwinder, &request, &stack);
    assert_int_equal(stack.end, UNWIND_COPY_ENDED);
    assert_int_equal(stack.count, whole->count - 2);
    free(whole);
}

static void test_missing_registers(void **state)
{
    struct fixture *fixture = *state;
    struct unwind_request request = {.sample = &child.sample, .space = &child.space};

    stop_in(fixture, "O0", "thread", NULL);
    walk(fixture, STACK_BYTES, NULL);
    check_whole("O0", "thread", LIBC_FRAMES - 1);

    /* Without rbp, a function that is found through it has no caller; a guess (0) would have gone on to
     * nonsense. */
    child.sample.registers.known &= ~(UINT32_C(1) << REGISTER_RBP);
    unwind_libunwind.walk(fixture->unwinder, &request, &stack);
    assert_int_equal(stack.end, UNWIND_NO_RULE);
    assert_in_range(stack.count, 1, 3);

    child.sample.registers.known = 0;
    unwind_libunwind.walk(fixture->unwinder, &request, &stack);
    assert_int_equal(stack.end, UNWIND_NO_REGISTERS);
    assert_int_equal(stack.count, 0);
}

static void test_nonsense_ends_truthfully(void **state)
{
    struct fixture *fixture = *state;
    struct unwind_request request = {.sample = &child.sample, .space = &child.space};

    stop_in(fixture, "O2", "plain", NULL);
    walk(fixture, STACK_BYTES, NULL);
    check_whole("O2", "plain", ANY_NUMBER);

    memset(child.stack, 0x41, sizeof child.stack);
    unwind_libunwind.walk(fixture->unwinder, &request, &stack);
    assert_int_equal(stack.end, UNWIND_BAD_STACK);
    assert_int_equal(stack.count, 1);

    address_space_clear(&child.space);
    unwind_libunwind.walk(fixture->unwinder, &request, &stack);
    assert_int_not_equal(stack.end, UNWIND_REACHED_START);
    assert_int_equal(stack.count, 1);
}

/* Two processes of the same and of different programs, walked in turn by one unwinder. */
static void test_processes_in_turn(void **state)
{
    static const char *const builds[] = {"O2", "frames", "O2"};
    static struct child children[3];
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 3; i++) {
        stop_in(fixture, builds[i], "deep", i == 0 ? "5" : "9");
        children[i] = child;
        memset(&child, 0, sizeof child);
    }
    for (size_t round = 0; round < 9; round++) {
        child = children[round % 3];
        walk(fixture, STACK_BYTES, NULL);
        check_whole(builds[round % 3], "deep", LIBC_FRAMES);
    }
    for (size_t i = 0; i < 3; i++) {
        child = children[i];
        child_end(&child);
    }
}

/* Stops at each of the next instructions of the child. Returns how many of the stacks were whole, and in
 * *ret_in_binary how many began in the binary. */
static size_t step_and_walk(struct fixture *fixture, size_t max_steps, unwind_read_memory read_memory,
                            uint32_t binary, size_t *ret_in_binary)
{
    size_t kept = child.truth_count - 1;
    size_t whole = 0;
    int status;

    assert_int_equal(write(child.to_child, "x", 1), 1);
    /* The first frame is that of block_here, which returns; the others stay. */
    memmove(child.truth, child.truth + 1, kept * sizeof *child.truth);
    child.truth_count = kept;
    *ret_in_binary = 0;
    for (size_t steps = 0; steps < max_steps; steps++) {
        const struct mapping *mapping;

        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child.tid, NULL, NULL), 0);
        assert_int_equal(waitpid(child.tid, &status, __WALL), child.tid);
        assert_true(WIFSTOPPED(status));
        walk(fixture, 16384, read_memory);
        mapping = address_space_find(&child.space, stack.addresses[0]);
        *ret_in_binary += mapping != NULL && mapping->binary == binary;
        if (stack.end == UNWIND_REACHED_START && count_known_frames() == kept)
            whole++;
        else if (steps - whole < 5)
            print_stack("O2", "steps");
    }
    return whole;
}

/* Prologues, epilogues, PLT stubs, the loader, the vDSO, leaf functions. */
static void test_every_instruction(void **state)
{
    enum { STEPS = 8000 };
    struct fixture *fixture = *state;
    size_t whole;
    size_t in_vdso;

    stop_in(fixture, "O2", "steps", NULL);
    whole = step_and_walk(fixture, STEPS, NULL, binary_table_vdso(fixture->binaries)->id, &in_vdso);
    print_message("%zu of %d instructions whole, %zu of them in the vDSO\n", whole, STEPS, in_vdso);
    assert_int_equal(whole, STEPS);
    assert_int_not_equal(in_vdso, 0);
}

/* Where a frame is not set up yet, or taken down, the code itself tells, if it can be read. */
static void test_every_instruction_of_jit_code(void **state)
{
    enum { STEPS = 400 };
    struct fixture *fixture = *state;
    size_t whole;
    size_t in_jit;

    stop_in(fixture, "O2", "jit_steps", NULL);
    whole = step_and_walk(fixture, STEPS, read_child,
                          binary_table_jit(fixture->binaries, (uint32_t)child.pid)->id, &in_jit);
    print_message("%zu of %d instructions whole, %zu of them in JIT code\n", whole, STEPS, in_jit);
    assert_int_equal(whole, STEPS);
    assert_in_range(in_jit, 100, STEPS);
}

/* Not a check: the cost, warm, of stacks of about 10 and 30 frames. */
static void test_cost(void **state)
{
    static const char *const depths[] = {"3", "23"};
    enum { ROUNDS = 3000 };

    for (size_t i = 0; i < 2; i++) {
        struct fixture *fixture = *state;
        struct unwind_request request = {.sample = &child.sample, .space = &child.space};
        uint64_t start;

        stop_in(fixture, "O2", "deep", depths[i]);
        walk(fixture, STACK_BYTES, NULL);
        start = clock_self_cpu_ns();
        for (int round = 0; round < ROUNDS; round++)
            unwind_libunwind.walk(fixture->unwinder, &request, &stack);
        print_message("%zu frames: %.2f us a stack\n", stack.count,
                      (double)(clock_self_cpu_ns() - start) / ROUNDS / 1000);
        child_end(&child);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_build, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_alternate_stack_with_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copy_that_is_too_short, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rest_continues_a_short_copy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_last_word_of_the_copy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_chain_continues_a_short_copy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_registers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nonsense_ends_truthfully, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_processes_in_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_instruction, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_instruction_of_jit_code, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cost, set_up, tear_down),
    };
    ssize_t length = readlink("/proc/self/exe", workload_dir, sizeof workload_dir - 32);

    if (length > 0) {
        workload_dir[length] = '\0';
        strcpy(strrchr(workload_dir, '/'), "/tests/workloads");
    }
    if (length <= 0 || !has_build("O2")) {
        printf("skipped: the workload programs are not built\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
