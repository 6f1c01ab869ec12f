#include "profiler/wait/wait_channel.h"

#include <stdio.h>
#include <string.h>

/* Where each system call sleeps, by the beginning of the function's name: its end differs between compilers
 * (".constprop.0", ".isra.0") and kernels. */
static const char *const calls_by_function[][2] = {
    {"hrtimer_nanosleep", "clock_nanosleep"},
    {"do_nanosleep", "clock_nanosleep"},
    {"common_nsleep", "clock_nanosleep"},
    {"futex_", "futex"},
    {"do_futex", "futex"},
    {"ep_poll", "epoll_wait"},
    {"do_epoll_wait", "epoll_wait"},
    {"poll_schedule_timeout", "poll"},
    {"do_sys_poll", "poll"},
    {"do_poll", "poll"},
    {"do_select", "pselect6"},
    {"do_wait", "wait4"},
    {"kernel_wait4", "wait4"},
    {"inet_csk_accept", "accept"},
    {"do_accept", "accept"},
    {"sigsuspend", "rt_sigsuspend"},
    {"do_sigtimedwait", "rt_sigtimedwait"},
    {"io_cqring_wait", "io_uring_enter"},
    {"io_uring", "io_uring_enter"},
    {"do_semtimedop", "semtimedop"},
    {"flock_lock_inode", "flock"},
    {"locks_lock_inode_wait", "flock"},
};

static const char *const fault_functions[] = {"folio_wait", "__folio_lock", "filemap_fault",
                                              "handle_userfault", "do_swap_page"};

void wait_from_channel(const char *function, struct wait_name *ret_name)
{
    if (function == NULL || function[0] == '\0') {
        wait_from_kernel_frames(NULL, 0, ret_name);
        return;
    }
    for (size_t i = 0; i < sizeof calls_by_function / sizeof calls_by_function[0]; i++) {
        if (strncmp(function, calls_by_function[i][0], strlen(calls_by_function[i][0])) == 0) {
            wait_from_syscall_name(calls_by_function[i][1], ret_name);
            return;
        }
    }
    for (size_t i = 0; i < sizeof fault_functions / sizeof fault_functions[0]; i++) {
        if (strncmp(function, fault_functions[i], strlen(fault_functions[i])) == 0) {
            *ret_name = (struct wait_name){.kind = WAIT_DISK, .text = "[wait: page fault]"};
            return;
        }
    }
    /* "__x64_sys_pause" and its like. */
    wait_from_kernel_frames(&function, 1, ret_name);
    if (strcmp(ret_name->text, "[wait: syscall]") == 0)
        snprintf(ret_name->text, sizeof ret_name->text, "[wait: %.64s]", function);
}
