#include "profiler/collect/perf_event.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/collect/perf_registers.h"

/* On every event: a record tells its event, thread, time and CPU. */
static const uint64_t common_sample_type =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;

static bool takes_stack(enum perf_source source)
{
    return source == PERF_SOURCE_ON_CPU || source == PERF_SOURCE_SWITCH_STACK;
}

uint64_t perf_event_sample_type(const struct perf_event_spec *spec)
{
    uint64_t type = common_sample_type;
    if (spec->source == PERF_SOURCE_SWITCH || spec->source == PERF_SOURCE_WAKEUP)
        type |= PERF_SAMPLE_RAW;
    if (!takes_stack(spec->source))
        return type;
    if (spec->stack.copy_bytes > 0)
        type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    if (spec->stack.user_chain || spec->stack.kernel_chain)
        type |= PERF_SAMPLE_CALLCHAIN;
    if (spec->source == PERF_SOURCE_SWITCH_STACK && spec->trigger == PERF_TRIGGER_BPF)
        type |= PERF_SAMPLE_RAW; /* the program's own bytes: the kernel reckons with them in any case */
    return type;
}

/* Neighbouring CPUs get periods that differ by up to half a percent: none is a multiple of another, nor of a
 * timer of the target. */
static uint64_t sampling_period_ns(double frequency_hz, int cpu)
{
    double nominal_ns = (double)NS_PER_S / frequency_hz;
    int step = (cpu * 7 + 3) % 11 - 5;
    double period_ns = nominal_ns * (1.0 + step * 0.001);
    return period_ns < 1.0 ? 1 : (uint64_t)period_ns;
}

static void fill_trigger(const struct perf_event_spec *spec, struct perf_event_attr *attr)
{
    attr->sample_period = 1;
    switch (spec->trigger) {
    case PERF_TRIGGER_TRACEPOINT:
        attr->type = PERF_TYPE_TRACEPOINT;
        attr->config = spec->tracepoint_id;
        break;
    case PERF_TRIGGER_BPF:
        attr->config = PERF_COUNT_SW_BPF_OUTPUT;
        break;
    case PERF_TRIGGER_SOFTWARE:
        attr->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
        break;
    }
}

static void fill_on_cpu(const struct perf_event_spec *spec, int cpu, struct perf_event_attr *attr)
{
    if (spec->hardware_cycles) {
        attr->type = PERF_TYPE_HARDWARE;
        attr->config = PERF_COUNT_HW_CPU_CYCLES;
        attr->freq = 1;
        attr->sample_freq = spec->frequency_hz < 1.0 ? 1 : (uint64_t)spec->frequency_hz;
    } else {
        attr->config = PERF_COUNT_SW_CPU_CLOCK;
        attr->sample_period = sampling_period_ns(spec->frequency_hz, cpu);
        attr->exclude_idle = 1;
    }
}

static void fill_stack(const struct perf_event_stack *stack, struct perf_event_attr *attr)
{
    attr->exclude_callchain_user = !stack->user_chain;
    attr->exclude_callchain_kernel = !stack->kernel_chain;
    if (stack->copy_bytes > 0) {
        attr->sample_regs_user = perf_registers_mask;
        attr->sample_stack_user = stack->copy_bytes;
    }
}

void perf_event_fill_attr(const struct perf_event_spec *spec, int cpu, struct perf_event_attr *ret_attr)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = perf_event_sample_type(spec),
        .read_format = PERF_FORMAT_LOST,
        .disabled = 1,
        .inherit = spec->inherit,
        .inherit_thread = spec->inherit && spec->inherit_thread,
        .exclude_kernel = spec->exclude_kernel,
        .exclude_hv = spec->exclude_kernel,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .watermark = 1,
        .wakeup_watermark = spec->wakeup_bytes,
        .mmap = spec->task_records,
        .mmap2 = spec->task_records,
        .comm = spec->task_records,
        .comm_exec = spec->task_records,
        .task = spec->task_records,
        .context_switch = spec->switch_records,
    };
    switch (spec->source) {
    case PERF_SOURCE_ON_CPU:
        fill_on_cpu(spec, cpu, &attr);
        fill_stack(&spec->stack, &attr);
        break;
    case PERF_SOURCE_SWITCH_STACK:
        fill_trigger(spec, &attr);
        fill_stack(&spec->stack, &attr);
        break;
    case PERF_SOURCE_SWITCH:
    case PERF_SOURCE_WAKEUP:
        fill_trigger(spec, &attr);
        break;
    case PERF_SOURCE_DUMMY:
    case PERF_SOURCE_COUNT:
        break;
    }
    *ret_attr = attr;
}

static int open_attr(struct perf_event_attr *attr, pid_t tid, int cpu)
{
    int fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int perf_event_open(const struct perf_event_spec *spec, pid_t tid, int cpu)
{
    struct perf_event_attr attr;
    perf_event_fill_attr(spec, cpu, &attr);
    for (;;) {
        int fd = open_attr(&attr, tid, cpu);
        if (fd != -EINVAL)
            return fd;
        if (attr.read_format != 0)
            attr.read_format = 0; /* PERF_FORMAT_LOST came with Linux 6.0 */
        else if (attr.inherit_thread)
            attr.inherit_thread = 0; /* with 5.13 */
        else
            return fd;
    }
}

int perf_event_open_switch_trigger(int cpu)
{
    /* sample_type 0: what the kernel prepares for the sample of one event would be shared by the next one. */
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
        .sample_period = 1,
        .disabled = 1,
    };
    return open_attr(&attr, -1, cpu);
}

int perf_event_read_id(int event_fd, uint64_t *ret_id)
{
    uint64_t id;
    if (ioctl(event_fd, PERF_EVENT_IOC_ID, &id) < 0)
        return -errno;
    *ret_id = id;
    return 0;
}

uint64_t perf_event_read_lost(int event_fd)
{
    struct {
        uint64_t value, lost;
    } counts = {0};
    ssize_t got = read(event_fd, &counts, sizeof counts);
    return got == (ssize_t)sizeof counts ? counts.lost : 0;
}
