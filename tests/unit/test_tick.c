/* Both ways of looking at threads, on a child whose threads sleep, spin, stop and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/collect/memory_ranges.h"
#include "profiler/collect/proc_task.h"
#include "profiler/collect/tick.h"

enum { MAX_LOOKS = 64, MARK = 0x5eed };

struct child {
    pid_t pid;
    pid_t spinner, sleeper; /* tids; the main thread waits for a byte */
    int to_child;
};

static pid_t own_tid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

static void *spin(void *ret_tid)
{
    __atomic_store_n((pid_t *)ret_tid, own_tid(), __ATOMIC_SEQ_CST);
    for (;;)
        __asm__ volatile("");
    return NULL;
}

static void *sleep_long(void *ret_tid)
{
    const struct timespec long_time = {.tv_sec = 1000};

    __atomic_store_n((pid_t *)ret_tid, own_tid(), __ATOMIC_SEQ_CST);
    for (;;)
        nanosleep(&long_time, NULL);
    return NULL;
}

static _Noreturn void run_child(int from_parent, int to_parent)
{
    pid_t tids[2] = {0};
    pthread_t threads[2];
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (pthread_create(&threads[0], NULL, spin, &tids[0]) != 0 ||
        pthread_create(&threads[1], NULL, sleep_long, &tids[1]) != 0)
        _exit(1);
    while (__atomic_load_n(&tids[0], __ATOMIC_SEQ_CST) == 0 ||
           __atomic_load_n(&tids[1], __ATOMIC_SEQ_CST) == 0)
        usleep(1000);
    usleep(50000); /* the sleeper sleeps by now */
    if (write(to_parent, tids, sizeof tids) != (ssize_t)sizeof tids)
        _exit(1);
    if (read(from_parent, &byte, 1) < 0)
        _exit(1);
    _exit(0);
}

static struct child start_child(void)
{
    struct child child;
    pid_t tids[2];
    int in[2];
    int out[2];

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    child.pid = fork();
    if (child.pid == 0)
        run_child(in[0], out[1]);
    close(in[0]);
    close(out[1]);
    child.to_child = in[1];
    assert_int_equal(read(out[0], tids, sizeof tids), (ssize_t)sizeof tids);
    close(out[0]);
    child.spinner = tids[0];
    child.sleeper = tids[1];
    usleep(20000); /* its main thread waits by now */
    return child;
}

static void end_child(const struct child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->to_child);
}

struct looks {
    struct tick_look look[MAX_LOOKS];
    uint8_t top[MAX_LOOKS][8]; /* of its stack: the view does not last */
    size_t count;
};

static void take(const struct tick_backend *backend, struct tick *tick, struct looks *looks)
{
    struct tick_look look;

    while (backend->next(tick, &look)) {
        assert_true(looks->count < MAX_LOOKS);
        if (look.sample.stack_size_bytes >= 8)
            memcpy(looks->top[looks->count], look.sample.stack, 8);
        looks->look[looks->count++] = look;
    }
}

static void make_pass(const struct tick_backend *backend, struct tick *tick, bool all,
                      struct looks *ret_looks)
{
    struct error err = {0};
    int more;

    ret_looks->count = 0;
    do {
        more = backend->pass(tick, all, &err);
        if (more < 0)
            fail_msg("pass: %s", err.message);
        take(backend, tick, ret_looks);
    } while (more > 0);
}

/* The child has three threads; ThreadSanitizer may have some of its own there. */
static void check_all_threads(const struct looks *looks)
{
#ifdef __SANITIZE_THREAD__
    assert_true(looks->count >= 3);
#else
    assert_int_equal(looks->count, 3);
#endif
}

static const struct tick_look *find(const struct looks *looks, pid_t tid)
{
    for (size_t i = 0; i < looks->count; i++)
        if (looks->look[i].tid == tid)
            return &looks->look[i];
    return NULL;
}

/* NULL: it cannot be had here. */
static struct tick *open_backend(const struct tick_backend *backend)
{
    const struct tick_options options = {.children = true};
    struct error err = {0};
    struct tick *tick = NULL;

    if (backend->open(&options, &tick, &err) < 0) {
        print_message("%s: %s\n", backend->name, err.message);
        return NULL;
    }
    return tick;
}

/* BPF as on kernels before 6.7. */
static int open_iterator(const struct tick_options *options, struct tick **ret_tick, struct error *err)
{
    struct tick_options older = *options;

    older.only_iterator = true;
    return tick_bpf.open(&older, ret_tick, err);
}

static struct tick_backend tick_iterator;

/* What tells whether, and how far, the rest of its stack can be read. */
static void check_stack_bounds(const struct child *child, const struct tick_look *look)
{
    struct memory_ranges ranges = {0};
    struct memory_range range;
    struct proc_schedstat schedstat;

    assert_int_equal(proc_read_schedstat(child->pid, look->tid, &schedstat), 0);
    assert_int_equal(look->switches_in, schedstat.switches_in);
    assert_true(look->switches_in > 0);
    assert_true(memory_ranges_find(&ranges, child->pid, look->sample.stack_address, &range));
    assert_int_equal(look->stack_end, range.end);
    memory_ranges_finish(&ranges);
}

static void check_sleeper(const struct child *child, const struct tick_look *look)
{
    struct proc_schedstat schedstat;

    assert_non_null(look);
    assert_int_equal(look->pid, child->pid);
    assert_int_equal(look->state, TICK_BLOCKED);
    assert_int_equal(look->stack, TICK_STACK_WHOLE);
    assert_true(look->syscall == SYS_clock_nanosleep || look->syscall == SYS_nanosleep);
    assert_true(look->start_time_ns > 0);
    assert_true(registers_has(&look->sample.registers, REGISTER_IP));
    assert_true(registers_has(&look->sample.registers, REGISTER_RSP));
    assert_true(look->sample.stack_size_bytes >= 256);
    assert_true(look->sample.stack_size_bytes <= 16384);
    assert_int_equal(look->sample.stack_address, look->sample.registers.value[REGISTER_RSP]);
    assert_int_equal(proc_read_schedstat(child->pid, child->sleeper, &schedstat), 0);
    assert_int_equal(look->on_cpu_ns, schedstat.on_cpu_ns);
    assert_int_equal(look->runnable_ns, schedstat.runnable_ns);
    assert_true(look->voluntary_switches >= 1);
    check_stack_bounds(child, look);
}

static void check_spinner(const struct tick_look *look)
{
    assert_non_null(look);
    assert_true(look->state == TICK_RUNNING || look->state == TICK_RUNNABLE || look->state == TICK_AWAKE);
    assert_true(look->on_cpu_ns > 0);
    if (look->state != TICK_RUNNABLE)
        assert_int_equal(look->stack, TICK_STACK_NONE);
}

static void looks_at_threads(void **state)
{
    const struct tick_backend *backend = *state;
    struct child child = start_child();
    struct tick *tick = open_backend(backend);
    struct looks looks;

    if (tick == NULL) {
        end_child(&child);
        skip();
    }
    assert_int_equal(backend->add_process(tick, child.pid), 0);
    assert_int_equal(backend->add_process(tick, child.pid), 0); /* once is enough */
    make_pass(backend, tick, true, &looks);
    check_all_threads(&looks);
    check_sleeper(&child, find(&looks, child.sleeper));
    check_spinner(find(&looks, child.spinner));
    assert_int_equal(find(&looks, child.pid)->syscall, SYS_read);
    assert_true(find(&looks, child.pid)->time_ns <= clock_now_ns());

    /* Only what moves is given out again; all of them when asked for, and then without a new stack. */
    make_pass(backend, tick, false, &looks);
    assert_null(find(&looks, child.sleeper));
    check_spinner(find(&looks, child.spinner));
    make_pass(backend, tick, true, &looks);
    check_all_threads(&looks);
    assert_true(find(&looks, child.sleeper)->unchanged);
    assert_false(find(&looks, child.spinner)->unchanged);
    backend->close(tick);
    end_child(&child);
}

static void a_stopped_thread_is_stopped(void **state)
{
    const struct tick_backend *backend = *state;
    struct child child = start_child();
    struct tick *tick = open_backend(backend);
    struct looks looks;

    if (tick == NULL) {
        end_child(&child);
        skip();
    }
    backend->add_process(tick, child.pid);
    make_pass(backend, tick, true, &looks);
    kill(child.pid, SIGSTOP);
    waitpid(child.pid, NULL, WUNTRACED);
    usleep(50000);
    make_pass(backend, tick, false, &looks);
    check_all_threads(&looks);
    for (size_t i = 0; i < looks.count; i++) {
        assert_int_equal(looks.look[i].state, TICK_STOPPED);
        assert_false(looks.look[i].unchanged);
    }
    make_pass(backend, tick, false, &looks);
    assert_int_equal(looks.count, 0);
    backend->close(tick);
    end_child(&child);
}

static void ends_are_told_with_the_last_counters(void **state)
{
    const struct tick_backend *backend = *state;
    struct child child = start_child();
    struct tick *tick = open_backend(backend);
    struct looks looks;
    uint64_t start_time_ns;
    uint64_t on_cpu_ns;

    if (tick == NULL) {
        end_child(&child);
        skip();
    }
    backend->add_process(tick, child.pid);
    make_pass(backend, tick, true, &looks);
    start_time_ns = find(&looks, child.spinner)->start_time_ns;
    on_cpu_ns = find(&looks, child.spinner)->on_cpu_ns;
    end_child(&child);
    make_pass(backend, tick, false, &looks);
    check_all_threads(&looks);
    for (size_t i = 0; i < looks.count; i++)
        assert_int_equal(looks.look[i].state, TICK_ENDED);
    assert_int_equal(find(&looks, child.spinner)->start_time_ns, start_time_ns);
    assert_true(find(&looks, child.spinner)->on_cpu_ns >= on_cpu_ns);
    backend->remove_process(tick, child.pid);
    make_pass(backend, tick, true, &looks);
    assert_int_equal(looks.count, 0);
    backend->close(tick);
}

static void stacks_can_be_left_out(void **state)
{
    const struct tick_backend *backend = *state;
    struct child child = start_child();
    struct tick *tick = open_backend(backend);
    struct looks looks;

    if (tick == NULL) {
        end_child(&child);
        skip();
    }
    backend->add_process(tick, child.pid);
    backend->set_stack_share(tick, 0);
    make_pass(backend, tick, true, &looks);
    assert_int_equal(find(&looks, child.sleeper)->state, TICK_BLOCKED);
    assert_int_equal(find(&looks, child.sleeper)->stack, TICK_STACK_LEFT_OUT);
    /* It is still owed one. */
    backend->set_stack_share(tick, 1);
    make_pass(backend, tick, false, &looks);
    check_sleeper(&child, find(&looks, child.sleeper));
    assert_true(backend->cpu_ns(tick) > 0);
    backend->close(tick);
    end_child(&child);
}

static void a_process_that_is_gone_is_no_error(void **state)
{
    const struct tick_backend *backend = *state;
    struct child child = start_child();
    struct tick *tick = open_backend(backend);
    struct looks looks;

    end_child(&child);
    if (tick == NULL)
        skip();
    assert_int_equal(backend->add_process(tick, child.pid), 0);
    make_pass(backend, tick, true, &looks);
    assert_int_equal(looks.count, 0);
    backend->remove_process(tick, child.pid);
    backend->remove_process(tick, child.pid + 1);
    backend->close(tick);
    backend->close(NULL);
}

#define WITH(backend, function)                                                                              \
    {                                                                                                        \
        .name = #backend ": " #function, .test_func = (function), .initial_state = (void *)&(backend)        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(tick_proc, looks_at_threads),
        WITH(tick_bpf, looks_at_threads),
        WITH(tick_iterator, looks_at_threads),
        WITH(tick_proc, a_stopped_thread_is_stopped),
        WITH(tick_bpf, a_stopped_thread_is_stopped),
        WITH(tick_iterator, a_stopped_thread_is_stopped),
        WITH(tick_proc, ends_are_told_with_the_last_counters),
        WITH(tick_bpf, ends_are_told_with_the_last_counters),
        WITH(tick_iterator, ends_are_told_with_the_last_counters),
        WITH(tick_proc, stacks_can_be_left_out),
        WITH(tick_bpf, stacks_can_be_left_out),
        WITH(tick_iterator, stacks_can_be_left_out),
        WITH(tick_proc, a_process_that_is_gone_is_no_error),
        WITH(tick_bpf, a_process_that_is_gone_is_no_error),
        WITH(tick_iterator, a_process_that_is_gone_is_no_error),
    };

    tick_iterator = tick_bpf;
    tick_iterator.name = "bpf iterator";
    tick_iterator.open = open_iterator;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
