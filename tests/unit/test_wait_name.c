#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "profiler/wait/syscall_name.h"
#include "profiler/wait/wait_name.h"

static void expect(const char *const *frames, size_t count, enum wait_kind kind, const char *text)
{
    struct wait_name name;

    wait_from_kernel_frames(frames, count, &name);
    assert_string_equal(name.text, text);
    assert_int_equal(name.kind, kind);
    assert_int_equal(wait_kind_of_text(name.text), kind);
}

#define EXPECT(kind, text, ...)                                                                              \
    expect((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),  \
           kind, text)

static void test_system_calls(void **state)
{
    (void)state;
    EXPECT(WAIT_OTHER, "[wait: poll]", "schedule", "do_sys_poll", "__x64_sys_poll", "do_syscall_64");
    EXPECT(WAIT_SLEEP, "[wait: sleep]", "do_nanosleep", "__x64_sys_clock_nanosleep", "do_syscall_64");
    EXPECT(WAIT_OTHER, "[wait: epoll]", "ep_poll", "__x64_sys_epoll_wait");
    EXPECT(WAIT_LOCK, "[wait: futex]", "futex_wait", "__x64_sys_futex");
    EXPECT(WAIT_OTHER, "[wait: child]", "kernel_clone", "__x64_sys_vfork");
    EXPECT(WAIT_NETWORK, "[wait: recvfrom]", "tcp_recvmsg", "__x64_sys_recvfrom");
    EXPECT(WAIT_OTHER, "[wait: read]", "schedule", "anon_pipe_read", "vfs_read", "ksys_read",
           "do_syscall_64");
    EXPECT(WAIT_NETWORK, "[wait: recvfrom]", "tcp_recvmsg", "__sys_recvfrom", "do_syscall_64");
    EXPECT(WAIT_OTHER, "[wait: read]", "__ia32_sys_read");
}

static void test_page_fault_inside_a_system_call(void **state)
{
    (void)state;
    EXPECT(WAIT_DISK, "[wait: page fault]", "folio_wait_bit", "exc_page_fault", "asm_exc_page_fault",
           "copy_to_user", "__x64_sys_read");
}

static void test_nothing_to_tell_from(void **state)
{
    (void)state;
    EXPECT(WAIT_OTHER, "[wait: syscall]", "[kernel]", "[kernel]");
    expect(NULL, 0, WAIT_OTHER, "[wait: syscall]");
}

static void test_syscall_numbers(void **state)
{
    (void)state;
    assert_string_equal(syscall_name(SYS_poll), "poll");
    assert_string_equal(syscall_name(SYS_futex), "futex");
    assert_null(syscall_name(-1));
    assert_null(syscall_name(1 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system_calls),
        cmocka_unit_test(test_page_fault_inside_a_system_call),
        cmocka_unit_test(test_nothing_to_tell_from),
        cmocka_unit_test(test_syscall_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
