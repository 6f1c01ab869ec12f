#include "profiler/wait/syscall_name.h"

#include <stddef.h>

static const char *const names[] = {
#include "syscall_names.inc"
};

const char *syscall_name(int64_t number)
{
    if (number < 0 || (uint64_t)number >= sizeof names / sizeof names[0])
        return NULL;
    return names[number];
}
