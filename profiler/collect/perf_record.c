#include "profiler/collect/perf_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "profiler/collect/perf_registers.h"

const uint64_t perf_record_sample_type_known =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
    PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
    PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

/* What ends every record but samples, for TID | TIME | CPU | IDENTIFIER ("struct sample_id" of the man page).
 */
struct trailer {
    uint32_t pid, tid;
    uint64_t time_ns;
    uint32_t cpu, reserved;
    uint64_t id;
};

enum { HEADER_BYTES = sizeof(struct perf_event_header), TRAILER_BYTES = sizeof(struct trailer) };

/* From here upwards an entry of a call chain is a marker: PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER and others.
 */
static const uint64_t first_marker = (uint64_t)PERF_CONTEXT_MAX;

struct cursor {
    const uint8_t *at;
    size_t left_bytes;
};

static const uint8_t *take(struct cursor *cursor, uint64_t size_bytes)
{
    if (size_bytes > cursor->left_bytes)
        return NULL;
    const uint8_t *taken = cursor->at;
    cursor->at += size_bytes;
    cursor->left_bytes -= size_bytes;
    return taken;
}

static bool take_u64(struct cursor *cursor, uint64_t *ret_value)
{
    const uint8_t *bytes = take(cursor, sizeof *ret_value);
    if (bytes == NULL)
        return false;
    memcpy(ret_value, bytes, sizeof *ret_value);
    return true;
}

static bool take_two_u32(struct cursor *cursor, uint32_t *ret_first, uint32_t *ret_second)
{
    const uint8_t *bytes = take(cursor, 2 * sizeof(uint32_t));
    if (bytes == NULL)
        return false;
    memcpy(ret_first, bytes, sizeof *ret_first);
    memcpy(ret_second, bytes + sizeof *ret_first, sizeof *ret_second);
    return true;
}

static bool skip_u64_if(struct cursor *cursor, bool present)
{
    return !present || take(cursor, sizeof(uint64_t)) != NULL;
}

/* A string that ends within what is left. */
static const char *take_string(struct cursor *cursor)
{
    const uint8_t *end = memchr(cursor->at, 0, cursor->left_bytes);
    return end != NULL ? (const char *)take(cursor, (uint64_t)(end - cursor->at) + 1) : NULL;
}

/* Splits the chain at its markers: "KERNEL k0 k1 USER u0 u1". Entries before the first marker belong to
 * nobody. */
static bool take_call_chain(struct cursor *cursor, struct raw_sample *sample)
{
    uint64_t count;
    if (!take_u64(cursor, &count) || count > cursor->left_bytes / sizeof(uint64_t))
        return false;
    /* Aligned: the record is, and every field before this one is a multiple of 8 bytes long. */
    const uint64_t *entries = (const void *)take(cursor, count * sizeof(uint64_t));
    size_t i = 0;
    while (i < count) {
        uint64_t marker = entries[i++];
        if (marker < first_marker)
            continue;
        size_t first = i;
        while (i < count && entries[i] < first_marker)
            i++;
        if (marker == (uint64_t)PERF_CONTEXT_KERNEL) {
            sample->kernel_chain = entries + first;
            sample->kernel_chain_count = i - first;
        } else if (marker == (uint64_t)PERF_CONTEXT_USER) {
            sample->user_chain = entries + first;
            sample->user_chain_count = i - first;
        }
    }
    return true;
}

/* "u64 abi; u64 registers[bits in the mask]", the latter only when there are some. */
static bool take_registers(struct cursor *cursor, uint64_t mask, struct registers *registers)
{
    uint64_t abi;
    if (!take_u64(cursor, &abi))
        return false;
    if (abi == PERF_SAMPLE_REGS_ABI_NONE)
        return true;
    for (unsigned number = 0; number < 64; number++) {
        uint64_t value;
        if ((mask >> number & 1) == 0)
            continue;
        if (!take_u64(cursor, &value))
            return false;
        if (abi == PERF_SAMPLE_REGS_ABI_64)
            perf_registers_store(registers, number, value);
    }
    return true;
}

/* "u64 size; char bytes[size]; u64 how many of them are real", only the first when it is 0. */
static bool take_stack(struct cursor *cursor, struct raw_sample *sample)
{
    uint64_t size_bytes, real_bytes;
    if (!take_u64(cursor, &size_bytes))
        return false;
    if (size_bytes == 0)
        return true;
    const uint8_t *bytes = take(cursor, size_bytes);
    if (bytes == NULL || !take_u64(cursor, &real_bytes) || real_bytes > size_bytes)
        return false;
    if (real_bytes > 0 && registers_has(&sample->registers, REGISTER_RSP)) {
        sample->stack = bytes;
        sample->stack_size_bytes = real_bytes;
        sample->stack_address = sample->registers.value[REGISTER_RSP];
    }
    return true;
}

static bool raw_field(const uint8_t *raw, size_t raw_bytes, size_t offset, size_t size_bytes,
                      int64_t *ret_value)
{
    int32_t narrow;
    if (offset > raw_bytes || size_bytes > raw_bytes - offset)
        return false;
    if (size_bytes == sizeof *ret_value) {
        memcpy(ret_value, raw + offset, sizeof *ret_value);
    } else if (size_bytes == sizeof narrow) {
        memcpy(&narrow, raw + offset, sizeof narrow);
        *ret_value = narrow;
    } else {
        return false;
    }
    return true;
}

static bool take_tracepoint(struct cursor *cursor, enum perf_source source,
                            const struct perf_tracepoint_layout *layout, struct perf_record *record)
{
    uint32_t raw_bytes;
    const uint8_t *bytes = take(cursor, sizeof raw_bytes);
    if (bytes == NULL)
        return false;
    memcpy(&raw_bytes, bytes, sizeof raw_bytes);
    const uint8_t *raw = take(cursor, raw_bytes);
    if (raw == NULL)
        return false;

    int64_t prev, state, next, woken;
    if (source == PERF_SOURCE_SWITCH) {
        if (!raw_field(raw, raw_bytes, layout->switch_prev_pid, sizeof(int32_t), &prev) ||
            !raw_field(raw, raw_bytes, layout->switch_prev_state, layout->switch_prev_state_size, &state) ||
            !raw_field(raw, raw_bytes, layout->switch_next_pid, sizeof(int32_t), &next))
            return false;
        record->type = RECORD_SWITCH;
        record->sched_switch.prev_tid = (pid_t)prev;
        record->sched_switch.prev_state = (uint64_t)state;
        record->sched_switch.next_tid = (pid_t)next;
    } else if (source == PERF_SOURCE_WAKEUP) {
        if (!raw_field(raw, raw_bytes, layout->wakeup_pid, sizeof(int32_t), &woken))
            return false;
        record->type = RECORD_WAKEUP;
        record->wakeup.tid = (pid_t)woken;
    }
    return true;
}

/* IP .. PERIOD, the fields of fixed size; IDENTIFIER stood before them. */
static bool take_fixed_fields(struct cursor *cursor, uint64_t type, struct perf_record *record)
{
    uint32_t pid, tid, reserved;
    if (!skip_u64_if(cursor, (type & PERF_SAMPLE_IP) != 0))
        return false;
    if ((type & PERF_SAMPLE_TID) != 0) {
        if (!take_two_u32(cursor, &pid, &tid))
            return false;
        record->pid = (pid_t)pid;
        record->tid = (pid_t)tid;
    }
    if ((type & PERF_SAMPLE_TIME) != 0 && !take_u64(cursor, &record->time_ns))
        return false;
    if (!skip_u64_if(cursor, (type & PERF_SAMPLE_ADDR) != 0) ||
        !skip_u64_if(cursor, (type & PERF_SAMPLE_ID) != 0) ||
        !skip_u64_if(cursor, (type & PERF_SAMPLE_STREAM_ID) != 0))
        return false;
    if ((type & PERF_SAMPLE_CPU) != 0 && !take_two_u32(cursor, &record->cpu, &reserved))
        return false;
    return skip_u64_if(cursor, (type & PERF_SAMPLE_PERIOD) != 0);
}

static bool parse_sample(struct cursor cursor, const struct perf_layout *layout, struct perf_record *record)
{
    uint32_t source;
    if (!take_u64(&cursor, &record->event_id) ||
        !id_map_get(layout->source_by_id, record->event_id, &source) || source >= PERF_SOURCE_COUNT)
        return false;
    uint64_t type = layout->sample_type[source];
    if ((type & PERF_SAMPLE_IDENTIFIER) == 0 || (type & ~perf_record_sample_type_known) != 0)
        return false;
    if (!take_fixed_fields(&cursor, type, record))
        return false;

    struct raw_sample sample = {.time_ns = record->time_ns, .pid = record->pid, .tid = record->tid};
    if ((type & PERF_SAMPLE_CALLCHAIN) != 0 && !take_call_chain(&cursor, &sample))
        return false;
    if ((type & PERF_SAMPLE_RAW) != 0 && !take_tracepoint(&cursor, source, &layout->tracepoint, record))
        return false;
    if ((type & PERF_SAMPLE_REGS_USER) != 0 &&
        !take_registers(&cursor, layout->registers_mask, &sample.registers))
        return false;
    if ((type & PERF_SAMPLE_STACK_USER) != 0 && !take_stack(&cursor, &sample))
        return false;

    switch ((enum perf_source)source) {
    case PERF_SOURCE_ON_CPU:
        record->type = RECORD_ON_CPU;
        record->sample = sample;
        return true;
    case PERF_SOURCE_SWITCH_STACK:
        record->type = RECORD_SWITCH_STACK;
        record->sample = sample;
        return true;
    case PERF_SOURCE_SWITCH:
        return record->type == RECORD_SWITCH;
    case PERF_SOURCE_WAKEUP:
        return record->type == RECORD_WAKEUP;
    case PERF_SOURCE_DUMMY: /* never samples */
    case PERF_SOURCE_COUNT:
        break;
    }
    return false;
}

static bool parse_mmap(struct cursor cursor, const struct perf_event_header *header,
                       struct perf_record *record)
{
    uint32_t pid, tid, major_number, minor_number, protection = PROT_EXEC, flags;
    record->type = RECORD_MMAP;
    if (!take_two_u32(&cursor, &pid, &tid) || !take_u64(&cursor, &record->mmap.start) ||
        !take_u64(&cursor, &record->mmap.size_bytes) || !take_u64(&cursor, &record->mmap.file_offset))
        return false;
    record->mmap.pid = (pid_t)pid;
    if (header->type == PERF_RECORD_MMAP2) {
        if (!take_two_u32(&cursor, &major_number, &minor_number) || !take_u64(&cursor, &record->mmap.inode) ||
            !take_u64(&cursor, &record->mmap.generation) || !take_two_u32(&cursor, &protection, &flags))
            return false;
        record->mmap.device = makedev(major_number, minor_number);
        if ((header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) !=
            0) /* a build id took the place of those four */
            record->mmap.device = record->mmap.inode = record->mmap.generation = 0;
    } else if ((header->misc & PERF_RECORD_MISC_MMAP_DATA) != 0) {
        protection = 0;
    }
    record->mmap.executable = (protection & PROT_EXEC) != 0;
    record->mmap.path = take_string(&cursor);
    return record->mmap.path != NULL;
}

static bool parse_comm(struct cursor cursor, const struct perf_event_header *header,
                       struct perf_record *record)
{
    uint32_t pid, tid;
    if (!take_two_u32(&cursor, &pid, &tid))
        return false;
    record->type = RECORD_COMM;
    record->comm.pid = (pid_t)pid;
    record->comm.tid = (pid_t)tid;
    record->comm.exec = (header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
    record->comm.comm = take_string(&cursor);
    return record->comm.comm != NULL;
}

static bool parse_task(struct cursor cursor, const struct perf_event_header *header,
                       struct perf_record *record)
{
    uint32_t pid, parent_pid, tid, parent_tid;
    if (!take_two_u32(&cursor, &pid, &parent_pid) || !take_two_u32(&cursor, &tid, &parent_tid))
        return false;
    record->type = header->type == PERF_RECORD_FORK ? RECORD_FORK : RECORD_EXIT;
    record->task.pid = (pid_t)pid;
    record->task.parent_pid = (pid_t)parent_pid;
    record->task.tid = (pid_t)tid;
    record->task.parent_tid = (pid_t)parent_tid;
    return true;
}

static bool parse_lost(struct cursor cursor, const struct perf_event_header *header,
                       struct perf_record *record)
{
    uint64_t id;
    record->type = RECORD_LOST;
    if (header->type == PERF_RECORD_LOST && !take_u64(&cursor, &id))
        return false;
    return take_u64(&cursor, &record->lost.count);
}

static void apply_trailer(const uint8_t *record_end, struct perf_record *record)
{
    struct trailer trailer;
    memcpy(&trailer, record_end - TRAILER_BYTES, TRAILER_BYTES);
    record->pid = (pid_t)trailer.pid;
    record->tid = (pid_t)trailer.tid;
    record->time_ns = trailer.time_ns;
    record->cpu = trailer.cpu;
    record->event_id = trailer.id;
}

/* Everything but samples: the fields lie between the header and the trailer. */
static bool parse_other(const uint8_t *bytes, const struct perf_event_header *header,
                        struct perf_record *record)
{
    bool has_trailer = header->size >= HEADER_BYTES + TRAILER_BYTES;
    struct cursor cursor = {.at = bytes + HEADER_BYTES};
    if (has_trailer) {
        cursor.left_bytes = (size_t)(header->size - HEADER_BYTES - TRAILER_BYTES);
        apply_trailer(bytes + header->size, record);
    }

    switch (header->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return has_trailer && parse_mmap(cursor, header, record);
    case PERF_RECORD_COMM:
        return has_trailer && parse_comm(cursor, header, record);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return has_trailer && parse_task(cursor, header, record);
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        return has_trailer && parse_lost(cursor, header, record);
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        record->type = RECORD_TASK_SWITCH;
        record->task_switch.out = (header->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
        record->task_switch.preempted = (header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
        return has_trailer;
    default:
        record->type = RECORD_OTHER;
        return true;
    }
}

static bool read_header(const void *bytes, size_t size_bytes, struct perf_event_header *ret_header)
{
    if (size_bytes < HEADER_BYTES || (uintptr_t)bytes % sizeof(uint64_t) != 0)
        return false;
    memcpy(ret_header, bytes, HEADER_BYTES);
    return ret_header->size >= HEADER_BYTES && ret_header->size <= size_bytes &&
           ret_header->size % sizeof(uint64_t) == 0;
}

ssize_t perf_record_parse(const void *bytes, size_t size_bytes, const struct perf_layout *layout,
                          struct perf_record *ret_record)
{
    struct perf_event_header header;
    struct perf_record record = {.type = RECORD_OTHER, .pid = -1, .tid = -1};
    if (!read_header(bytes, size_bytes, &header))
        return -EBADMSG;
    bool good;
    if (header.type == PERF_RECORD_SAMPLE) {
        struct cursor body = {.at = (const uint8_t *)bytes + HEADER_BYTES,
                              .left_bytes = (size_t)(header.size - HEADER_BYTES)};
        good = parse_sample(body, layout, &record);
    } else {
        good = parse_other(bytes, &header, &record);
    }
    if (!good)
        return -EBADMSG;
    *ret_record = record;
    return header.size;
}

uint64_t perf_record_time(const void *bytes, size_t size_bytes, const struct perf_layout *layout)
{
    struct perf_event_header header;
    struct perf_record record = {0};
    uint32_t source;
    if (!read_header(bytes, size_bytes, &header))
        return 0;
    if (header.type != PERF_RECORD_SAMPLE) {
        if (header.size >= HEADER_BYTES + TRAILER_BYTES)
            apply_trailer((const uint8_t *)bytes + header.size, &record);
        return record.time_ns;
    }
    struct cursor cursor = {.at = (const uint8_t *)bytes + HEADER_BYTES,
                            .left_bytes = (size_t)(header.size - HEADER_BYTES)};
    if (!take_u64(&cursor, &record.event_id) || !id_map_get(layout->source_by_id, record.event_id, &source) ||
        source >= PERF_SOURCE_COUNT || !take_fixed_fields(&cursor, layout->sample_type[source], &record))
        return 0;
    return record.time_ns;
}
