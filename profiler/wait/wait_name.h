/* What a thread that left its CPU waits for, told from the kernel functions it is blocked in. Pure.
 *
 *   const char *leaf_first[] = {"schedule", "do_sys_poll", "__x64_sys_poll", "do_syscall_64"};
 *   wait_from_kernel_frames(leaf_first, 4, &name);     // WAIT_OTHER, "[wait: poll]"
 *
 * System calls are known by the kernel's entry functions, `__x64_sys_NAME` and its like
 * (arch/x86/include/asm/syscall_wrapper.h). */
#ifndef STALLGRAPH_WAIT_WAIT_NAME_H
#define STALLGRAPH_WAIT_WAIT_NAME_H

#include <stddef.h>

#include "profiler/model/wait.h"

enum { WAIT_TEXT_BYTES = 224 }; /* the longest name of a unix socket, its owner and a tag */

struct wait_name {
    enum wait_kind kind;
    char text[WAIT_TEXT_BYTES]; /* "[wait: poll]" */
};

/* count = 0, or frames that tell nothing, gives "[wait: syscall]". */
void wait_from_kernel_frames(const char *const *names, size_t count, struct wait_name *ret_name);

/* Same, from the system call's own name; NULL = unknown. */
void wait_from_syscall_name(const char *syscall, struct wait_name *ret_name);

/* The kind that belongs to a frame's text, such as "[wait: sleep]"; WAIT_OTHER where the text alone does not
 * tell. */
enum wait_kind wait_kind_of_text(const char *text);

#endif
