#include "profiler/collect/thread_look.h"

#include <errno.h>

#include "profiler/base/clock.h"
#include "profiler/collect/process_memory.h"

static bool is_awake_or_gone(char state)
{
    return state == 'R' || state == 'Z' || state == 'X';
}

static ssize_t read_stack(const struct thread_look_request *request, uint64_t sp, uint8_t *stack)
{
    enum { PAGE_BYTES = 4096 };
    const struct memory_range *range = &request->stack_range;
    uint64_t bytes = sp >= range->start && sp < range->end ? range->end - sp : PAGE_BYTES - sp % PAGE_BYTES;

    if (sp == 0 || request->memory_refused)
        return 0;
    return process_memory_read(request->pid, sp, stack,
                               bytes < request->limit_bytes ? (size_t)bytes : request->limit_bytes);
}

/* A thread that used no CPU time in between was where it was all the time. */
static bool has_moved(const struct thread_files *files, const struct proc_schedstat *before)
{
    struct proc_schedstat now;

    return thread_files_schedstat(files, &now) < 0 || now.on_cpu_ns != before->on_cpu_ns ||
           now.switches_in != before->switches_in;
}

void thread_look_take(const struct thread_look_request *request, uint8_t *stack, struct thread_look *ret_look)
{
    struct thread_look look = {.time_ns = clock_now_ns(), .syscall_result = -ENODATA};

    look.result = thread_files_schedstat(&request->files, &look.schedstat);
    if (look.result == 0)
        look.result = thread_files_status(&request->files, &look.status);
    if (look.result == 0 && request->want_stack && !is_awake_or_gone(look.status.state)) {
        look.syscall_result = thread_files_syscall(&request->files, &look.syscall);
        if (look.syscall_result == 0 && !look.syscall.running)
            look.stack_bytes = read_stack(request, look.syscall.sp, stack);
        look.moved = look.syscall.running || has_moved(&request->files, &look.schedstat);
    }
    *ret_look = look;
}
