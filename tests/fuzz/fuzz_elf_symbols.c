/* A file of any bytes as a mapped binary: added, read for its symbols, asked for a few addresses. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/symbolize/symbolizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t addresses[] = {0, 0x1000, 0x1139, 0x401000, UINT64_MAX};
    struct binary_table *binaries = binary_table_create();
    struct symbolizer_context context = {.binaries = binaries};
    struct symbolizer *symbolizer = symbolizer_create(&context);
    struct binary_key key = {.device = 1, .inode = 1};
    int fd = memfd_create("binary", MFD_CLOEXEC);
    struct location location = {.kind = LOCATION_USER};
    struct symbol symbol;

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    location.owner = binary_table_add_file(binaries, &key, "/fuzzed", fd)->id;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        location.address = addresses[i];
        symbolizer_resolve(symbolizer, &location, &symbol);
        if (symbol.name[0] == '\0')
            abort();
    }
    symbolizer_destroy(symbolizer);
    binary_table_destroy(binaries);
    return 0;
}
