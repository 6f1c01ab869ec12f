/* A perf map of any bytes, read twice: once whole, once cut, as one that is being written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/symbolize/perf_map.h"

static void read_bytes(struct perf_map *map, const uint8_t *data, size_t size)
{
    int fd = memfd_create("perf.map", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size || perf_map_read(map, fd) < 0)
        abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct perf_map *map = perf_map_create();
    uint64_t address = 0;

    read_bytes(map, data, size);
    read_bytes(map, data, size / 2);
    for (size_t at = 0; at + sizeof address <= size; at += sizeof address) {
        const char *name;

        memcpy(&address, data + at, sizeof address);
        name = perf_map_find(map, address);
        if (name != NULL && name[0] == '\0')
            abort();
    }
    perf_map_destroy(map);
    return 0;
}
