#include "profiler/unwind/unwinder.h"

#include <string.h>

const struct unwinder_backend *const unwinder_backends[] = {
    &unwind_libunwind,
    &unwind_fp,
    NULL,
};

const struct unwinder_backend *unwinder_find(const char *name)
{
    for (size_t i = 0; unwinder_backends[i] != NULL; i++)
        if (strcmp(unwinder_backends[i]->name, name) == 0)
            return unwinder_backends[i];
    return NULL;
}
