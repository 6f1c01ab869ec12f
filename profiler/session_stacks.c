#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/session_internal.h"
#include "profiler/wait/syscall_name.h"
#include "profiler/wait/wait_name.h"

enum { SNAPSHOT_STACK_BYTES = TICK_READER_MEMORY_BYTES, SNAPSHOT_TIMEOUT_MS = 100 };

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

uint32_t session_unpermitted_stack(struct session *session, enum thread_state state)
{
    const char *text =
        state == STATE_ON_CPU ? "[on-cpu: stack not permitted]" : "[blocked: stack not permitted]";

    session->has_unpermitted = true;
    return stack_table_push(session->stacks, STACK_EMPTY, session_synthetic_location(session, text));
}

uint32_t session_throttled_stack(struct session *session, uint32_t stack)
{
    uint32_t mark = session_synthetic_location(session, SESSION_THROTTLED);

    if (stack == SPAN_NO_STACK || stack == CALIBRATION_LOST_STACK)
        stack = STACK_EMPTY;
    if (stack != STACK_EMPTY && stack_table_get(session->stacks, stack).frame == mark)
        return stack;
    return stack_table_push(session->stacks, stack, mark);
}

static uint64_t count_unpermitted_spans(const struct session *session, uint32_t thread,
                                        const uint32_t unpermitted[2])
{
    enum session_mode mode = session->options->mode;
    size_t count;
    const struct span *spans = calibration_spans(session->calibration, thread, &count);
    uint64_t sum_ns = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t stack = spans[i].stack;
        struct stack_node node;

        if (stack >= CALIBRATION_LOST_STACK || (mode == SESSION_ON_CPU && spans[i].state != STATE_ON_CPU) ||
            (mode == SESSION_OFF_CPU && spans[i].state == STATE_ON_CPU))
            continue;
        node = stack_table_get(session->stacks, stack);
        /* A wait may stand above it, nothing else. */
        if (stack == unpermitted[0] || stack == unpermitted[1] || node.parent == unpermitted[1])
            sum_ns += spans[i].duration_ns;
    }
    return sum_ns;
}

void session_count_unpermitted(struct session *session)
{
    uint32_t count = process_table_thread_count(session->processes);

    if (!session->has_unpermitted)
        return;
    const uint32_t unpermitted[] = {session_unpermitted_stack(session, STATE_ON_CPU),
                                    session_unpermitted_stack(session, STATE_BLOCKED)};

    for (uint32_t i = 0; i < count; i++)
        session->profile->loss.unpermitted_ns += count_unpermitted_spans(session, i, unpermitted);
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

static bool is_all_mapped(const struct session *session, const struct process *process)
{
    for (size_t i = 0; i < session->unwound.count; i++)
        if (address_space_find(&process->space, session->unwound.addresses[i]) == NULL)
            return false;
    return true;
}

/* Where no records tell what is mapped, an address in nothing that is known has the maps read again. */
static void walk(struct session *session, struct process *process, const struct raw_sample *sample)
{
    const struct unwind_request request = {.sample = sample, .space = &process->space};
    struct target *target = &session->targets.items[process->id];
    uint64_t now_ns;

    session->backend->walk(session->unwinder, &request, &session->unwound);
    if (session->capture != NULL || is_all_mapped(session, process))
        return;
    now_ns = clock_now_ns();
    if (now_ns < target->next_maps_read_ns)
        return;
    target->next_maps_read_ns = now_ns + NS_PER_S;
    session_read_mappings(session, process);
    session->backend->walk(session->unwinder, &request, &session->unwound);
}

uint32_t session_unwind(struct session *session, struct process *process, const struct raw_sample *sample)
{
    uint32_t stack;

    walk(session, process, sample);
    stack = push_user(session, process);
    for (size_t i = sample->kernel_chain_count; i-- > 0;) {
        const struct location location = {.kind = LOCATION_KERNEL, .address = sample->kernel_chain[i]};

        stack =
            stack_table_push(session->stacks, stack, location_table_intern(session->locations, &location));
    }
    return stack;
}

/* As much as is mapped from address upwards, read by a process that can be given up when a page does not
 * answer. */
static size_t read_stack(struct session *session, const struct process *process, uint64_t address)
{
    struct tick_reader *reader = &session->snapshot_reader;
    struct tick_memory memory = {.pid = process->pid, .address = address};
    ssize_t got;

    if (reader->bytes == NULL && tick_reader_start(reader, SNAPSHOT_STACK_BYTES, NULL) < 0)
        return 0;
    memory.size_bytes = memory_ranges_bytes_from(&session->targets.items[process->id].ranges, process->pid,
                                                 address, SNAPSHOT_STACK_BYTES);
    got = tick_reader_read_memory(reader, &memory, 0, SNAPSHOT_TIMEOUT_MS);
    if ((got == -ETIMEDOUT || got == -EPIPE) && tick_reader_restart(reader, NULL) < 0)
        tick_reader_stop(reader);
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
    struct raw_sample sample = {.pid = process->pid, .tid = tid};
    const struct unwind_request request = {.sample = &sample, .space = &process->space};
    struct proc_schedstat schedstat;
    struct proc_syscall syscall;
    struct wait_name wait;
    uint32_t stack;

    if (proc_read_schedstat(process->pid, tid, &schedstat) == 0 &&
        proc_read_syscall(process->pid, tid, &syscall) == 0 && !syscall.running && syscall.sp != 0) {
        sample.stack_size_bytes = read_stack(session, process, syscall.sp);
        sample.stack = session->snapshot_reader.bytes;
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
