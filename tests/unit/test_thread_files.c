/* What is read of a thread again and again: its status text, its files, and all of them in one go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/collect/memory_ranges.h"
#include "profiler/collect/thread_look.h"

enum { PAGE = 4096, LIMIT = 16384 };

static int parse(const char *text, struct proc_status *ret_status)
{
    return proc_status_parse(text, strlen(text), ret_status);
}

static void status_texts(void **state)
{
    static const char good[] = "Name:\ta\\nState:\\tR\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t7\n"
                               "voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
    struct proc_status status = {.state = 'x'};

    (void)state;
    assert_int_equal(parse("", &status), -EBADMSG);
    assert_int_equal(parse("Name:\tx\nState:", &status), -EBADMSG);
    assert_int_equal(parse("Name:\tx\nState:\tS (sleeping)\n", &status), -EBADMSG);
    assert_int_equal(parse("Name:\tx\nState:\tS\nvoluntary_ctxt_switches:\t1\n", &status), -EBADMSG);
    assert_int_equal(
        parse("Name:\tx\nState:\tS\nvoluntary_ctxt_switches:\t-\nnonvoluntary_ctxt_switches:\t1\n", &status),
        -EBADMSG);
    assert_int_equal(status.state, 'x');
    assert_int_equal(parse(good, &status), 0);
    assert_int_equal(status.state, 'S');
    assert_int_equal(status.voluntary_switches, 150);
    assert_int_equal(status.involuntary_switches, 545);
}

static pid_t start_sleeper(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    usleep(100000);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static struct thread_files open_files(pid_t pid)
{
    char path[32];
    struct thread_files files = {.tid = pid, .schedstat_fd = -1};

    snprintf(path, sizeof path, "/proc/%d/task", pid);
    files.task_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(files.task_fd >= 0);
    return files;
}

static void files_of_a_sleeper(void **state)
{
    pid_t pid = start_sleeper();
    struct thread_files files = open_files(pid);
    struct proc_schedstat opened;
    struct proc_schedstat kept;
    struct proc_syscall call;
    struct proc_stat stat;
    uint64_t start_ns = 0;

    (void)state;
    assert_int_equal(thread_files_schedstat(&files, &opened), 0);
    assert_true(thread_files_keep_open(&files));
    assert_int_equal(thread_files_schedstat(&files, &kept), 0);
    assert_memory_equal(&opened, &kept, sizeof kept);
    assert_int_equal(thread_files_syscall(&files, &call), 0);
    assert_int_equal(call.number, SYS_pause);
    assert_int_equal(thread_files_start_time(&files, &start_ns), 0);
    assert_int_equal(proc_read_stat(pid, pid, &stat), 0);
    assert_int_equal(start_ns, stat.start_time_ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK)));
    end(pid);
    assert_true(thread_files_schedstat(&files, &kept) < 0);
    thread_files_close(&files);
    assert_true(thread_files_schedstat(&files, &kept) < 0);
    assert_true(thread_files_start_time(&files, &start_ns) < 0);
    close(files.task_fd);
}

static void a_look_takes_all(void **state)
{
    static uint8_t stack[LIMIT];
    pid_t pid = start_sleeper();
    struct memory_ranges ranges = {0};
    struct thread_look_request request = {.files = open_files(pid), .pid = pid, .limit_bytes = LIMIT};
    struct thread_look look;

    (void)state;
    thread_look_take(&request, stack, &look);
    assert_int_equal(look.result, 0);
    assert_int_equal(look.syscall_result, -ENODATA); /* not asked for */
    assert_int_equal(look.status.state, 'S');
    assert_true(look.schedstat.switches_in > 0);

    /* Without its mapping's bounds: to the end of the page. */
    request.want_stack = true;
    thread_look_take(&request, stack, &look);
    assert_int_equal(look.syscall_result, 0);
    assert_false(look.moved);
    assert_int_equal(look.stack_bytes, PAGE - look.syscall.sp % PAGE);

    assert_true(memory_ranges_find(&ranges, pid, look.syscall.sp, &request.stack_range));
    thread_look_take(&request, stack, &look);
    assert_true(look.stack_bytes > 0);
    assert_true((uint64_t)look.stack_bytes <= request.stack_range.end - look.syscall.sp);
    assert_int_equal(look.stack_bytes, memory_ranges_bytes_from(&ranges, pid, look.syscall.sp, LIMIT));

    request.memory_refused = true;
    thread_look_take(&request, stack, &look);
    assert_int_equal(look.stack_bytes, 0);
    assert_int_equal(look.syscall_result, 0);
    end(pid);
    thread_look_take(&request, stack, &look);
    assert_true(look.result < 0);
    close(request.files.task_fd);
    memory_ranges_finish(&ranges);
}

/* Never past the mapping's end, also where another one follows. */
static void ranges_end_where_mappings_do(void **state)
{
    uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t at = (uint64_t)(uintptr_t)pages;
    struct memory_ranges ranges = {0};

    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + 2 * PAGE, PAGE, PROT_READ), 0); /* makes it a mapping of its own */
    assert_int_equal(memory_ranges_bytes_from(&ranges, getpid(), at + 2 * PAGE - 10, 1000), 10);
    assert_int_equal(memory_ranges_bytes_from(&ranges, getpid(), at + PAGE, 100), 100);
    assert_int_equal(memory_ranges_bytes_from(&ranges, getpid(), 16, 1 << 20), PAGE - 16);
    memory_ranges_finish(&ranges);
    munmap(pages, 3 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_texts),
        cmocka_unit_test(files_of_a_sleeper),
        cmocka_unit_test(a_look_takes_all),
        cmocka_unit_test(ranges_end_where_mappings_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
