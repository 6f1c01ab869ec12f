/* A speedscope file of any bytes, in two pieces. What is read can be summed up, written, and read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporters/exporter.h"
#include "exporters/speedscope_read.h"
#include "profiler/cli/summary_json.h"
#include "profiler/cli/summary_text.h"

static struct profile *read_bytes(const void *data, size_t size)
{
    struct speedscope_file *file = speedscope_file_create();
    struct profile *profile = NULL;
    struct error err = {0};

    if (speedscope_file_feed(file, data, size / 2, &err) < 0 ||
        speedscope_file_feed(file, (const char *)data + size / 2, size - size / 2, &err) < 0 ||
        speedscope_file_end(file, &err) < 0 || speedscope_read(file, "fuzz", &profile, &err) < 0) {
        if (err.code >= 0 || err.message[0] == '\0')
            abort();
        profile = NULL;
    }
    speedscope_file_destroy(file);
    return profile;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct export_options options = {.tree = {IDLE_SEPARATE, THREADS_POOL}};
    struct profile *profile = read_bytes(data, size);
    struct profile *again;
    char *bytes = NULL;
    size_t written = 0;
    FILE *out;

    if (profile == NULL)
        return 0;
    out = open_memstream(&bytes, &written);
    summary_text_print(out, profile);
    summary_json_print(out, profile);
    fflush(out);
    rewind(out);
    if (exporter_speedscope.write(profile, &options, out, NULL) < 0 || fclose(out) != 0)
        abort();
    profile_destroy(profile);
    again = read_bytes(bytes, written);
    if (again == NULL)
        abort();
    profile_destroy(again);
    free(bytes);
    return 0;
}
