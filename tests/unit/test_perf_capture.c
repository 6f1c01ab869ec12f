/* Live: a child that sleeps and spins is captured. Skips where perf events are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/base/error.h"
#include "profiler/collect/perf_capture.h"

enum { SKIP = 77, MAX_SYMBOL_BYTES = 128 };

static const uint64_t stack_magic = UINT64_C(0x5ca1ab1e0ddba11d);
static const uint64_t nap_ns = 5 * NS_PER_MS, burn_ns = 5 * NS_PER_MS;
static const uint64_t window_ns = 1 * NS_PER_S;

/* What the child says of itself. */
struct truth {
    volatile uint64_t magic_address; /* on its stack, while it naps */
    volatile uint64_t naps;
};

/* [start, end) of a kernel function; start 0 where kallsyms hides the addresses. */
struct kernel_function {
    uint64_t start, end;
};

struct target {
    pid_t pid;
    struct truth *truth;
    struct kernel_function nanosleep;
};

static void __attribute__((noinline)) nap(struct truth *truth)
{
    volatile uint64_t magic = stack_magic;
    struct timespec pause = {.tv_nsec = (long)nap_ns};
    truth->magic_address = (uint64_t)(uintptr_t)&magic;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    truth->naps += magic == stack_magic;
}

static void __attribute__((noinline)) burn(void)
{
    uint64_t end_ns = clock_now_ns() + burn_ns;
    while (clock_now_ns() < end_ns) {
    }
}

static _Noreturn void run_target(struct truth *truth)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        nap(truth);
        burn();
    }
}

static void target_start(struct target *target)
{
    target->truth =
        mmap(NULL, sizeof *target->truth, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(target->truth, MAP_FAILED);
    target->pid = fork();
    assert_true(target->pid >= 0);
    if (target->pid == 0)
        run_target(target->truth);
    while (target->truth->naps == 0)
        usleep(1000);
}

static void target_end(const struct target *target)
{
    kill(target->pid, SIGKILL);
    waitpid(target->pid, NULL, 0);
    munmap(target->truth, sizeof *target->truth);
}

/* What was seen of the target. */
struct seen {
    uint64_t records, late, latest_ns;
    uint64_t on_cpu, on_cpu_with_stack, on_cpu_with_kernel, on_cpu_foreign;
    uint64_t switches_out, switches_in, wakeups, task_switches;
    uint64_t switch_stacks, with_registers, with_magic, with_kernel_chain, with_syscall, foreign_stacks;
    uint64_t user_chains;
    uint64_t blocked_ns, last_out_ns;
    bool out_without_stack;
    uint64_t stacks_after_switch; /* right after their switch-out */
    uint64_t lost;
    uint64_t elapsed_ns; /* a busy machine stretches the window */
    uint64_t naps_within,
        naps_around; /* the target's own count, started and ended inside or outside of the window */
};

static struct kernel_function find_kernel_function(const char *name)
{
    struct kernel_function found = {0, UINT64_MAX};
    FILE *file = fopen("/proc/kallsyms", "re");
    char symbol[MAX_SYMBOL_BYTES], kind;
    uint64_t address;
    if (file == NULL)
        return found;
    while (fscanf(file, "%lx %c %127s%*[^\n]", &address, &kind, symbol) == 3) {
        if (strcmp(symbol, name) == 0)
            found.start = address;
    }
    rewind(file);
    while (fscanf(file, "%lx %c %127s%*[^\n]", &address, &kind, symbol) == 3) {
        if (address > found.start && address < found.end)
            found.end = address;
    }
    fclose(file);
    return found;
}

static bool has_magic(const struct raw_sample *sample, uint64_t address)
{
    uint64_t value;
    if (address < sample->stack_address ||
        address - sample->stack_address + sizeof value > sample->stack_size_bytes)
        return false;
    memcpy(&value, sample->stack + (address - sample->stack_address), sizeof value);
    return value == stack_magic;
}

static bool chain_has(const struct raw_sample *sample, const struct kernel_function *function)
{
    for (size_t i = 0; i < sample->kernel_chain_count; i++) {
        if (sample->kernel_chain[i] >= function->start && sample->kernel_chain[i] < function->end)
            return true;
    }
    return false;
}

static void see_stack(const struct target *target, const struct raw_sample *sample, struct seen *seen)
{
    seen->switch_stacks++;
    seen->with_registers +=
        registers_has(&sample->registers, REGISTER_IP) && registers_has(&sample->registers, REGISTER_RSP);
    seen->with_kernel_chain += sample->kernel_chain_count > 0;
    seen->user_chains += sample->user_chain_count > 0;
    if (!chain_has(sample, &target->nanosleep))
        return;
    seen->with_syscall++;
    seen->with_magic += has_magic(sample, target->truth->magic_address);
}

static void see(const struct target *target, const struct perf_record *record, struct seen *seen)
{
    seen->records++;
    seen->late += record->time_ns != 0 && record->time_ns < seen->latest_ns;
    seen->latest_ns = record->time_ns;
    switch (record->type) {
    case RECORD_ON_CPU:
        seen->on_cpu_foreign += record->pid != target->pid;
        if (record->pid == target->pid) {
            seen->on_cpu++;
            seen->on_cpu_with_stack += record->sample.stack_size_bytes > 0;
            seen->on_cpu_with_kernel += record->sample.kernel_chain_count > 0;
            seen->user_chains += record->sample.user_chain_count > 0;
        }
        break;
    case RECORD_SWITCH:
        if (record->sched_switch.prev_tid == target->pid) {
            seen->switches_out++;
            seen->out_without_stack = true;
            seen->last_out_ns = record->sched_switch.prev_state == 1 ? record->time_ns : 0;
        }
        if (record->sched_switch.next_tid == target->pid) {
            seen->switches_in++;
            if (seen->last_out_ns != 0)
                seen->blocked_ns += record->time_ns - seen->last_out_ns;
        }
        break;
    case RECORD_WAKEUP:
        seen->wakeups += record->wakeup.tid == target->pid;
        break;
    case RECORD_SWITCH_STACK:
        seen->foreign_stacks += record->pid != target->pid;
        seen->stacks_after_switch += seen->out_without_stack;
        seen->out_without_stack = false;
        if (record->tid == target->pid)
            see_stack(target, &record->sample, seen);
        break;
    case RECORD_TASK_SWITCH:
        seen->task_switches += record->tid == target->pid;
        break;
    case RECORD_LOST:
        seen->lost += record->lost.count;
        break;
    case RECORD_MMAP:
    case RECORD_COMM:
    case RECORD_FORK:
    case RECORD_EXIT:
    case RECORD_OTHER:
        break;
    }
}

static void run_window(struct perf_capture *capture, const struct target *target, struct seen *seen)
{
    struct error err = {0};
    struct perf_record record;
    uint64_t naps_around = target->truth->naps, begin_ns = clock_now_ns();
    if (perf_capture_start(capture, &err) < 0)
        fail_msg("%s", err.message);
    uint64_t naps_within = target->truth->naps;
    uint64_t end_ns = clock_now_ns() + window_ns;
    while (clock_now_ns() < end_ns) {
        perf_capture_wait(capture, 50, -1);
        while (perf_capture_next(capture, &record))
            see(target, &record, seen);
    }
    seen->naps_within = target->truth->naps - naps_within;
    perf_capture_stop(capture);
    seen->naps_around = target->truth->naps - naps_around;
    seen->elapsed_ns = clock_now_ns() - begin_ns;
    while (perf_capture_next(capture, &record))
        see(target, &record, seen);
}

static void say(const struct perf_capture_choice *choice, const struct seen *seen)
{
    print_message(
        "cpu_wide %d cycles %d kernel %d tracepoints %d switch stacks %d filtered %d rings %lu KiB; %s\n",
        choice->cpu_wide, choice->hardware_cycles, choice->kernel_frames, choice->scheduler_events,
        choice->switch_stacks, choice->filtered_in_kernel, choice->ring_bytes / 1024, choice->why_not);
    print_message(
        "  %lu records, %lu late, %lu lost, %lu naps; on-CPU %lu (stack %lu, foreign %lu); out %lu in %lu "
        "woken %lu; switch records %lu\n",
        seen->records, seen->late, seen->lost, seen->naps_within, seen->on_cpu, seen->on_cpu_with_stack,
        seen->on_cpu_foreign, seen->switches_out, seen->switches_in, seen->wakeups, seen->task_switches);
    print_message(
        "  stacks %lu: registers %lu magic %lu kernel %lu nanosleep %lu foreign %lu; chains %lu; blocked "
        "%.3f s\n",
        seen->switch_stacks, seen->with_registers, seen->with_magic, seen->with_kernel_chain,
        seen->with_syscall, seen->foreign_stacks, seen->user_chains, (double)seen->blocked_ns / 1e9);
}

static struct perf_capture_options options_for(const struct target *target)
{
    return (struct perf_capture_options){
        .pids = &target->pid,
        .pid_count = 1,
        .children = true,
        .frequency_hz = 397,
        .on_cpu = true,
        .off_cpu = true,
        .stack_mode = PERF_STACK_COPY,
        .kernel_chain = true,
    };
}

/* Captures a target of its own for the window; where no capture can be had, err says why. */
static int capture(enum perf_stack_mode mode, struct perf_capture_choice *ret_choice, struct seen *ret_seen,
                   struct error *err)
{
    struct target target = {.nanosleep = find_kernel_function("__x64_sys_clock_nanosleep")};
    struct perf_capture *capture = NULL;
    *ret_seen = (struct seen){0};
    target_start(&target);
    struct perf_capture_options options = options_for(&target);
    options.stack_mode = mode;
    int r = perf_capture_open(&options, &capture, err);
    if (r == 0) {
        run_window(capture, &target, ret_seen);
        *ret_choice = *perf_capture_choice(capture);
        say(ret_choice, ret_seen);
        assert_int_equal(perf_capture_bad_records(capture), 0);
    }
    perf_capture_close(capture);
    target_end(&target);
    return r;
}

/* The switches as the tracepoints tell them. */
static void check_exact_times(const struct seen *seen)
{
    assert_int_equal(seen->lost, 0);
    assert_true(seen->switches_out >= seen->naps_within);
    assert_true(seen->wakeups + 1 >= seen->naps_within);
    assert_true(seen->blocked_ns + nap_ns >= seen->naps_within * nap_ns);
    assert_true(seen->blocked_ns <= seen->elapsed_ns);
}

/* One stack a switch-out, each with all that was asked for, and those of naps with what lies on the stack
 * then. */
static void check_switch_stacks(const struct seen *seen)
{
    assert_int_equal(seen->foreign_stacks, 0);
    assert_int_equal(seen->with_registers, seen->switch_stacks);
    assert_int_equal(seen->with_kernel_chain, seen->switch_stacks);
    assert_true(seen->with_syscall + 1 >= seen->naps_within);
    /* A thread that is preempted on its way out of the call is switched out in it once more. */
    assert_true(seen->with_syscall <= seen->naps_around + 1 + (seen->switches_out - seen->naps_within));
    assert_int_equal(seen->with_magic, seen->with_syscall);
}

static void test_cpu_wide(void **state)
{
    struct seen seen;
    struct perf_capture_choice choice;
    struct error err = {0};
    (void)state;
    if (capture(PERF_STACK_COPY, &choice, &seen, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(choice.cpu_wide);
    assert_true(choice.kernel_frames);
    assert_true(choice.ring_bytes > 0);
    assert_true(seen.on_cpu > 0);
    assert_true(seen.on_cpu_with_stack + 1 >= seen.on_cpu); /* the fork's first instants have no user side */
    if (choice.scheduler_events)
        check_exact_times(&seen);
    if (choice.scheduler_events && choice.switch_stacks)
        assert_true(seen.stacks_after_switch + 1 >= seen.switch_stacks);
    if (choice.switch_stacks)
        check_switch_stacks(&seen);
    if (choice.filtered_in_kernel)
        assert_int_equal(seen.on_cpu_foreign, 0);
    assert_true(seen.late * 100 <= seen.records);
}

static void test_chain_mode(void **state)
{
    struct seen seen;
    struct perf_capture_choice choice;
    struct error err = {0};
    (void)state;
    if (capture(PERF_STACK_CHAIN, &choice, &seen, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(seen.on_cpu_with_stack, 0);
    assert_int_equal(seen.with_registers, 0);
    assert_true(seen.user_chains + 1 >= seen.on_cpu + seen.switch_stacks);
    assert_int_equal(seen.with_kernel_chain, seen.switch_stacks);
}

static void test_both_mode(void **state)
{
    struct seen seen;
    struct perf_capture_choice choice;
    struct error err = {0};
    (void)state;
    if (capture(PERF_STACK_BOTH, &choice, &seen, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(seen.on_cpu_with_stack + 1 >= seen.on_cpu);
    assert_true(seen.user_chains + 1 >= seen.on_cpu + seen.switch_stacks);
    if (choice.switch_stacks)
        check_switch_stacks(&seen);
}

/* Runs a test's body in a process with other rights; its failed assertions end that process with a code other
 * than 0. */
static int in_child(void (*take_rights)(void), void (*body)(void))
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        take_rights();
        body();
        fflush(NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* In that process: a plain exit, since cmocka's own would run the rest of the tests there. */
static void require(bool truth, const char *what)
{
    if (truth)
        return;
    print_error("failed: %s\n", what);
    fflush(NULL);
    _exit(1);
}

static void become_nobody(void)
{
    enum { NOBODY = 65534 };
    require(setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "become nobody");
    prctl(PR_SET_DUMPABLE, 1); /* a change of user takes the right to be traced by oneself */
}

static void capture_as_nobody(void)
{
    struct seen seen;
    struct perf_capture_choice choice;
    struct error err = {0};
    if (capture(PERF_STACK_COPY, &choice, &seen, &err) < 0) {
        print_message("%s\n", err.message);
        _exit(SKIP);
    }
    if (choice.cpu_wide) {
        print_message("kernel.perf_event_paranoid lets everybody have CPU-wide events\n");
        _exit(SKIP);
    }
    require(!choice.scheduler_events && !choice.filtered_in_kernel, "per task");
    require(choice.why_not[0] != '\0', "why not");
    require(seen.on_cpu > 0 && seen.on_cpu_with_stack == seen.on_cpu, "on-CPU samples with stacks");
    require(seen.on_cpu_foreign == 0, "no foreign samples");
    require(seen.task_switches >= 2 * seen.naps_within, "switch records");
    require(choice.switch_stacks == (seen.switch_stacks > 0), "switch stacks as said");
}

static void test_per_task(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    int code = in_child(become_nobody, capture_as_nobody);
    if (code == SKIP)
        skip();
    assert_int_equal(code, 0);
}

/* CAP_PERFMON alone: CPU-wide events, but no BPF, so that switch-out stacks come by thread. */
static void keep_perfmon_alone(void)
{
    enum { CAPABILITY_PERFMON = 38 };
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    data[CAPABILITY_PERFMON / 32].effective = data[CAPABILITY_PERFMON / 32].permitted =
        UINT32_C(1) << (CAPABILITY_PERFMON % 32);
    require(syscall(SYS_capset, &header, data) == 0, "drop capabilities");
}

static void capture_without_filter(void)
{
    struct seen seen;
    struct perf_capture_choice choice;
    struct error err = {0};
    if (capture(PERF_STACK_COPY, &choice, &seen, &err) < 0) {
        print_message("%s\n", err.message);
        _exit(SKIP);
    }
    require(choice.cpu_wide && !choice.filtered_in_kernel, "CPU-wide without a filter");
    require(strstr(choice.why_not, "filter") != NULL, "why not");
    require(seen.on_cpu > 0, "on-CPU samples");
    require(choice.switch_stacks && seen.foreign_stacks == 0, "switch stacks by thread");
    require(seen.with_registers == seen.switch_stacks && seen.switch_stacks >= seen.naps_within,
            "whole switch stacks");
}

static void test_without_filter(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    int code = in_child(keep_perfmon_alone, capture_without_filter);
    if (code == SKIP)
        skip();
    assert_int_equal(code, 0);
}

static void test_no_such_process(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    struct target target = {.pid = pid};
    struct perf_capture_options options = options_for(&target);
    struct perf_capture *capture = NULL;
    struct error err = {0};
    assert_int_equal(perf_capture_open(&options, &capture, &err), -ESRCH);
    assert_non_null(strstr(err.message, "no such process"));
}

/* The limits of a process that may sample its own children only. */
static void become_nobody_with_little_memory(void)
{
    struct rlimit limit = {.rlim_cur = 64 * 1024, .rlim_max = 64 * 1024};
    require(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "limit locked memory");
    become_nobody();
}

static void test_little_locked_memory(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    int code = in_child(become_nobody_with_little_memory, capture_as_nobody);
    if (code == SKIP)
        skip();
    assert_int_equal(code, 0);
}

static void become_nobody_with_few_files(void)
{
    struct rlimit limit = {.rlim_cur = 16, .rlim_max = 24};
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit files");
    become_nobody();
}

static void refused_for_files(void)
{
    struct seen seen;
    struct perf_capture_choice choice;
    struct error err = {0};
    int r = capture(PERF_STACK_COPY, &choice, &seen, &err);
    print_message("%s\n", err.message);
    if (r == -EACCES || r == -EPERM)
        _exit(SKIP);
    require(r == -EMFILE, "EMFILE");
    require(strstr(err.message, "file descriptors") != NULL, "how many are needed");
}

static void test_few_files(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    int code = in_child(become_nobody_with_few_files, refused_for_files);
    if (code == SKIP)
        skip();
    assert_int_equal(code, 0);
}

/* Opens CPU-wide events, or says why there are none. */
static bool may_capture(void)
{
    pid_t self = getpid();
    struct target target = {.pid = self};
    struct perf_capture_options options = options_for(&target);
    struct perf_capture *capture = NULL;
    struct error err = {0};
    int r = perf_capture_open(&options, &capture, &err);
    bool cpu_wide = r == 0 && perf_capture_choice(capture)->cpu_wide;
    if (!cpu_wide)
        printf("skipped: %s\n", r < 0 ? err.message : perf_capture_choice(capture)->why_not);
    perf_capture_close(capture);
    return cpu_wide;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_wide),
        cmocka_unit_test(test_chain_mode),
        cmocka_unit_test(test_both_mode),
        cmocka_unit_test(test_per_task),
        cmocka_unit_test(test_without_filter),
        cmocka_unit_test(test_no_such_process),
        cmocka_unit_test(test_little_locked_memory),
        cmocka_unit_test(test_few_files),
    };
    if (!may_capture())
        return SKIP;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
