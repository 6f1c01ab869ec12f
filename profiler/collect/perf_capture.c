#include "profiler/collect/perf_capture.h"

#include <poll.h>
#include <stdlib.h>

#include "profiler/base/clock.h"
#include "profiler/base/memory.h"
#include "profiler/collect/event_order.h"
#include "profiler/collect/perf_scope.h"
#include "profiler/collect/perf_task_events.h"

struct perf_capture {
    struct perf_scope scope;
    struct event_order *order;
    bool in_pass;
    bool stopped;
    uint64_t stopped_ns;
    uint64_t bad_count;
    uint64_t *lost_told;   /* for each ring, by RECORD_LOST */
    size_t lost_next;      /* after the stop: the ring whose untold losses come next */
    struct pollfd *polled; /* one a ring, and the caller's */
    size_t polled_rings;
};

int perf_capture_open(const struct perf_capture_options *options, struct perf_capture **ret_capture,
                      struct error *err)
{
    struct perf_scope scope;
    int r = perf_scope_open(options, &scope, err);
    if (r < 0)
        return r;
    struct perf_capture *capture = memory_zeroed(1, sizeof *capture);
    capture->scope = scope;
    struct perf_event_set *set = &capture->scope.set;
    set->layout.source_by_id = &set->source_by_id;
    capture->order = event_order_create(set->rings, set->ring_count, &set->layout);
    capture->lost_told = memory_zeroed(set->ring_count, sizeof *capture->lost_told);
    capture->polled = memory_zeroed(set->ring_count + 1, sizeof *capture->polled);
    for (size_t i = 0; i < set->ring_count; i++) {
        if (set->ring_fds[i] >= 0)
            capture->polled[capture->polled_rings++] =
                (struct pollfd){.fd = set->ring_fds[i], .events = POLLIN};
    }
    *ret_capture = capture;
    return 0;
}

void perf_capture_close(struct perf_capture *capture)
{
    if (capture == NULL)
        return;
    event_order_destroy(capture->order);
    perf_scope_finish(&capture->scope);
    free(capture->lost_told);
    free(capture->polled);
    free(capture);
}

const struct perf_capture_choice *perf_capture_choice(const struct perf_capture *capture)
{
    return &capture->scope.choice;
}

int perf_capture_start(struct perf_capture *capture, struct error *err)
{
    return perf_event_set_enable(&capture->scope.set, err);
}

void perf_capture_stop(struct perf_capture *capture)
{
    if (capture->stopped)
        return;
    perf_event_set_disable(&capture->scope.set);
    capture->stopped = true;
    capture->stopped_ns = clock_now_ns();
    capture->in_pass = false;
    event_order_drain(capture->order);
}

void perf_capture_wait(struct perf_capture *capture, int timeout_ms, int extra_fd)
{
    struct pollfd *polled = capture->polled;
    size_t count = capture->polled_rings;
    polled[count] = (struct pollfd){.fd = extra_fd, .events = POLLIN};
    if (poll(polled, count + 1, timeout_ms) <= 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if ((polled[i].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0)
            polled[i].fd = -1; /* its CPU went offline: it would wake us for ever */
    }
}

/* A thread that was born while the threads were listed may have inherited the events of its creator and have
 * its own: what the former write of it is there twice. */
static bool is_duplicate(struct perf_capture *capture, const struct perf_record *record)
{
    struct id_map *opened_tids = &capture->scope.opened_tids;
    uint32_t owner_tid, events;
    if (opened_tids->count == 0)
        return false;
    if (record->type == RECORD_EXIT) {
        bool own = !id_map_get(&capture->scope.set.owner_by_id, record->event_id, &owner_tid) ||
                   owner_tid == (uint32_t)record->task.tid;
        if (own) /* the number may come again, for a thread that has inherited ones alone */
            id_map_remove(opened_tids, (uint64_t)record->task.tid);
    } else if (record->type == RECORD_COMM && record->comm.exec) {
        id_map_remove(opened_tids,
                      (uint64_t)record->comm.tid); /* any thread's exec makes it the main thread */
    }
    return id_map_get(&capture->scope.set.owner_by_id, record->event_id, &owner_tid) &&
           owner_tid != (uint32_t)record->tid && id_map_get(opened_tids, (uint64_t)record->tid, &events) &&
           events == PERF_THREAD_OWN;
}

static void complete_lost(const struct ordered_record *raw, struct perf_record *record)
{
    record->lost.since_ns = raw->previous_ns;
    record->lost.stacks_only = perf_event_set_ring_class(raw->ring) == PERF_RING_STACKS;
}

/* What cannot be parsed is lost too. */
static void make_lost(const struct perf_capture *capture, const struct ordered_record *raw,
                      struct perf_record *ret_record)
{
    *ret_record = (struct perf_record){.type = RECORD_LOST, .time_ns = raw->time_ns, .pid = -1, .tid = -1};
    ret_record->cpu = (uint32_t)capture->scope.set.cpus[raw->ring / PERF_RING_CLASS_COUNT];
    ret_record->lost.count = 1;
    complete_lost(raw, ret_record);
}

/* The kernel tells a loss with the next record that fits in. When none came any more, its counters tell. */
static bool next_untold_loss(struct perf_capture *capture, struct perf_record *ret_record)
{
    const struct perf_event_set *set = &capture->scope.set;
    while (capture->lost_next < set->ring_count) {
        size_t ring = capture->lost_next++;
        uint64_t lost = perf_event_set_lost(set, ring);
        if (lost <= capture->lost_told[ring])
            continue;
        *ret_record =
            (struct perf_record){.type = RECORD_LOST, .time_ns = capture->stopped_ns, .pid = -1, .tid = -1};
        ret_record->cpu = (uint32_t)set->cpus[ring / PERF_RING_CLASS_COUNT];
        ret_record->lost.count = lost - capture->lost_told[ring];
        ret_record->lost.since_ns = event_order_last_ns(capture->order, ring);
        ret_record->lost.stacks_only = perf_event_set_ring_class(ring) == PERF_RING_STACKS;
        return true;
    }
    return false;
}

bool perf_capture_next(struct perf_capture *capture, struct perf_record *ret_record)
{
    struct ordered_record raw;
    if (!capture->in_pass) {
        event_order_begin_pass(capture->order, clock_now_ns());
        capture->in_pass = true;
    }
    while (event_order_next(capture->order, &raw)) {
        if (perf_record_parse(raw.bytes, raw.size_bytes, &capture->scope.set.layout, ret_record) < 0) {
            capture->bad_count++;
            make_lost(capture, &raw, ret_record);
            return true;
        }
        if (is_duplicate(capture, ret_record))
            continue;
        if (ret_record->type == RECORD_LOST) {
            complete_lost(&raw, ret_record);
            capture->lost_told[raw.ring] += ret_record->lost.count;
        }
        return true;
    }
    capture->in_pass = false;
    return capture->stopped && next_untold_loss(capture, ret_record);
}

void perf_capture_add_process(struct perf_capture *capture, pid_t pid)
{
    if (capture->scope.filter != NULL)
        perf_filter_add(capture->scope.filter, pid);
}

void perf_capture_remove_process(struct perf_capture *capture, pid_t pid)
{
    if (capture->scope.filter != NULL)
        perf_filter_remove(capture->scope.filter, pid);
}

uint64_t perf_capture_bad_records(const struct perf_capture *capture)
{
    uint64_t count = capture->bad_count;
    for (size_t i = 0; i < capture->scope.set.ring_count; i++)
        count += capture->scope.set.rings[i].corrupt;
    return count;
}
