/* A name of any bytes, after each of the prefixes that make a name mangled. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/symbolize/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char kinds[] = "ZRD";
    char *name = calloc(size + 3, 1);

    if (name == NULL)
        abort();
    memcpy(name + 2, data, size);
    for (size_t i = 0; i < sizeof kinds - 1; i++) {
        char *demangled;

        name[0] = '_';
        name[1] = kinds[i];
        demangled = demangle_name(name);
        if (demangled == NULL || demangled[0] == '\0')
            abort();
        free(demangled);
    }
    free(name);
    return 0;
}
