#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/collect/tick_reader.h"

enum { CAPACITY = 256 * 1024, PAGE = 4096, TIMEOUT_MS = 2000 };

static int start(void **state)
{
    static struct tick_reader reader;

    assert_int_equal(tick_reader_start(&reader, CAPACITY, NULL), 0);
    *state = &reader;
    return 0;
}

static int stop(void **state)
{
    tick_reader_stop(*state);
    return 0;
}

static int open_pipe_with(const char *text, int *ret_write_fd)
{
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], text, strlen(text)), (ssize_t)strlen(text));
    *ret_write_fd = fds[1];
    return fds[0];
}

/* Opened after the process was started, read to their ends, one behind the other; one that fails is done too. */
static void reads_descriptors_one_after_the_other(void **state)
{
    struct tick_reader *reader = *state;
    struct tick_answer answer;
    int write_fds[2];
    int fds[3] = {open_pipe_with("hello", &write_fds[0]), -1, open_pipe_with(" world", &write_fds[1])};

    close(write_fds[0]);
    close(write_fds[1]);
    assert_int_equal(tick_reader_begin(reader, fds, 3), 0);
    assert_int_equal(tick_reader_begin(reader, fds, 3), -EINVAL); /* one question at a time */
    assert_int_equal(tick_reader_end(reader, TIMEOUT_MS, &answer), 0);
    assert_int_equal(answer.done, 3);
    assert_int_equal(answer.filled_bytes, 11);
    assert_memory_equal(reader->bytes, "hello world", 11);
    assert_int_equal(tick_reader_begin(reader, fds, 0), -EINVAL);
    close(fds[0]);
    close(fds[2]);
}

/* Two pages that are there, then nothing. */
static uint8_t *two_pages(void)
{
    uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(munmap(pages + 2 * PAGE, PAGE), 0);
    for (size_t i = 0; i < 2 * PAGE; i++)
        pages[i] = (uint8_t)(i % 251);
    return pages;
}

static void reads_memory_as_far_as_it_is_mapped(void **state)
{
    struct tick_reader *reader = *state;
    uint8_t *pages = two_pages();
    struct tick_memory memory = {.pid = getpid(), .address = (uint64_t)(uintptr_t)(pages + 100)};

    memory.size_bytes = PAGE; /* across the border */
    assert_int_equal(tick_reader_read_memory(reader, &memory, 8, TIMEOUT_MS), PAGE);
    assert_memory_equal(reader->bytes + 8, pages + 100, PAGE);
    memory.size_bytes = TICK_READER_MEMORY_BYTES; /* past the end */
    assert_int_equal(tick_reader_read_memory(reader, &memory, 0, TIMEOUT_MS), 2 * PAGE - 100);
    assert_memory_equal(reader->bytes, pages + 100, 2 * PAGE - 100);
    munmap(pages, 2 * PAGE);
}

static void what_cannot_be_read_is_an_error(void **state)
{
    struct tick_reader *reader = *state;
    struct tick_memory memory = {.pid = getpid(), .address = 16, .size_bytes = 8};
    pid_t gone = fork();

    if (gone == 0)
        _exit(0);
    waitpid(gone, NULL, 0);
    assert_int_equal(tick_reader_read_memory(reader, &memory, 0, TIMEOUT_MS), -EFAULT);
    memory.pid = gone;
    assert_int_equal(tick_reader_read_memory(reader, &memory, 0, TIMEOUT_MS), -ESRCH);
    memory.size_bytes = TICK_READER_MEMORY_BYTES + 1;
    assert_int_equal(tick_reader_read_memory(reader, &memory, 0, TIMEOUT_MS), -EINVAL);
    memory.size_bytes = 8;
    assert_int_equal(tick_reader_read_memory(reader, &memory, CAPACITY - 7, TIMEOUT_MS), -EINVAL);
}

/* What came before it is there, and the answer says which one it is that hangs. */
static void a_read_that_hangs_is_given_up(void **state)
{
    struct tick_reader *reader = *state;
    struct tick_answer answer;
    pid_t first = reader->pid;
    uint64_t begin_ns = clock_now_ns();
    int write_fds[2];
    int fds[2] = {open_pipe_with("first", &write_fds[0]), open_pipe_with("second", &write_fds[1])};

    close(write_fds[0]);
    assert_int_equal(tick_reader_begin(reader, fds, 2), 0);
    assert_int_equal(tick_reader_end(reader, 100, &answer),
                     -ETIMEDOUT); /* the second pipe has a writer still */
    assert_true(clock_now_ns() - begin_ns >= 100 * NS_PER_MS);
    assert_int_equal(answer.done, 1);
    assert_memory_equal(reader->bytes, "first", 5);
    assert_int_equal(tick_reader_restart(reader, NULL), 0);
    assert_int_not_equal(reader->pid, first);
    assert_int_equal(kill(first, 0), -1);
    close(write_fds[1]);
    assert_int_equal(tick_reader_begin(reader, fds + 1, 1), 0);
    assert_int_equal(tick_reader_end(reader, TIMEOUT_MS, &answer), 0);
    assert_int_equal(answer.done, 1);
    close(fds[0]);
    close(fds[1]);
}

static void its_cpu_time_grows_also_over_a_restart(void **state)
{
    struct tick_reader *reader = *state;
    struct tick_memory memory = {
        .pid = getpid(), .address = (uint64_t)(uintptr_t)reader, .size_bytes = sizeof *reader};
    uint64_t before_ns;

    for (int i = 0; i < 100; i++)
        assert_int_equal(tick_reader_read_memory(reader, &memory, 0, TIMEOUT_MS), (ssize_t)sizeof *reader);
    before_ns = tick_reader_cpu_ns(reader);
    assert_true(before_ns > 0);
    assert_int_equal(tick_reader_restart(reader, NULL), 0);
    assert_true(tick_reader_cpu_ns(reader) >= before_ns);
}

/* A profiler that is killed leaves no reader behind. */
static void it_ends_with_its_parent(void **state)
{
    int fds[2];
    pid_t parent;
    pid_t reader_pid = 0;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    parent = fork();
    if (parent == 0) {
        struct tick_reader own = {0};

        if (tick_reader_start(&own, CAPACITY, NULL) < 0 || write(fds[1], &own.pid, sizeof own.pid) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(fds[0], &reader_pid, sizeof reader_pid), (ssize_t)sizeof reader_pid);
    assert_int_equal(kill(reader_pid, 0), 0);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    for (int i = 0; i < 500 && kill(reader_pid, 0) == 0; i++)
        usleep(10000);
    assert_int_equal(kill(reader_pid, 0), -1);
    close(fds[0]);
    close(fds[1]);
}

static void stopping_nothing_is_fine(void **state)
{
    struct tick_reader none = {0};

    (void)state;
    tick_reader_stop(&none);
    assert_int_equal(tick_reader_cpu_ns(&none), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_descriptors_one_after_the_other, start, stop),
        cmocka_unit_test_setup_teardown(reads_memory_as_far_as_it_is_mapped, start, stop),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_an_error, start, stop),
        cmocka_unit_test_setup_teardown(a_read_that_hangs_is_given_up, start, stop),
        cmocka_unit_test_setup_teardown(its_cpu_time_grows_also_over_a_restart, start, stop),
        cmocka_unit_test(it_ends_with_its_parent),
        cmocka_unit_test(stopping_nothing_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
