/* Rings in ordinary memory, with a writer that does as the kernel does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "profiler/collect/perf_ring.h"

enum { RING_BYTES = 256 };

struct fake_ring {
    struct perf_event_mmap_page page;
    _Alignas(8) uint8_t data[RING_BYTES];
    struct perf_ring ring;
};

static void write_bytes(struct fake_ring *fake, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    for (size_t i = 0; i < size; i++)
        fake->data[(fake->page.data_head + i) % RING_BYTES] = from[i];
    fake->page.data_head += size;
}

/* A record of size bytes, all of its body the same byte. */
static void write_record(struct fake_ring *fake, uint16_t size, uint8_t fill)
{
    struct perf_event_header header = {.type = fill, .size = size};
    uint8_t body[RING_BYTES];
    memset(body, fill, sizeof body);
    write_bytes(fake, &header, sizeof header);
    write_bytes(fake, body, size - sizeof header);
}

static int set_up(void **state)
{
    static struct fake_ring fake;
    memset(&fake, 0, sizeof fake);
    perf_ring_init(&fake.ring, &fake.page, fake.data, RING_BYTES);
    *state = &fake;
    return 0;
}

static int tear_down(void **state)
{
    struct fake_ring *fake = *state;
    perf_ring_finish(&fake->ring);
    return 0;
}

static void check_record(struct fake_ring *fake, size_t size, uint8_t fill)
{
    size_t got;
    const uint8_t *bytes = perf_ring_peek(&fake->ring, &got);
    assert_non_null(bytes);
    assert_int_equal((uintptr_t)bytes % 8, 0);
    assert_int_equal(got, size);
    for (size_t i = sizeof(struct perf_event_header); i < size; i++)
        assert_int_equal(bytes[i], fill);
}

static void test_empty(void **state)
{
    struct fake_ring *fake = *state;
    size_t size;
    perf_ring_refresh(&fake->ring);
    assert_null(perf_ring_peek(&fake->ring, &size));
    assert_int_equal(perf_ring_used_bytes(&fake->ring), 0);
}

static void test_peek_stays(void **state)
{
    struct fake_ring *fake = *state;
    write_record(fake, 24, 1);
    write_record(fake, 40, 2);
    perf_ring_refresh(&fake->ring);
    assert_int_equal(perf_ring_used_bytes(&fake->ring), 64);
    check_record(fake, 24, 1);
    check_record(fake, 24, 1);
    perf_ring_consume(&fake->ring);
    check_record(fake, 40, 2);
    assert_int_equal(perf_ring_used_bytes(&fake->ring), 40);
}

/* Nothing that came after the refresh is seen before the next one. */
static void test_refresh(void **state)
{
    struct fake_ring *fake = *state;
    size_t size;
    write_record(fake, 24, 1);
    assert_null(perf_ring_peek(&fake->ring, &size));
    perf_ring_refresh(&fake->ring);
    write_record(fake, 24, 2);
    check_record(fake, 24, 1);
    perf_ring_consume(&fake->ring);
    assert_null(perf_ring_peek(&fake->ring, &size));
}

/* Records of every size go round and round: sooner or later each wraps at each place. */
static void test_wrap_round(void **state)
{
    struct fake_ring *fake = *state;
    unsigned wrapped = 0;
    for (unsigned i = 0; i < 5000; i++) {
        uint16_t size = (uint16_t)(8 + i * 8 % 136);
        uint64_t start = fake->page.data_head % RING_BYTES;
        wrapped += start + size > RING_BYTES;
        write_record(fake, size, (uint8_t)i);
        perf_ring_refresh(&fake->ring);
        check_record(fake, size, (uint8_t)i);
        perf_ring_consume(&fake->ring);
        perf_ring_release(&fake->ring);
        assert_int_equal(fake->page.data_tail, fake->page.data_head);
    }
    assert_true(wrapped > 100);
}

/* The room of a record is not given back while it is looked at. */
static void test_release(void **state)
{
    struct fake_ring *fake = *state;
    write_record(fake, 64, 1);
    write_record(fake, 64, 2);
    perf_ring_refresh(&fake->ring);
    check_record(fake, 64, 1);
    perf_ring_release(&fake->ring);
    assert_int_equal(fake->page.data_tail, 0);
    perf_ring_consume(&fake->ring); /* a sixteenth of the ring is enough to tell the kernel at once */
    assert_int_equal(fake->page.data_tail, 64);
}

/* Header sizes that make no sense: what is there is skipped, counted, and the next record is found again. */
static void test_corrupt(void **state)
{
    struct fake_ring *fake = *state;
    const uint16_t bad_sizes[] = {0, 4, 12, 48, 65528};
    uint64_t bad = 0;
    size_t size;
    for (size_t i = 0; i < sizeof bad_sizes / sizeof bad_sizes[0]; i++) {
        struct perf_event_header header = {.type = 1, .size = bad_sizes[i]};
        uint8_t body[16] = {0};
        write_bytes(fake, &header, sizeof header);
        write_bytes(fake, body, sizeof body);
        perf_ring_refresh(&fake->ring);
        assert_null(perf_ring_peek(&fake->ring, &size));
        assert_int_equal(fake->ring.corrupt, ++bad);
        write_record(fake, 32, 7);
        perf_ring_refresh(&fake->ring);
        check_record(fake, 32, 7);
        perf_ring_consume(&fake->ring);
    }
}

/* A head that is further ahead than the ring is long. */
static void test_mad_head(void **state)
{
    struct fake_ring *fake = *state;
    size_t size;
    fake->page.data_head = RING_BYTES + 8;
    perf_ring_refresh(&fake->ring);
    assert_null(perf_ring_peek(&fake->ring, &size));
    assert_int_equal(fake->ring.corrupt, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_empty, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_peek_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refresh, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrap_round, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_release, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_corrupt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mad_head, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
