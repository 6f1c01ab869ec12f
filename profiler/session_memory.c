#include <errno.h>

#include "profiler/session_internal.h"

/* A read that hangs is given up: its owner's memory is left alone from then on, each further one is given half as long, and
 * after so many of them all memory is left alone. */
enum { READ_TIMEOUT_MS = 100, LEAST_TIMEOUT_MS = 10, MAX_HANGS = 16 };

static int timeout_ms(const struct session_memory *memory)
{
    int shortened = memory->hangs < 8 ? READ_TIMEOUT_MS >> memory->hangs : 0;

    return shortened > LEAST_TIMEOUT_MS ? shortened : LEAST_TIMEOUT_MS;
}

static bool start_reader(struct session_memory *memory)
{
    if (memory->reader.bytes != NULL)
        return true;
    if (tick_reader_start(&memory->reader, TICK_READER_MEMORY_BYTES, NULL) == 0)
        return true;
    memory->hangs = MAX_HANGS;
    return false;
}

static void give_up(struct session_memory *memory, uint64_t owner_key)
{
    id_map_put(&memory->hung, owner_key, 1);
    memory->hangs++;
    if (tick_reader_restart(&memory->reader, NULL) < 0)
        memory->hangs = MAX_HANGS;
}

ssize_t session_read_memory(struct session *session, const struct memory_owner *owner, uint64_t address,
                            size_t size_bytes, const uint8_t **ret_bytes)
{
    struct session_memory *memory = &session->memory;
    struct tick_memory asked = {.pid = owner->process->pid, .address = address, .size_bytes = size_bytes};
    uint64_t owner_key = hash_mix(owner->process->id, (uint64_t)owner->tid);
    uint32_t unused;
    ssize_t got;

    if (memory->hangs >= MAX_HANGS || id_map_get(&memory->hung, owner_key, &unused) || !start_reader(memory))
        return -EFAULT;
    got = tick_reader_read_memory(&memory->reader, &asked, 0, timeout_ms(memory));
    if (got == -ETIMEDOUT || got == -EPIPE)
        give_up(memory, owner_key);
    if (got > 0)
        *ret_bytes = memory->reader.bytes;
    return got;
}

uint64_t session_memory_cpu_ns(const struct session *session)
{
    return session->memory.reader.bytes != NULL ? tick_reader_cpu_ns(&session->memory.reader) : 0;
}

void session_memory_close(struct session *session)
{
    if (session->memory.reader.bytes != NULL)
        tick_reader_stop(&session->memory.reader);
    id_map_finish(&session->memory.hung);
}
