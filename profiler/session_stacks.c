#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/session_internal.h"
#include "profiler/unwind/stack_rest.h"
#include "profiler/wait/syscall_name.h"
#include "profiler/wait/wait_name.h"

enum {
    SNAPSHOT_STACK_BYTES = 16 * 1024, /* read before it is known how much is needed */
    MAX_KEPT_WHOLE = 1 << 16,         /* whole stacks of deep ones; then it starts afresh */
};

_Static_assert((int)STACK_REST_FETCH_BYTES <= (int)TICK_READER_MEMORY_BYTES, "a window is read at once");

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

static uint32_t push_kernel(struct session *session, uint32_t stack, const struct raw_sample *sample)
{
    for (size_t i = sample->kernel_chain_count; i-- > 0;) {
        const struct location location = {.kind = LOCATION_KERNEL, .address = sample->kernel_chain[i]};

        stack =
            stack_table_push(session->stacks, stack, location_table_intern(session->locations, &location));
    }
    return stack;
}

uint32_t session_unwind(struct session *session, struct process *process, const struct raw_sample *sample)
{
    walk(session, process, sample);
    return push_kernel(session, push_user(session, process), sample);
}

/* A thread whose stack stays as it is while its count stays the same. */
struct halted {
    struct session *session;
    struct memory_owner owner;
    uint64_t stack_end;
    uint64_t switches_in;
};

enum rest {
    REST_WALKED,
    REST_MOVED, /* the thread has run since */
    REST_UNREADABLE,
};

static ssize_t fetch_rest(void *context, uint64_t address, size_t size_bytes, const uint8_t **ret_bytes)
{
    const struct halted *halted = context;

    return session_read_memory(halted->session, &halted->owner, address, size_bytes, ret_bytes);
}

static bool has_run(const struct halted *halted)
{
    struct proc_schedstat now;

    return proc_read_schedstat(halted->owner.process->pid, halted->owner.tid, &now) < 0 ||
           now.switches_in != halted->switches_in;
}

/* After a walk that reached the end of the copy: once more, with what lies above it. Where that cannot be had, or is of
 * another moment than the copy, the frames of the first walk stay. */
static enum rest walk_rest(struct halted *halted, const struct raw_sample *sample)
{
    struct session *session = halted->session;
    struct unwound_stack *unwound = &session->unwound;
    struct stack_rest rest = {.fetch = fetch_rest, .context = halted, .end = halted->stack_end};
    const struct unwind_request request = {
        .sample = sample,
        .space = &halted->owner.process->space,
        .read_memory = stack_rest_read,
        .read_context = &rest,
    };
    size_t copied_frames = unwound->count;
    bool moved;

    if (halted->stack_end <= sample->stack_address + sample->stack_size_bytes)
        return REST_UNREADABLE;
    if (has_run(halted))
        return REST_MOVED;
    stack_rest_begin(&rest, sample);
    session->backend->walk(session->unwinder, &request, unwound);
    moved = has_run(halted);
    if (rest.fetched_bytes > 0 && !moved)
        return REST_WALKED;
    unwound->count = copied_frames;
    unwound->end = UNWIND_COPY_ENDED;
    return moved ? REST_MOVED : REST_UNREADABLE;
}

/* The same frames at the same place: the callers above them are taken to be the same too. */
static uint64_t copied_frames_key(const struct session *session, const struct thread *thread,
                                  const struct raw_sample *sample)
{
    const struct unwound_stack *unwound = &session->unwound;
    uint64_t key = hash_mix(thread->id, sample->registers.value[REGISTER_RSP]);

    return hash_mix(key, hash_bytes(unwound->addresses, unwound->count * sizeof unwound->addresses[0]));
}

static void keep_whole(struct id_map *whole_of_copied, uint64_t key, uint32_t stack)
{
    if (whole_of_copied->count >= MAX_KEPT_WHOLE)
        id_map_clear(whole_of_copied);
    id_map_put(whole_of_copied, key, stack);
}

static uint32_t push_deep(struct halted *halted, const struct thread *thread, const struct raw_sample *sample)
{
    struct session *session = halted->session;
    struct tick_control *control = &session->tick;
    uint64_t key = copied_frames_key(session, thread, sample);
    enum rest rest = walk_rest(halted, sample);
    uint32_t stack;

    control->stacks_deep++;
    if (rest == REST_WALKED) {
        stack = push_user(session, halted->owner.process);
        if (session->unwound.end == UNWIND_REACHED_START)
            keep_whole(&control->whole_of_copied, key, stack);
        return stack;
    }
    control->deep_failed++;
    control->is_late |= rest == REST_MOVED;
    if (id_map_get(&control->whole_of_copied, key, &stack)) {
        control->deep_recalled++;
        session->profile->loss.unwound_stacks++;
        return stack;
    }
    return push_user(session, halted->owner.process);
}

uint32_t session_unwind_look(struct session *session, const struct thread *thread,
                             const struct tick_look *look, const struct raw_sample *sample)
{
    struct process *process = process_table_process(session->processes, thread->process);
    struct halted halted = {
        .session = session,
        .owner = {.process = process, .tid = look->tid},
        .stack_end = look->stack_end,
        .switches_in = look->switches_in,
    };
    uint32_t stack;

    walk(session, process, sample);
    if (session->unwound.end == UNWIND_COPY_ENDED && look->switches_in != 0)
        stack = push_deep(&halted, thread, sample);
    else
        stack = push_user(session, process);
    return push_kernel(session, stack, sample);
}

static bool same_wait(pid_t pid, pid_t tid, const struct proc_syscall *before, uint64_t switches_in)
{
    struct proc_schedstat schedstat;
    struct proc_syscall now;

    return proc_read_syscall(pid, tid, &now) == 0 && !now.running && now.sp == before->sp &&
           now.pc == before->pc && proc_read_schedstat(pid, tid, &schedstat) == 0 &&
           schedstat.switches_in == switches_in;
}

static uint32_t unknown_before(struct session *session)
{
    return stack_table_push(session->stacks, STACK_EMPTY,
                            session_synthetic_location(session, "[blocked before attach]"));
}

/* Walks what can be read of the stack while the thread stays where it is. False: it does not. */
static bool walk_snapshot(struct halted *halted, const struct proc_syscall *syscall)
{
    struct session *session = halted->session;
    const struct process *process = halted->owner.process;
    struct raw_sample sample = {.pid = process->pid, .tid = halted->owner.tid, .stack_address = syscall->sp};
    const struct unwind_request request = {.sample = &sample, .space = &process->space};
    struct memory_ranges *ranges = &session->targets.items[process->id].ranges;
    size_t bytes = memory_ranges_bytes_from(ranges, process->pid, syscall->sp, SNAPSHOT_STACK_BYTES);
    struct memory_range range;
    AUTO_FREE uint8_t *copy = NULL;
    const uint8_t *read;
    ssize_t got = session_read_memory(session, &halted->owner, syscall->sp, bytes, &read);

    if (got <= 0 || !same_wait(process->pid, sample.tid, syscall, halted->switches_in))
        return false;
    copy = memory_copy(read, (size_t)got); /* the rest is read to the same place */
    sample.stack = copy;
    sample.stack_size_bytes = (size_t)got;
    registers_set(&sample.registers, REGISTER_RSP, syscall->sp);
    registers_set(&sample.registers, REGISTER_IP, syscall->pc);
    session->backend->walk(session->unwinder, &request, &session->unwound);
    if (session->unwound.end == UNWIND_COPY_ENDED &&
        memory_ranges_find(ranges, process->pid, syscall->sp, &range)) {
        halted->stack_end = range.end;
        walk_rest(halted, &sample);
    }
    return true;
}

uint32_t session_snapshot_blocked(struct session *session, const struct process *process, pid_t tid)
{
    struct halted halted = {.session = session, .owner = {.process = process, .tid = tid}};
    struct proc_schedstat schedstat;
    struct proc_syscall syscall;
    struct wait_name wait;
    uint32_t stack;

    if (proc_read_schedstat(process->pid, tid, &schedstat) < 0 ||
        proc_read_syscall(process->pid, tid, &syscall) < 0 || syscall.running || syscall.sp == 0)
        return unknown_before(session);
    halted.switches_in = schedstat.switches_in;
    if (!walk_snapshot(&halted, &syscall))
        return unknown_before(session);
    stack = push_user(session, process);
    if (syscall.number < 0)
        snprintf(wait.text, sizeof wait.text, "[wait: page fault]");
    else
        wait_from_syscall_name(syscall_name(syscall.number), &wait);
    return stack_table_push(session->stacks, stack, session_synthetic_location(session, wait.text));
}
