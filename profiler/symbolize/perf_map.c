#include "profiler/symbolize/perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"
#include "profiler/base/memory.h"
#include "profiler/base/scanner.h"
#include "profiler/base/vec.h"
#include "profiler/symbolize/symbol_name.h"

enum {
    READ_BYTES = 64 * 1024,
    LINE_MAX_BYTES = 64 + SYMBOL_NAME_MAX_BYTES, /* two numbers and as much of a name as is kept */
    RANGES_MAX = 1000 * 1000,
    NAMES_MAX_BYTES = 64 << 20,
};
#define FILE_MAX_BYTES (UINT64_C(256) << 20)

struct range {
    uint64_t start;
    uint64_t end;
    uint32_t name;     /* offset into names */
    uint32_t priority; /* the higher one wins */
};

/* Stubs count from 0, methods from here. */
#define METHOD_PRIORITY (UINT32_C(1) << 31)

struct perf_map {
    struct range *ranges; /* settled: by start, ascending, disjoint */
    size_t count;
    size_t capacity;
    char *names;
    size_t names_size;
    size_t names_capacity;
    uint32_t lines; /* read so far: the priority of the next */
};

static bool take_address(struct scanner *in, uint64_t *ret_value)
{
    struct scanner ahead = *in;

    /* "0x" alone is no number, and "0" may be one. */
    if ((scanner_take_text(&ahead, "0x") || scanner_take_text(&ahead, "0X")) &&
        scanner_take_hex(&ahead, ret_value)) {
        *in = ahead;
        return true;
    }
    return scanner_take_hex(in, ret_value);
}

static bool take_blanks(struct scanner *in)
{
    const char *before = in->at;

    scanner_skip_spaces(in);
    return in->at > before;
}

/* 7f3c1d0a1e40 2a0 void SpinJ.spinJ()
 * 0x00007f3c1d0a1e40 0x00000000000002a0 void SpinJ.spinJ()
 * 7F3C1D0A1E40 18 stub<12> GenerateLookupStub<GenerateLookupStub> */
bool perf_map_parse_line(const char *line, size_t length_bytes, struct perf_map_line *ret_line)
{
    struct scanner in = {.at = line, .end = line + length_bytes};
    struct perf_map_line parsed = {0};
    struct scanner name;
    uint64_t size_bytes;

    if (!take_address(&in, &parsed.start) || !take_blanks(&in) || !take_address(&in, &size_bytes) ||
        !take_blanks(&in) || in.at == in.end)
        return false;
    if (size_bytes == 0)
        size_bytes = 1;
    if (__builtin_add_overflow(parsed.start, size_bytes, &parsed.end))
        parsed.end = UINT64_MAX;
    if (parsed.end == parsed.start)
        return false;
    name = in;
    parsed.is_stub = scanner_take_text(&name, "stub<") || scanner_take_text(&name, "stub ");
    parsed.name = in.at;
    parsed.name_length = (size_t)(in.end - in.at);
    *ret_line = parsed;
    return true;
}

struct perf_map *perf_map_create(void)
{
    return memory_zeroed(1, sizeof(struct perf_map));
}

void perf_map_destroy(struct perf_map *map)
{
    if (map == NULL)
        return;
    free(map->ranges);
    free(map->names);
    free(map);
}

static int compare_ranges(const void *left, const void *right)
{
    const struct range *a = left;
    const struct range *b = right;

    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->priority < b->priority ? -1 : a->priority > b->priority;
}

/* The ranges that hold the sweep's position, and some that have ended: a heap with the highest priority at
 * its root. */
struct heap {
    const struct range *ranges;
    uint32_t *items;
    size_t count;
};

static void heap_push(struct heap *heap, uint32_t item)
{
    size_t at = heap->count++;

    while (at > 0) {
        size_t parent = (at - 1) / 2;

        if (heap->ranges[heap->items[parent]].priority >= heap->ranges[item].priority)
            break;
        heap->items[at] = heap->items[parent];
        at = parent;
    }
    heap->items[at] = item;
}

static void heap_pop(struct heap *heap)
{
    uint32_t item = heap->items[--heap->count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            heap->ranges[heap->items[child]].priority < heap->ranges[heap->items[child + 1]].priority)
            child++;
        if (heap->ranges[item].priority >= heap->ranges[heap->items[child]].priority)
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    heap->items[at] = item;
}

/* What survives of the ranges, being made. */
struct settled {
    struct range *ranges;
    size_t count;
    size_t capacity;
    char *names;
    size_t names_size;
    size_t names_capacity;
    uint32_t *new_names;  /* by old range; UINT32_MAX = not copied yet */
    uint32_t last_source; /* old range that the last new one is a part of */
};

static void settled_add(struct settled *settled, const struct perf_map *map, uint32_t source, uint64_t start,
                        uint64_t end)
{
    const struct range *old = &map->ranges[source];
    const char *name = map->names + old->name;
    size_t size = strlen(name) + 1;

    if (settled->count > 0 && settled->last_source == source &&
        settled->ranges[settled->count - 1].end == start) {
        settled->ranges[settled->count - 1].end = end;
        return;
    }
    if (settled->new_names[source] == UINT32_MAX) {
        settled->names = vec_reserve(settled->names, &settled->names_capacity, settled->names_size + size, 1);
        memcpy(settled->names + settled->names_size, name, size);
        settled->new_names[source] = (uint32_t)settled->names_size;
        settled->names_size += size;
    }
    settled->ranges =
        vec_reserve(settled->ranges, &settled->capacity, settled->count + 1, sizeof *settled->ranges);
    settled->ranges[settled->count++] = (struct range){
        .start = start, .end = end, .name = settled->new_names[source], .priority = old->priority};
    settled->last_source = source;
}

/* A sweep over the addresses: at each, the highest priority among the ranges that hold it. */
static void sweep(struct perf_map *map, struct settled *settled)
{
    struct heap heap = {.ranges = map->ranges, .items = memory_resize(NULL, map->count, sizeof(uint32_t))};
    uint64_t position = 0;
    size_t next = 0;

    while (heap.count > 0 || next < map->count) {
        uint64_t end;

        if (heap.count == 0)
            position = map->ranges[next].start;
        while (next < map->count && map->ranges[next].start <= position)
            heap_push(&heap, (uint32_t)next++);
        while (heap.count > 0 && map->ranges[heap.items[0]].end <= position)
            heap_pop(&heap);
        if (heap.count == 0)
            continue;
        end = map->ranges[heap.items[0]].end;
        if (next < map->count && map->ranges[next].start < end)
            end = map->ranges[next].start;
        settled_add(settled, map, heap.items[0], position, end);
        position = end;
    }
    free(heap.items);
}

static bool are_disjoint(const struct range *ranges, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (ranges[i - 1].end > ranges[i].start)
            return false;
    return true;
}

/* Makes the ranges disjoint and sorted, and drops those that later ones hide, with their names. */
static void settle(struct perf_map *map)
{
    struct settled settled = {0};

    if (map->count == 0)
        return;
    qsort(map->ranges, map->count, sizeof *map->ranges, compare_ranges);
    if (are_disjoint(map->ranges, map->count)) /* as most maps are; saves a second copy of it all */
        return;
    settled.new_names = memory_resize(NULL, map->count, sizeof *settled.new_names);
    memset(settled.new_names, 0xff, map->count * sizeof *settled.new_names);
    sweep(map, &settled);
    free(settled.new_names);
    free(map->ranges);
    free(map->names);
    map->ranges = settled.ranges;
    map->count = settled.count;
    map->capacity = settled.capacity;
    map->names = settled.names;
    map->names_size = settled.names_size;
    map->names_capacity = settled.names_capacity;
}

static bool is_full(const struct perf_map *map)
{
    return map->count >= RANGES_MAX || map->names_size >= NAMES_MAX_BYTES;
}

static uint32_t add_name(struct perf_map *map, const struct perf_map_line *line)
{
    size_t offset = map->names_size;
    size_t room = line->name_length < SYMBOL_NAME_MAX_BYTES ? line->name_length : SYMBOL_NAME_MAX_BYTES;

    map->names = vec_reserve(map->names, &map->names_capacity, offset + room + 1, 1);
    map->names_size += symbol_name_copy(map->names + offset, line->name, line->name_length) + 1;
    return (uint32_t)offset;
}

/* Returns false when there is no room, even after hidden ranges have been dropped. */
static bool add_line(struct perf_map *map, const char *text, size_t length)
{
    struct perf_map_line line;
    uint32_t priority;

    if (!perf_map_parse_line(text, length, &line))
        return true;
    if (is_full(map)) {
        settle(map);
        /* Anything less than a quarter free would have us settle again every few lines. */
        if (map->count >= RANGES_MAX / 4 * 3 || map->names_size >= NAMES_MAX_BYTES / 4 * 3 ||
            map->lines >= METHOD_PRIORITY - 1)
            return false;
    }
    priority = map->lines++ + (line.is_stub ? 0 : METHOD_PRIORITY);
    map->ranges = vec_reserve(map->ranges, &map->capacity, map->count + 1, sizeof *map->ranges);
    map->ranges[map->count++] = (struct range){
        .start = line.start, .end = line.end, .name = add_name(map, &line), .priority = priority};
    return true;
}

/* Puts lines together from pieces of a file; of a longer line only the beginning is kept. */
struct line_reader {
    char line[LINE_MAX_BYTES];
    size_t length;
};

/* Returns false when the map is full. */
static bool feed(struct perf_map *map, struct line_reader *reader, const char *bytes, size_t size)
{
    while (size > 0) {
        const char *end = memchr(bytes, '\n', size);
        size_t length = end != NULL ? (size_t)(end - bytes) : size;
        size_t room = sizeof reader->line - reader->length;

        memcpy(reader->line + reader->length, bytes, length < room ? length : room);
        reader->length += length < room ? length : room;
        if (end != NULL) {
            if (!add_line(map, reader->line, reader->length))
                return false;
            reader->length = 0;
            length++;
        }
        bytes += length;
        size -= length;
    }
    return true;
}

int perf_map_read(struct perf_map *map, int fd)
{
    AUTO_FREE char *bytes = memory_resize(NULL, READ_BYTES, 1);
    AUTO_FREE struct line_reader *reader = memory_zeroed(1, sizeof *reader);
    bool has_room = true;
    uint64_t at = 0;
    ssize_t got = 0;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    while (has_room && at < FILE_MAX_BYTES) {
        got = file_read_at(fd, bytes, READ_BYTES, (off_t)at);
        if (got <= 0)
            break;
        at += (uint64_t)got;
        has_room = feed(map, reader, bytes, (size_t)got);
    }
    if (has_room && reader->length > 0)
        has_room = add_line(map, reader->line, reader->length);
    settle(map);
    if (got < 0)
        return (int)got;
    return has_room && at < FILE_MAX_BYTES ? 0 : 1;
}

const char *perf_map_find(const struct perf_map *map, uint64_t address)
{
    size_t low = 0;
    size_t high = map != NULL ? map->count : 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (map->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && address < map->ranges[low - 1].end ? map->names + map->ranges[low - 1].name : NULL;
}

size_t perf_map_count(const struct perf_map *map)
{
    return map != NULL ? map->count : 0;
}
