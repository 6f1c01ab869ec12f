#include "profiler/collect/memory_ranges.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/file.h"
#include "profiler/collect/proc_maps.h"

enum {
    PAGE_BYTES = 4096,
    MAPS_LIMIT_BYTES = 64 * 1024 * 1024,
    READ_SHARE = 100, /* reading takes at most one part in so many of the time */
};

void memory_ranges_finish(struct memory_ranges *ranges)
{
    free(ranges->ranges.items);
    *ranges = (struct memory_ranges){0};
}

static const struct memory_range *find(const struct memory_ranges *ranges, uint64_t address)
{
    size_t low = 0;
    size_t high = ranges->ranges.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct memory_range *range = &ranges->ranges.items[middle];

        if (address < range->start)
            high = middle;
        else if (address >= range->end)
            low = middle + 1;
        else
            return range;
    }
    return NULL;
}

static void read_maps(struct memory_ranges *ranges, pid_t pid)
{
    AUTO_FREE char *text = NULL;
    char path[32];
    size_t size = 0;
    size_t used = 0;
    struct proc_maps_line line;

    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    if (file_read(AT_FDCWD, path, MAPS_LIMIT_BYTES, &text, &size) < 0)
        return;
    ranges->ranges.count = 0;
    while (used < size) {
        long length = proc_maps_parse_line(text + used, size - used, &line);

        if (length <= 0)
            return;
        used += (size_t)length;
        VEC_PUSH(&ranges->ranges, ((struct memory_range){.start = line.start, .end = line.end}));
    }
}

bool memory_ranges_find(struct memory_ranges *ranges, pid_t pid, uint64_t address,
                        struct memory_range *ret_range)
{
    const struct memory_range *range = find(ranges, address);
    uint64_t now_ns;

    if (range == NULL) {
        now_ns = clock_now_ns();
        if (now_ns < ranges->next_read_ns)
            return false;
        read_maps(ranges, pid);
        ranges->next_read_ns = now_ns + (clock_now_ns() - now_ns) * READ_SHARE;
        range = find(ranges, address);
    }
    if (range == NULL)
        return false;
    *ret_range = *range;
    return true;
}

size_t memory_ranges_bytes_from(struct memory_ranges *ranges, pid_t pid, uint64_t address, size_t limit_bytes)
{
    struct memory_range range;
    uint64_t bytes = memory_ranges_find(ranges, pid, address, &range) ? range.end - address
                                                                      : PAGE_BYTES - address % PAGE_BYTES;

    return bytes < limit_bytes ? (size_t)bytes : limit_bytes;
}
