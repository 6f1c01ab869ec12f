#include "profiler/collect/perf_event_set.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "profiler/base/memory.h"
#include "profiler/collect/cpu_list.h"
#include "profiler/collect/perf_registers.h"

enum {
    WAKEUP_SHARE = 4,                /* readers are woken when this part of a ring is new */
    SMALLEST_RING_BYTES = 64 * 1024, /* more than the largest record, with a copy of 32 KiB */
};

void perf_event_set_init(struct perf_event_set *set)
{
    *set = (struct perf_event_set){0};
    set->cpu_count = cpu_list_read_online(&set->cpus);
    set->ring_count = set->cpu_count * PERF_RING_CLASS_COUNT;
    set->rings = memory_zeroed(set->ring_count, sizeof *set->rings);
    set->ring_fds = memory_zeroed(set->ring_count, sizeof *set->ring_fds);
    for (size_t i = 0; i < set->ring_count; i++)
        set->ring_fds[i] = -1;
    set->layout.registers_mask = perf_registers_mask;
}

static void close_all(struct perf_event_set *set)
{
    for (size_t i = 0; i < set->ring_count; i++) {
        perf_ring_finish(&set->rings[i]);
        set->ring_fds[i] = -1;
    }
    for (size_t i = 0; i < set->events.count; i++)
        close(set->events.items[i].fd);
    set->events.count = 0;
    id_map_clear(&set->source_by_id);
    id_map_clear(&set->owner_by_id);
}

void perf_event_set_finish(struct perf_event_set *set)
{
    close_all(set);
    free(set->events.items);
    free(set->rings);
    free(set->ring_fds);
    free(set->cpus);
    id_map_finish(&set->source_by_id);
    id_map_finish(&set->owner_by_id);
    *set = (struct perf_event_set){0};
}

/* Takes over fd, also on failure. */
static int keep_event(struct perf_event_set *set, int fd, const struct perf_event_spec *spec, size_t ring,
                      pid_t owner_tid)
{
    uint64_t id;
    int r = perf_event_read_id(fd, &id);
    if (r < 0) {
        close(fd);
        return r;
    }
    id_map_put(&set->source_by_id, id, (uint32_t)spec->source);
    if (owner_tid > 0)
        id_map_put(&set->owner_by_id, id, (uint32_t)owner_tid);
    set->layout.sample_type[spec->source] = perf_event_sample_type(spec);
    VEC_PUSH(&set->events, ((struct perf_event_handle){.fd = fd, .ring = ring}));
    return fd;
}

/* A CPU may go offline between its listing and now: it has no ring then, and no events. */
static bool cpu_is_gone(int code)
{
    return code == -ENODEV || code == -ENXIO;
}

static int open_ring_events(struct perf_event_set *set, const struct perf_ring_plan *plan)
{
    for (size_t i = 0; i < set->ring_count; i++) {
        const struct perf_event_spec *spec = &plan->spec[perf_event_set_ring_class(i)];
        if (plan->bytes[perf_event_set_ring_class(i)] == 0)
            continue;
        int fd = perf_event_open(spec, plan->tid, set->cpus[i / PERF_RING_CLASS_COUNT]);
        if (cpu_is_gone(fd))
            continue;
        if (fd >= 0)
            fd = keep_event(set, fd, spec, i, 0);
        if (fd < 0)
            return fd;
        set->ring_fds[i] = fd;
    }
    return 0;
}

/* Returns the bytes of all rings, or -errno. */
static int64_t map_all(const struct perf_event_set *set, const size_t bytes[PERF_RING_CLASS_COUNT])
{
    int64_t total_bytes = 0;
    for (size_t i = 0; i < set->ring_count; i++) {
        size_t ring_bytes = bytes[perf_event_set_ring_class(i)];
        if (set->ring_fds[i] < 0)
            continue;
        int r = perf_ring_map(&set->rings[i], set->ring_fds[i], ring_bytes);
        if (r < 0)
            return r;
        total_bytes += (int64_t)ring_bytes;
    }
    return total_bytes;
}

/* Halves the larger rings first: they hold stacks. */
static bool shrink(size_t bytes[PERF_RING_CLASS_COUNT])
{
    size_t largest = 0;
    for (size_t i = 0; i < PERF_RING_CLASS_COUNT; i++)
        largest = bytes[i] > largest ? bytes[i] : largest;
    if (largest <= SMALLEST_RING_BYTES)
        return false;
    for (size_t i = 0; i < PERF_RING_CLASS_COUNT; i++) {
        if (bytes[i] == largest)
            bytes[i] /= 2;
    }
    return true;
}

int64_t perf_event_set_map_rings(struct perf_event_set *set, const struct perf_ring_plan *plan,
                                 const struct perf_privileges *privileges, struct error *err)
{
    struct perf_ring_plan own = *plan;
    for (;;) {
        /* The wake-up level is part of the event, so smaller rings mean other events. */
        for (size_t i = 0; i < PERF_RING_CLASS_COUNT; i++)
            own.spec[i].wakeup_bytes = set->wakeup_bytes[i] = (uint32_t)(own.bytes[i] / WAKEUP_SHARE);
        int r = open_ring_events(set, &own);
        if (r < 0)
            return perf_refusal_explain(err, r, privileges, "open perf events");
        int64_t total_bytes = map_all(set, own.bytes);
        if (total_bytes >= 0)
            return total_bytes;
        bool too_much = total_bytes == -EPERM || total_bytes == -EAGAIN || total_bytes == -ENOMEM;
        if (!too_much || !shrink(own.bytes))
            return perf_refusal_explain_ring(err, (int)total_bytes, privileges);
        close_all(set);
    }
}

int perf_event_set_add(struct perf_event_set *set, const struct perf_event_spec *spec, pid_t tid,
                       size_t cpu_index, enum perf_ring_class ring_class, pid_t owner_tid)
{
    size_t ring = perf_event_set_ring(cpu_index, ring_class);
    if (set->ring_fds[ring] < 0)
        return -ENODEV;
    struct perf_event_spec own = *spec;
    own.wakeup_bytes = set->wakeup_bytes[ring_class];
    int fd = perf_event_open(&own, tid, set->cpus[cpu_index]);
    if (fd < 0)
        return fd;
    if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, set->ring_fds[ring]) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    return keep_event(set, fd, &own, ring, owner_tid);
}

void perf_event_set_keep(struct perf_event_set *set, int fd)
{
    VEC_PUSH(&set->events, ((struct perf_event_handle){.fd = fd, .ring = SIZE_MAX}));
}

int perf_event_set_enable(const struct perf_event_set *set, struct error *err)
{
    for (size_t i = 0; i < set->events.count; i++) {
        if (ioctl(set->events.items[i].fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
            return error_set(err, -errno, "switch perf events on");
    }
    return 0;
}

void perf_event_set_disable(const struct perf_event_set *set)
{
    for (size_t i = 0; i < set->events.count; i++)
        ioctl(set->events.items[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t perf_event_set_lost(const struct perf_event_set *set, size_t ring)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < set->events.count; i++) {
        if (set->events.items[i].ring == ring)
            lost += perf_event_read_lost(set->events.items[i].fd);
    }
    return lost;
}
