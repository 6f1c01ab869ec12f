#include "exporters/reason.h"

static const struct {
    const char *name;
    const char *label;
} texts[REASON_COUNT] = {
    [REASON_ON_CPU] = {"cpu", "on CPU"},
    [REASON_RUNNABLE] = {"runnable", "waiting for a CPU"},
    [REASON_DATABASE] = {"database", "database"},
    [REASON_NETWORK] = {"network", "network"},
    [REASON_LOCK] = {"lock", "lock"},
    [REASON_DISK] = {"disk", "disk"},
    [REASON_SLEEP] = {"sleep", "sleep"},
    [REASON_OTHER] = {"other", "other wait"},
    [REASON_STOPPED] = {"stopped", "stopped"},
    [REASON_UNKNOWN] = {"unknown", "not known"},
    [REASON_IDLE] = {"idle", "idle"},
};

static enum reason reason_of_wait(enum wait_kind wait)
{
    switch (wait) {
    case WAIT_RUNNABLE:
        return REASON_RUNNABLE;
    case WAIT_DATABASE:
        return REASON_DATABASE;
    case WAIT_NETWORK:
        return REASON_NETWORK;
    case WAIT_LOCK:
        return REASON_LOCK;
    case WAIT_DISK:
        return REASON_DISK;
    case WAIT_SLEEP:
        return REASON_SLEEP;
    case WAIT_STOPPED:
        return REASON_STOPPED;
    case WAIT_OTHER:
        return REASON_OTHER;
    case WAIT_NONE: /* the leaf is no wait: "[lost]", "[blocked: stack not permitted]" */
    case WAIT_KIND_COUNT:
        break;
    }
    return REASON_UNKNOWN;
}

enum reason reason_of(enum thread_state state, enum wait_kind wait)
{
    switch (state) {
    case STATE_ON_CPU:
        return REASON_ON_CPU;
    case STATE_RUNNABLE:
        return REASON_RUNNABLE;
    case STATE_BLOCKED:
        return reason_of_wait(wait);
    case STATE_IDLE:
        return REASON_IDLE;
    case STATE_STOPPED:
        return REASON_STOPPED;
    case STATE_UNKNOWN:
    case STATE_COUNT:
        break;
    }
    return REASON_UNKNOWN;
}

const char *reason_label(enum reason reason)
{
    return texts[reason].label;
}

const char *reason_name(enum reason reason)
{
    return texts[reason].name;
}
