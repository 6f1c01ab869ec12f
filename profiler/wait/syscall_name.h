/* Names of system calls by number, of the machine this was built for (asm/unistd.h). */
#ifndef STALLGRAPH_WAIT_SYSCALL_NAME_H
#define STALLGRAPH_WAIT_SYSCALL_NAME_H

#include <stdint.h>

/* "poll" for 7 on x86-64; NULL for a number without a name. */
const char *syscall_name(int64_t number);

#endif
