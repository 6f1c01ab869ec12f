/* stat, schedstat and syscall: one line each; status: many. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collect/proc_task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct proc_stat stat;
    struct proc_schedstat counters;
    struct proc_syscall call;
    struct proc_status status;

    if (proc_stat_parse(text, size, &stat) == 0 &&
        (memchr(stat.comm, '\0', sizeof stat.comm) == NULL || stat.parent_pid < 0))
        abort();
    (void)proc_schedstat_parse(text, size, &counters);
    (void)proc_status_parse(text, size, &status);
    if (proc_syscall_parse(text, size, &call) == 0 && call.running && call.number != -1)
        abort();
    return 0;
}
