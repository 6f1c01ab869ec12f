/* The bytes of a perf ring: records one after another, as a reader goes through them. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#include "profiler/collect/perf_record.h"
#include "profiler/collect/perf_registers.h"

enum { SOURCES = PERF_SOURCE_COUNT, LARGEST_BYTES = 1 << 16 };

static const uint64_t common = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;

/* What was read is used, so that no compiler leaves the reading out. */
static volatile uint64_t touched;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every byte that a view promises: the sanitizer sees what lies outside. */
static uint64_t touch(const void *bytes, size_t size)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += ((const uint8_t *)bytes)[i];
    return sum;
}

static uint64_t touch_record(const struct perf_record *record)
{
    switch (record->type) {
    case RECORD_ON_CPU:
    case RECORD_SWITCH_STACK:
        return touch(record->sample.stack, record->sample.stack_size_bytes) +
               touch(record->sample.user_chain, record->sample.user_chain_count * sizeof(uint64_t)) +
               touch(record->sample.kernel_chain, record->sample.kernel_chain_count * sizeof(uint64_t));
    case RECORD_MMAP:
        return strlen(record->mmap.path);
    case RECORD_COMM:
        return strlen(record->comm.comm);
    case RECORD_SWITCH:
    case RECORD_WAKEUP:
    case RECORD_TASK_SWITCH:
    case RECORD_FORK:
    case RECORD_EXIT:
    case RECORD_LOST:
    case RECORD_OTHER:
        break;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct id_map sources = {0};
    struct perf_layout layout = {
        .source_by_id = &sources,
        .registers_mask = perf_registers_mask,
        .tracepoint = {24, 32, 8, 56, 24},
        .sample_type = {[PERF_SOURCE_ON_CPU] =
                            common | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                        [PERF_SOURCE_SWITCH] = common | PERF_SAMPLE_RAW,
                        [PERF_SOURCE_WAKEUP] = common | PERF_SAMPLE_RAW,
                        [PERF_SOURCE_SWITCH_STACK] = common | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
                                                     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                        [PERF_SOURCE_DUMMY] = common},
    };
    for (uint32_t source = 0; source < SOURCES; source++)
        id_map_put(&sources, source + 1, source);

    while (size >= sizeof(struct perf_event_header)) {
        /* A copy of its own, aligned as a ring is and no longer than what is there. */
        size_t piece_bytes = size < LARGEST_BYTES ? size : LARGEST_BYTES;
        uint8_t *piece = malloc(piece_bytes);
        struct perf_record record;
        if (piece == NULL)
            break;
        memcpy(piece, data, piece_bytes);
        uint64_t sum = perf_record_time(piece, piece_bytes, &layout);
        ssize_t r = perf_record_parse(piece, piece_bytes, &layout, &record);
        if (r > 0)
            sum += touch_record(&record);
        touched = sum;
        free(piece);
        if (r <= 0)
            break;
        data += r;
        size -= (size_t)r;
    }
    id_map_finish(&sources);
    return 0;
}
