/* Walks a text as the reader of /proc/PID/maps does: each line is parsed, one that is none is skipped. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collect/proc_maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t at = 0;

    while (at < size) {
        struct proc_maps_line line;
        long r = proc_maps_parse_line(text + at, size - at, &line);

        if (r == 0)
            abort();
        if (r > 0) {
            if (line.start >= line.end || (size_t)r > size - at || line.path < text + at ||
                line.path + line.path_length > text + at + r)
                abort();
            at += (size_t)r;
            continue;
        }
        {
            const char *newline = memchr(text + at, '\n', size - at);

            at = newline != NULL ? (size_t)(newline - text) + 1 : size;
        }
    }
    return 0;
}
