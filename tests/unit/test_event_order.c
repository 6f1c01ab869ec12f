/* Rings in ordinary memory, merged. Records are fork records: their time stands in the trailer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "profiler/base/clock.h"
#include "profiler/collect/event_order.h"

enum { RINGS = 5, RING_BYTES = 4096, RECORD_BYTES = 72, RECORDS_PER_RING = RING_BYTES / RECORD_BYTES };

struct fixture {
    struct perf_event_mmap_page pages[RINGS];
    _Alignas(8) uint8_t data[RINGS][RING_BYTES];
    struct perf_ring rings[RINGS];
    struct id_map sources;
    struct perf_layout layout;
    struct event_order *order;
};

static int set_up(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof f);
    f.layout.source_by_id = &f.sources;
    for (size_t i = 0; i < RINGS; i++) {
        if (i != 3) /* one that is not mapped */
            perf_ring_init(&f.rings[i], &f.pages[i], f.data[i], RING_BYTES);
    }
    f.order = event_order_create(f.rings, RINGS, &f.layout);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    event_order_destroy(f->order);
    for (size_t i = 0; i < RINGS; i++)
        perf_ring_finish(&f->rings[i]);
    return 0;
}

/* False when the ring has no room: the kernel would count a loss. */
static bool write_record(struct fixture *f, size_t ring, uint64_t time_ns)
{
    struct perf_event_mmap_page *page = &f->pages[ring];
    uint8_t bytes[RECORD_BYTES] = {0};
    struct perf_event_header header = {.type = PERF_RECORD_FORK, .size = RECORD_BYTES};
    if (page->data_head - page->data_tail + RECORD_BYTES > RING_BYTES)
        return false;
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + RECORD_BYTES - 24, &time_ns, sizeof time_ns);
    for (size_t i = 0; i < RECORD_BYTES; i++)
        f->data[ring][(page->data_head + i) % RING_BYTES] = bytes[i];
    page->data_head += RECORD_BYTES;
    return true;
}

/* Reads a pass to its end; every record must be no older than *latest_ns. Returns how many there were. */
static unsigned read_pass(struct fixture *f, uint64_t now_ns, uint64_t *latest_ns)
{
    struct ordered_record record;
    unsigned count = 0;
    event_order_begin_pass(f->order, now_ns);
    while (event_order_next(f->order, &record)) {
        assert_true(record.time_ns >= *latest_ns);
        assert_int_equal(record.size_bytes, RECORD_BYTES);
        *latest_ns = record.time_ns;
        count++;
    }
    return count;
}

static void test_merges_by_time(void **state)
{
    struct fixture *f = *state;
    struct ordered_record record;
    uint64_t expected_ns = 1;
    for (uint64_t time_ns = 1; time_ns <= 100; time_ns++) {
        size_t ring = (size_t)(time_ns * 7 % RINGS);
        write_record(f, ring == 3 ? 0 : ring, time_ns);
    }
    event_order_drain(f->order);
    event_order_begin_pass(f->order, 1000);
    while (event_order_next(f->order, &record))
        assert_int_equal(record.time_ns, expected_ns++);
    assert_int_equal(expected_ns, 101);
    assert_int_equal(event_order_late_count(f->order), 0);
}

/* A record is held back until a pass begins after the one that began after it. */
static void test_horizon(void **state)
{
    struct fixture *f = *state;
    uint64_t latest_ns = 0, ms = NS_PER_MS;
    write_record(f, 0, 5 * ms);
    assert_int_equal(read_pass(f, 10 * ms, &latest_ns), 0); /* an older one may be on its way */
    write_record(f, 1, 3 * ms);                             /* and here it is */
    write_record(f, 0, 15 * ms);
    assert_int_equal(read_pass(f, 20 * ms, &latest_ns), 2);
    assert_int_equal(latest_ns, 5 * ms);
    write_record(f, 1, 14 * ms);
    assert_int_equal(read_pass(f, 30 * ms, &latest_ns), 2);
    assert_int_equal(latest_ns, 15 * ms);
    assert_int_equal(event_order_late_count(f->order), 0);
}

/* Two passes right after each other prove nothing about records that are on their way. */
static void test_hasty_passes(void **state)
{
    struct fixture *f = *state;
    uint64_t latest_ns = 0, ms = NS_PER_MS;
    write_record(f, 0, 5 * ms);
    assert_int_equal(read_pass(f, 10 * ms, &latest_ns), 0);
    assert_int_equal(read_pass(f, 10 * ms + 1000, &latest_ns), 0);
    write_record(f, 1, 4 * ms);
    assert_int_equal(read_pass(f, 12 * ms, &latest_ns), 2);
}

static void test_drain(void **state)
{
    struct fixture *f = *state;
    uint64_t latest_ns = 0;
    write_record(f, 0, 500);
    write_record(f, 1, 400);
    event_order_drain(f->order);
    assert_int_equal(read_pass(f, 1000, &latest_ns), 2);
    assert_int_equal(read_pass(f, 2000, &latest_ns), 0);
}

/* A ring that is more than half full is read down to half, with what is older elsewhere, whatever the
 * horizon. */
static void test_crowded(void **state)
{
    struct fixture *f = *state;
    uint64_t latest_ns = 0;
    unsigned crowd = RECORDS_PER_RING - 2;
    write_record(f, 1, 150);
    for (unsigned i = 0; i < crowd; i++)
        assert_true(write_record(f, 0, 100 + i * 10));
    write_record(f, 1, 100000);
    unsigned count = read_pass(f, 200000, &latest_ns);
    assert_true(perf_ring_used_bytes(&f->rings[0]) <= RING_BYTES / 2);
    assert_true(perf_ring_used_bytes(&f->rings[0]) > RING_BYTES / 2 - RECORD_BYTES); /* and no further */
    assert_int_equal(count, crowd - perf_ring_used_bytes(&f->rings[0]) / RECORD_BYTES + 1);
    assert_int_equal(perf_ring_used_bytes(&f->rings[1]), RECORD_BYTES);
    assert_int_equal(event_order_late_count(f->order), 0);
}

static void test_previous_time(void **state)
{
    struct fixture *f = *state;
    struct ordered_record record;
    write_record(f, 0, 100);
    write_record(f, 1, 150);
    write_record(f, 0, 200);
    event_order_drain(f->order);
    event_order_begin_pass(f->order, 1000);
    assert_true(event_order_next(f->order, &record));
    assert_int_equal(record.previous_ns, 0);
    assert_true(event_order_next(f->order, &record));
    assert_int_equal(record.ring, 1);
    assert_int_equal(record.previous_ns, 0);
    assert_true(event_order_next(f->order, &record));
    assert_int_equal(record.previous_ns, 100);
    assert_false(event_order_next(f->order, &record));
    assert_int_equal(event_order_last_ns(f->order, 0), 200);
    assert_int_equal(event_order_last_ns(f->order, 2), 0);
}

static void test_late_records_are_counted(void **state)
{
    struct fixture *f = *state;
    struct ordered_record record;
    write_record(f, 0, 200);
    write_record(f, 0, 100); /* an interrupt's record before that of the code which it interrupted */
    write_record(f, 1, 300);
    event_order_drain(f->order);
    event_order_begin_pass(f->order, 1000);
    while (event_order_next(f->order, &record)) {
    }
    assert_int_equal(event_order_late_count(f->order), 1);
}

/* A writer for each ring and a reader that now and then comes late: everything arrives once and in order,
 * unless a ring was full. */
static void test_long_run(void **state)
{
    struct fixture *f = *state;
    uint64_t latest_ns = 0, now_ns = NS_PER_S, written = 0, read = 0;
    unsigned seed = 1;
    for (unsigned round = 0; round < 2000; round++) {
        unsigned burst = (unsigned)rand_r(&seed) % 40;
        for (unsigned i = 0; i < burst; i++) {
            size_t ring = (size_t)rand_r(&seed) % RINGS;
            now_ns += 1 + (uint64_t)rand_r(&seed) % 1000;
            written += ring != 3 && write_record(f, ring, now_ns);
        }
        now_ns += 2 * NS_PER_MS;
        read += read_pass(f, now_ns, &latest_ns);
    }
    event_order_drain(f->order);
    read += read_pass(f, now_ns, &latest_ns);
    assert_true(written > 10000);
    assert_int_equal(read, written);
    assert_int_equal(event_order_late_count(f->order), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_merges_by_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_horizon, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hasty_passes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_drain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_crowded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_previous_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_late_records_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_run, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
