#include "profiler/model/wait.h"

#include <stddef.h>
#include <string.h>

static const char *const names[WAIT_KIND_COUNT] = {
    [WAIT_NONE] = "none",       [WAIT_RUNNABLE] = "runnable", [WAIT_DATABASE] = "database",
    [WAIT_NETWORK] = "network", [WAIT_LOCK] = "lock",         [WAIT_DISK] = "disk",
    [WAIT_SLEEP] = "sleep",     [WAIT_STOPPED] = "stopped",   [WAIT_OTHER] = "other",
};

const char *wait_kind_name(enum wait_kind kind)
{
    return names[kind];
}

bool wait_kind_parse(const char *name, enum wait_kind *ret_kind)
{
    for (size_t i = 0; i < WAIT_KIND_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret_kind = (enum wait_kind)i;
            return true;
        }
    }
    return false;
}
