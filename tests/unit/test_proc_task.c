/* proc_task: the texts by table, the readers on children of this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/collect/proc_task.h"

/* ---- texts ---- */

struct stat_case {
    const char *text;
    const char *comm;
    char state;
    pid_t parent;
};

static const struct stat_case stat_cases[] = {
    {"4711 (nginx) S 1 4711 4711 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 3 0 12345 9 9\n", "nginx", 'S', 1},
    {"9 (a) R 1 (b) D 77 1 1 0 -1 64 1 2 3 4 50 60 7 8 20 0 3 0 12345 9\n", "a) R 1 (b", 'D', 77},
    {"9 (a b;c\n\xff\"<&) R 77 1 1 0 -1 64 1 2 3 4 50 60 7 8 20 0 3 0 12345 9\n", "a b;c\n\xff\"<&", 'R', 77},
    {"9 () t 77 1 1 0 -1 64 1 2 3 4 50 60 7 8 20 -19 3 0 12345", "", 't', 77},
    {"9 (()) t 77 1 1 0 -1 64 1 2 3 4 50 60 -7 -8 20 -19 3 0 12345", "()", 't', 77},
};

static void test_stat_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stat_cases / sizeof stat_cases[0]; i++) {
        const struct stat_case *one = &stat_cases[i];
        struct proc_stat stat;

        assert_int_equal(proc_stat_parse(one->text, strlen(one->text), &stat), 0);
        assert_string_equal(stat.comm, one->comm);
        assert_int_equal(stat.state, one->state);
        assert_int_equal(stat.parent_pid, one->parent);
        assert_false(stat.kernel_thread);
        assert_int_equal(stat.user_ticks, 50);
        assert_int_equal(stat.system_ticks, 60);
        assert_int_equal(stat.thread_count, 3);
        assert_int_equal(stat.start_time_ticks, 12345);
    }
}

static void test_stat_of_a_kernel_thread(void **state)
{
    static const char text[] =
        "12 (kworker/u4:0+a-name-that-is-longer-than-any-comm-of-a-process-can-ever-be-in-linux) I "
        "2 0 0 0 -1 69238880 0 0 0 0 0 2 0 0 20 0 1 0 5 0\n";
    struct proc_stat stat;

    (void)state;
    assert_int_equal(proc_stat_parse(text, sizeof text - 1, &stat), 0);
    assert_true(stat.kernel_thread);
    assert_int_equal(strlen(stat.comm), sizeof stat.comm - 1);
}

static void test_stat_refusals(void **state)
{
    static const char *const bad[] = {
        "",
        "9",
        "9 (a",
        "9 (a)",
        "9 (a) ",
        "9 (a) R",
        "9 a R 77 1 1 0 -1 64 1 2 3 4 50 60 7 8 20 0 3 0 12345",
        "x (a) R 77 1 1 0 -1 64 1 2 3 4 50 60 7 8 20 0 3 0 12345",
        "9 (a) R -77 1 1 0 -1 64 1 2 3 4 50 60 7 8 20 0 3 0 12345",
        "9 (a) R 99999999999 1 1 0 -1 64 1 2 3 4 50 60 7 8 20 0 3 0 12345",
        "9 (a) R 77 1 1 0 -1 64 1 2 3 4 50 60 7 8 20 0 3 0",
        "9 (a) R 77 1 1 0 -1 64 1 2 3 4 50 60 7 8 20 0 3 0 99999999999999999999",
    };
    struct proc_stat stat = {.state = 'u'};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(proc_stat_parse(bad[i], strlen(bad[i]), &stat), -EBADMSG);
    assert_int_equal(stat.state, 'u');
}

static void test_schedstat_texts(void **state)
{
    struct proc_schedstat counters = {.on_cpu_ns = 1};

    (void)state;
    assert_int_equal(proc_schedstat_parse("", 0, &counters), -EBADMSG);
    assert_int_equal(proc_schedstat_parse("1 2\n", 4, &counters), -EBADMSG);
    assert_int_equal(proc_schedstat_parse("a b c\n", 6, &counters), -EBADMSG);
    assert_int_equal(counters.on_cpu_ns, 1);
    assert_int_equal(proc_schedstat_parse("123456789 4567 89\n", 18, &counters), 0);
    assert_int_equal(counters.on_cpu_ns, 123456789);
    assert_int_equal(counters.runnable_ns, 4567);
    assert_int_equal(counters.switches_in, 89);
}

static int parse_syscall(const char *text, struct proc_syscall *call)
{
    return proc_syscall_parse(text, strlen(text), call);
}

static void test_syscall_texts(void **state)
{
    static const char *const bad[] = {
        "",
        "x",
        "7\n",
        "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n",
        "7 1 2 3 4 5 6 7 8\n",
        "-1 0x1\n",
        "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x11111111111111111\n",
    };
    struct proc_syscall call = {.number = 42};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(parse_syscall(bad[i], &call), -EBADMSG);
    assert_int_equal(call.number, 42);

    assert_int_equal(parse_syscall("7 0x7ffc 0x1 0xffffffff 0x0 0x0 0x5 0x7ffd4a8 0x7f31c\n", &call), 0);
    assert_false(call.running);
    assert_int_equal(call.number, 7);
    assert_int_equal(call.arguments[0], 0x7ffc);
    assert_int_equal(call.arguments[2], 0xffffffff);
    assert_int_equal(call.arguments[5], 5);
    assert_int_equal(call.sp, 0x7ffd4a8);
    assert_int_equal(call.pc, 0x7f31c);

    assert_int_equal(parse_syscall("-1 0x7ffd4a8 0x7f31c\n", &call), 0);
    assert_int_equal(call.number, -1);
    assert_int_equal(call.arguments[0], 0);
    assert_int_equal(call.sp, 0x7ffd4a8);

    assert_int_equal(parse_syscall("running\n", &call), 0);
    assert_true(call.running);
    assert_int_equal(call.sp, 0);
}

/* ---- children ---- */

/* Sleeps in a loop in the bare system call, so that the number is known; ends with this test. */
static _Noreturn void sleep_until_killed(void)
{
    const struct timespec minute = {.tv_sec = 60};

    for (;;)
        syscall(SYS_nanosleep, &minute, NULL);
}

static pid_t fork_child(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Waits for at most 10 s until the process is seen in this state. */
static bool await_state(pid_t pid, char wanted)
{
    struct proc_stat stat;

    for (int i = 0; i < 1000; i++) {
        if (proc_read_stat(pid, 0, &stat) == 0 && stat.state == wanted)
            return true;
        pause_ms(10);
    }
    return false;
}

static bool contains(const pid_t *ids, size_t count, pid_t wanted)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == wanted)
            return true;
    return false;
}

static bool is_ascending(const pid_t *ids, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (ids[i - 1] >= ids[i])
            return false;
    return true;
}

static void test_syscall_of_a_sleeper(void **state)
{
    pid_t pid = fork_child();
    struct proc_syscall call = {0};
    bool seen = false;

    (void)state;
    if (pid == 0)
        sleep_until_killed();
    assert_true(pid > 0);
    for (int i = 0; i < 1000 && !seen; i++) {
        assert_int_equal(proc_read_syscall(pid, pid, &call), 0);
        seen = !call.running && call.number == SYS_nanosleep;
        if (!seen)
            pause_ms(10);
    }
    end_child(pid);
    assert_true(seen);
    assert_int_not_equal(call.arguments[0], 0);
    assert_int_equal(call.arguments[1], 0);
    assert_int_not_equal(call.sp, 0);
    assert_int_not_equal(call.pc, 0);
}

static void test_odd_comm_live(void **state)
{
    pid_t pid = fork_child();
    struct proc_stat stat;
    char comm[16];

    (void)state;
    if (pid == 0) {
        prctl(PR_SET_NAME, "a) R 1\n(\xff;<&");
        sleep_until_killed();
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(proc_read_comm(pid, pid, comm), 0);
        if (strchr(comm, ')') != NULL)
            break;
        pause_ms(10);
    }
    assert_true(await_state(pid, 'S'));
    assert_int_equal(proc_read_stat(pid, pid, &stat), 0);
    end_child(pid);
    assert_string_equal(comm, "a) R 1\n(\xff;<&");
    assert_string_equal(stat.comm, comm);
    assert_int_equal(stat.state, 'S');
    assert_int_equal(stat.parent_pid, getpid());
}

static void *wait_for_end(void *barrier)
{
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void test_threads_are_listed(void **state)
{
    enum { THREADS = 5 };
    AUTO_FREE pid_t *ids = NULL;
    pthread_barrier_t barrier;
    pthread_t threads[THREADS];
    struct proc_stat stat;
    struct proc_schedstat counters = {0};
    size_t count = 0;

    (void)state;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_end, &barrier), 0);
    pthread_barrier_wait(&barrier);
    assert_int_equal(proc_list_threads(getpid(), &ids, &count), 0);
    assert_int_equal(proc_read_stat(getpid(), getpid(), &stat), 0);
    assert_int_equal(proc_read_schedstat(getpid(), getpid(), &counters), 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);

    assert_in_range(count, THREADS + 1, THREADS + 3); /* a sanitizer may have a thread of its own */
    assert_true(contains(ids, count, getpid()));
    assert_true(is_ascending(ids, count));
    assert_int_equal(stat.thread_count, count);
    assert_true(counters.on_cpu_ns > 0);
}

struct family {
    pid_t grandchild;
    pid_t zombie;
    volatile int ready;
};

/* A child that has a zombie and a live child of its own. */
static _Noreturn void live_as_parent(struct family *family)
{
    pid_t zombie = fork();
    pid_t grandchild;

    if (zombie == 0)
        _exit(0);
    grandchild = fork_child();
    if (grandchild == 0)
        sleep_until_killed();
    family->zombie = zombie;
    family->grandchild = grandchild;
    __atomic_store_n(&family->ready, 1, __ATOMIC_RELEASE);
    sleep_until_killed();
}

static void test_descendants(void **state)
{
    AUTO_FREE pid_t *ids = NULL;
    AUTO_FREE pid_t *all = NULL;
    struct family *family =
        mmap(NULL, sizeof *family, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t self = getpid();
    pid_t child = fork_child();
    size_t count = 0;
    size_t all_count = 0;
    bool zombie_seen;

    (void)state;
    if (child == 0)
        live_as_parent(family);
    for (int i = 0; i < 1000 && __atomic_load_n(&family->ready, __ATOMIC_ACQUIRE) == 0; i++)
        pause_ms(10);
    zombie_seen = await_state(family->zombie, 'Z');
    /* A root that is named twice, one that is another's descendant, and one that does not exist. */
    assert_int_equal(
        proc_list_descendants((pid_t[]){self, family->grandchild, self, INT32_MAX}, 4, &ids, &count), 0);
    assert_int_equal(proc_list_processes(&all, &all_count), 0);
    end_child(child);
    end_child(family->grandchild);
    end_child(family->zombie);

    assert_true(zombie_seen);
    assert_int_equal(count, 3);
    assert_true(is_ascending(ids, count));
    assert_true(contains(ids, count, self));
    assert_true(contains(ids, count, child));
    assert_true(contains(ids, count, family->grandchild));
    assert_true(is_ascending(all, all_count));
    assert_true(contains(all, all_count, family->grandchild));
    assert_true(contains(all, all_count, family->zombie));
    munmap(family, sizeof *family);
}

static void *sleep_as_thread(void *unused)
{
    (void)unused;
    sleep_until_killed();
}

/* /proc shows such a process in state Z, though it serves on in its other threads. */
static void test_process_whose_main_thread_has_ended(void **state)
{
    AUTO_FREE pid_t *ids = NULL;
    pid_t pid = fork_child();
    size_t count = 0;
    int r;

    (void)state;
    if (pid == 0) {
        pthread_t thread;

        pthread_create(&thread, NULL, sleep_as_thread, NULL);
        syscall(SYS_exit, 0);
    }
    assert_true(await_state(pid, 'Z'));
    r = proc_list_descendants(&pid, 1, &ids, &count);
    end_child(pid);
    assert_int_equal(r, 0);
    assert_int_equal(count, 1);
    assert_int_equal(ids[0], pid);
}

static void test_what_is_gone(void **state)
{
    pid_t pid = fork_child();
    pid_t *ids = NULL;
    char *name = NULL;
    size_t count = 0;
    char comm[16];
    struct proc_stat stat;
    struct proc_syscall call;
    struct proc_schedstat counters;

    (void)state;
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    assert_int_equal(proc_read_stat(pid, 0, &stat), -ESRCH);
    assert_int_equal(proc_read_stat(pid, pid, &stat), -ESRCH);
    assert_int_equal(proc_read_stat(getpid(), pid, &stat), -ESRCH);
    assert_int_equal(proc_read_schedstat(pid, pid, &counters), -ESRCH);
    assert_int_equal(proc_read_syscall(pid, pid, &call), -ESRCH);
    assert_int_equal(proc_read_comm(pid, pid, comm), -ESRCH);
    assert_int_equal(proc_read_executable(pid, &name), -ESRCH);
    assert_int_equal(proc_list_threads(pid, &ids, &count), -ESRCH);
    assert_int_equal(proc_list_descendants(&pid, 1, &ids, &count), -ESRCH);
    assert_int_equal(proc_list_descendants(NULL, 0, &ids, &count), -ESRCH);
    assert_int_equal(proc_read_inner_pid(pid), pid);
    assert_null(ids);
    assert_null(name);
}

static void test_executable(void **state)
{
    AUTO_FREE char *name = NULL;
    AUTO_FREE char *kernel_name = NULL;

    (void)state;
    assert_int_equal(proc_read_executable(getpid(), &name), 0);
    assert_string_equal(name, "test_proc_task");
    /* kthreadd has no executable (and may be hidden in a container) */
    if (proc_read_executable(2, &kernel_name) == 0)
        assert_true(strchr(kernel_name, '/') == NULL && kernel_name[0] != '\0');
}

static void test_executable_that_was_deleted(void **state)
{
    AUTO_FREE char *name = NULL;
    char path[] = "/tmp/stallgraph-test-XXXXXX";
    int original = open("/bin/sleep", O_RDONLY | O_CLOEXEC);
    int copy = mkostemp(path, O_CLOEXEC);
    char byte;
    int fds[2];
    pid_t pid;
    int r;

    (void)state;
    assert_true(original >= 0 && copy >= 0);
    assert_true(sendfile(copy, original, NULL, 1 << 24) > 0);
    assert_int_equal(fchmod(copy, 0700), 0);
    close(original);
    close(copy);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork_child();
    if (pid == 0) {
        execl(path, "x", "60", (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 0); /* the other end was closed by the exec */
    close(fds[0]);
    unlink(path);
    r = proc_read_executable(pid, &name);
    end_child(pid);
    assert_int_equal(r, 0);
    assert_string_equal(name, path + strlen("/tmp/"));
}

static _Noreturn void sleep_in_a_pid_namespace(struct family *family)
{
    pid_t pid;

    if (unshare(CLONE_NEWPID) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
        _exit(77);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sleep_until_killed();
    }
    family->grandchild = pid;
    __atomic_store_n(&family->ready, 1, __ATOMIC_RELEASE);
    sleep_until_killed();
}

/* The inner number of the first process in a pid namespace is 1. */
static void test_inner_pid(void **state)
{
    struct family *family =
        mmap(NULL, sizeof *family, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork_child();
    pid_t inner = 0;

    (void)state;
    if (child == 0)
        sleep_in_a_pid_namespace(family);
    for (int i = 0; i < 1000 && __atomic_load_n(&family->ready, __ATOMIC_ACQUIRE) == 0; i++) {
        if (waitpid(child, NULL, WNOHANG) == child) {
            print_message("no pid namespace may be made here\n");
            skip();
        }
        pause_ms(10);
    }
    inner = proc_read_inner_pid(family->grandchild);
    end_child(child);
    end_child(family->grandchild);
    assert_int_equal(proc_read_inner_pid(getpid()), getpid());
    assert_int_equal(inner, 1);
    munmap(family, sizeof *family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat_texts),
        cmocka_unit_test(test_stat_of_a_kernel_thread),
        cmocka_unit_test(test_stat_refusals),
        cmocka_unit_test(test_schedstat_texts),
        cmocka_unit_test(test_syscall_texts),
        cmocka_unit_test(test_syscall_of_a_sleeper),
        cmocka_unit_test(test_odd_comm_live),
        cmocka_unit_test(test_threads_are_listed),
        cmocka_unit_test(test_descendants),
        cmocka_unit_test(test_process_whose_main_thread_has_ended),
        cmocka_unit_test(test_what_is_gone),
        cmocka_unit_test(test_executable),
        cmocka_unit_test(test_executable_that_was_deleted),
        cmocka_unit_test(test_inner_pid),
    };

    /* Grandchildren become this program's own when their parent has ended, so that it can end and collect them. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
