#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/session_internal.h"
#include "profiler/wait/syscall_name.h"
#include "profiler/wait/wait_name.h"

enum { SNAPSHOT_STACK_BYTES = 64 * 1024, PAGE_BYTES = 4096 };

uint32_t session_synthetic_location(struct session *session, const char *text)
{
    const struct location location = {
        .kind = LOCATION_SYNTHETIC,
        .owner = string_table_intern(session->profile->strings, text),
    };

    return location_table_intern(session->locations, &location);
}

static uint32_t user_location(struct session *session, const struct process *process, uint64_t address)
{
    const struct mapping *mapping = address_space_find(&process->space, address);
    struct location location = {.kind = LOCATION_UNMAPPED, .owner = process->id, .address = address};

    if (mapping != NULL) {
        const struct binary *binary = binary_table_get(session->binaries, mapping->binary);
        uint64_t offset = address - mapping->start + mapping->file_offset;

        location.kind = LOCATION_USER;
        location.owner = binary->id;
        if (binary->kind == BINARY_JIT || !binary_offset_to_vaddr(binary, offset, &location.address))
            location.address = offset;
    }
    return location_table_intern(session->locations, &location);
}

static uint32_t push_user(struct session *session, const struct process *process)
{
    const struct unwound_stack *unwound = &session->unwound;
    uint32_t stack = STACK_EMPTY;

    session->profile->loss.unwound_stacks++;
    if (unwound->end != UNWIND_REACHED_START) {
        session->profile->loss.truncated_stacks++;
        stack = stack_table_push(session->stacks, stack, session_synthetic_location(session, "[truncated]"));
    }
    for (size_t i = unwound->count; i-- > 0;)
        stack =
            stack_table_push(session->stacks, stack, user_location(session, process, unwound->addresses[i]));
    return stack;
}

uint32_t session_unwind(struct session *session, const struct process *process,
                        const struct raw_sample *sample)
{
    const struct unwind_request request = {.sample = sample, .space = &process->space};
    uint32_t stack;

    session->backend->walk(session->unwinder, &request, &session->unwound);
    stack = push_user(session, process);
    for (size_t i = sample->kernel_chain_count; i-- > 0;) {
        const struct location location = {.kind = LOCATION_KERNEL, .address = sample->kernel_chain[i]};

        stack =
            stack_table_push(session->stacks, stack, location_table_intern(session->locations, &location));
    }
    return stack;
}

/* As much as is mapped from address upwards; what a transfer in page steps got is whole. */
static size_t read_stack(pid_t pid, uint64_t address, uint8_t *bytes, size_t size_bytes)
{
    struct iovec local = {.iov_base = bytes, .iov_len = size_bytes};
    struct iovec remote[SNAPSHOT_STACK_BYTES / PAGE_BYTES + 1];
    unsigned long pages = 0;
    ssize_t got;

    for (size_t done = 0; done < size_bytes; pages++) {
        size_t step = PAGE_BYTES - (address + done) % PAGE_BYTES;

        if (step > size_bytes - done)
            step = size_bytes - done;
        remote[pages] = (struct iovec){.iov_base = (void *)(uintptr_t)(address + done), .iov_len = step};
        done += step;
    }
    got = process_vm_readv(pid, &local, 1, remote, pages, 0);
    return got > 0 ? (size_t)got : 0;
}

static bool same_wait(pid_t pid, pid_t tid, const struct proc_syscall *before, uint64_t switches_in)
{
    struct proc_schedstat schedstat;
    struct proc_syscall now;

    return proc_read_syscall(pid, tid, &now) == 0 && !now.running && now.sp == before->sp &&
           now.pc == before->pc && proc_read_schedstat(pid, tid, &schedstat) == 0 &&
           schedstat.switches_in == switches_in;
}

uint32_t session_snapshot_blocked(struct session *session, const struct process *process, pid_t tid)
{
    AUTO_FREE uint8_t *bytes = memory_zeroed(SNAPSHOT_STACK_BYTES, 1);
    struct raw_sample sample = {.pid = process->pid, .tid = tid, .stack = bytes};
    const struct unwind_request request = {.sample = &sample, .space = &process->space};
    struct proc_schedstat schedstat;
    struct proc_syscall syscall;
    struct wait_name wait;
    uint32_t stack;

    if (proc_read_schedstat(process->pid, tid, &schedstat) == 0 &&
        proc_read_syscall(process->pid, tid, &syscall) == 0 && !syscall.running && syscall.sp != 0) {
        sample.stack_size_bytes = read_stack(process->pid, syscall.sp, bytes, SNAPSHOT_STACK_BYTES);
        sample.stack_address = syscall.sp;
        registers_set(&sample.registers, REGISTER_RSP, syscall.sp);
        registers_set(&sample.registers, REGISTER_IP, syscall.pc);
        if (sample.stack_size_bytes > 0 && same_wait(process->pid, tid, &syscall, schedstat.switches_in)) {
            session->backend->walk(session->unwinder, &request, &session->unwound);
            stack = push_user(session, process);
            if (syscall.number < 0)
                snprintf(wait.text, sizeof wait.text, "[wait: page fault]");
            else
                wait_from_syscall_name(syscall_name(syscall.number), &wait);
            return stack_table_push(session->stacks, stack, session_synthetic_location(session, wait.text));
        }
    }
    return stack_table_push(session->stacks, STACK_EMPTY,
                            session_synthetic_location(session, "[blocked before attach]"));
}
