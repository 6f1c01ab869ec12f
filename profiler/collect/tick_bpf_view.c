#include "profiler/collect/tick_bpf_view.h"

#include <string.h>

static enum tick_look_state look_state(const struct tick_record *record)
{
    enum { KERNEL_STOPPED = 0x4 | 0x8 }; /* __TASK_STOPPED | __TASK_TRACED, include/linux/sched.h */

    if ((record->flags & TICK_ON_CPU) != 0)
        return TICK_RUNNING;
    if (record->state == 0)
        return TICK_RUNNABLE;
    return (record->state & KERNEL_STOPPED) != 0 ? TICK_STOPPED : TICK_BLOCKED;
}

static enum tick_stack look_stack(const struct tick_record *record)
{
    if ((record->flags & (TICK_ON_CPU | TICK_UNCHANGED)) != 0)
        return TICK_STACK_NONE;
    if ((record->flags & TICK_NOT_CHOSEN) != 0)
        return TICK_STACK_LEFT_OUT;
    if ((record->flags & TICK_CHANGED) != 0)
        return TICK_STACK_RACED;
    return record->stack_bytes > 0 ? TICK_STACK_WHOLE : TICK_STACK_NONE;
}

/* Those of a system call's arguments too: vfork keeps its return address in one (rdi). */
static void take_registers(const struct tick_record *record, struct registers *registers)
{
    static const enum register_number of_arguments[] = {REGISTER_RDI, REGISTER_RSI, REGISTER_RDX,
                                                        REGISTER_R10, REGISTER_R8,  REGISTER_R9};

    *registers = (struct registers){0};
    if (record->sp == 0)
        return;
    registers_set(registers, REGISTER_IP, record->ip);
    registers_set(registers, REGISTER_RSP, record->sp);
    registers_set(registers, REGISTER_RBP, record->bp);
    registers_set(registers, REGISTER_RBX, record->bx);
    registers_set(registers, REGISTER_R12, record->r12);
    registers_set(registers, REGISTER_R13, record->r13);
    registers_set(registers, REGISTER_R14, record->r14);
    registers_set(registers, REGISTER_R15, record->r15);
    for (size_t i = 0; i < sizeof of_arguments / sizeof of_arguments[0]; i++)
        registers_set(registers, of_arguments[i], record->arguments[i]);
}

static void fill_look(struct tick_bpf_view *view, const struct tick_record *record, const uint8_t *stack)
{
    enum { UNINTERRUPTIBLE = 0x2 };
    struct tick_look *look = &view->look;

    *look = (struct tick_look){
        .pid = (pid_t)record->pid,
        .tid = (pid_t)record->tid,
        .state = look_state(record),
        .stack = look_stack(record),
        .unchanged = (record->flags & TICK_UNCHANGED) != 0,
        .uninterruptible = (record->state & UNINTERRUPTIBLE) != 0,
        .throttled = (record->flags & TICK_THROTTLED) != 0,
        .time_ns = record->time_ns,
        .start_time_ns = record->start_time_ns,
        .on_cpu_ns = record->on_cpu_ns,
        .runnable_ns = record->runnable_ns,
        .voluntary_switches = record->voluntary_switches,
        .involuntary_switches = record->involuntary_switches,
        .switches_in = record->switches_in,
        .stack_end = record->stack_end,
        .syscall = record->syscall,
        .sample = {.time_ns = record->time_ns, .pid = (pid_t)record->pid, .tid = (pid_t)record->tid},
    };
    memcpy(look->arguments, record->arguments, sizeof look->arguments);
    if (look->stack == TICK_STACK_LEFT_OUT || look->unchanged)
        return;
    take_registers(record, &look->sample.registers);
    memcpy(view->kernel_chain, record->kernel, sizeof view->kernel_chain);
    look->sample.kernel_chain = view->kernel_chain;
    look->sample.kernel_chain_count =
        record->kernel_count < TICK_KERNEL_FRAMES ? record->kernel_count : TICK_KERNEL_FRAMES;
    look->sample.stack = stack;
    look->sample.stack_size_bytes = record->stack_bytes;
    look->sample.stack_address = record->sp;
}

size_t tick_bpf_view_record(struct tick_bpf_view *view, const uint8_t *bytes, size_t size_bytes)
{
    struct tick_record record;

    if (size_bytes < sizeof record)
        return 0;
    memcpy(&record, bytes, sizeof record);
    if (record.record_bytes < sizeof record || record.record_bytes > size_bytes ||
        record.stack_bytes > record.record_bytes - sizeof record)
        return 0;
    fill_look(view, &record, bytes + sizeof record);
    return record.record_bytes;
}

void tick_bpf_view_exit(struct tick_bpf_view *view, const struct tick_exit *ended)
{
    view->look = (struct tick_look){
        .pid = (pid_t)ended->pid,
        .tid = (pid_t)ended->tid,
        .state = TICK_ENDED,
        .stack = TICK_STACK_NONE,
        .time_ns = ended->time_ns,
        .start_time_ns = ended->start_time_ns,
        .on_cpu_ns = ended->on_cpu_ns,
        .runnable_ns = ended->runnable_ns,
        .voluntary_switches = ended->voluntary_switches,
        .involuntary_switches = ended->involuntary_switches,
        .syscall = -1,
    };
}
