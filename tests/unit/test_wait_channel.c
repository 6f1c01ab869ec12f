#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/wait/wait_channel.h"

static void functions_are_told_as_system_calls(void **state)
{
    static const struct {
        const char *function;
        const char *text;
        enum wait_kind kind;
    } cases[] = {
        {"hrtimer_nanosleep", "[wait: sleep]", WAIT_SLEEP},
        {"futex_do_wait", "[wait: futex]", WAIT_LOCK},
        {"ep_poll", "[wait: epoll]", WAIT_OTHER},
        {"poll_schedule_timeout.constprop.0", "[wait: poll]", WAIT_OTHER},
        {"do_wait", "[wait: child]", WAIT_OTHER},
        {"folio_wait_bit_common", "[wait: page fault]", WAIT_DISK},
        {"__x64_sys_pause", "[wait: pause]", WAIT_SLEEP},
        {"some_driver_wait", "[wait: some_driver_wait]", WAIT_OTHER},
        {"", "[wait: syscall]", WAIT_OTHER},
        {NULL, "[wait: syscall]", WAIT_OTHER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wait_name name;

        wait_from_channel(cases[i].function, &name);
        assert_string_equal(name.text, cases[i].text);
        assert_int_equal(name.kind, cases[i].kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_told_as_system_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
