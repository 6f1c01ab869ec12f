#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/exporter.h"
#include "exporters/gzip_file.h"
#include "exporters/profile_file.h"
#include "exporters/speedscope.h"
#include "exporters/speedscope_read.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "tests/golden/fixtures.h"

static const struct export_options options = {.tree = {IDLE_SEPARATE, THREADS_POOL}};

static char *write_profile(const struct profile *profile, size_t *ret_size)
{
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, ret_size);

    assert_int_equal(exporter_speedscope.write(profile, &options, out, NULL), 0);
    assert_int_equal(fclose(out), 0);
    return bytes;
}

/* In pieces of that size. */
static int read_pieces(const char *bytes, size_t size, size_t piece, struct profile **ret_profile,
                       struct error *err)
{
    struct speedscope_file *file = speedscope_file_create();
    int r = 0;

    memset(err, 0, sizeof *err);
    for (size_t at = 0; r == 0 && at < size; at += piece)
        r = speedscope_file_feed(file, bytes + at, size - at < piece ? size - at : piece, err);
    if (r == 0)
        r = speedscope_file_end(file, err);
    if (r == 0)
        r = speedscope_read(file, "a.json", ret_profile, err);
    speedscope_file_destroy(file);
    return r;
}

static struct profile *read_text(const char *text)
{
    struct profile *profile = NULL;
    struct error err;

    if (read_pieces(text, strlen(text), 7, &profile, &err) < 0)
        fail_msg("%s", err.message);
    return profile;
}

static void refuse(const char *text, const char *because)
{
    struct profile *profile = NULL;
    struct error err;

    if (read_pieces(text, strlen(text), 5, &profile, &err) == 0)
        fail_msg("taken: %s", text);
    if (strstr(err.message, because) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", err.message, because);
}

static void expect_the_same_bytes(struct profile *profile)
{
    static const size_t pieces[] = {1, 13, SIZE_MAX / 2};
    size_t size = 0;
    AUTO_FREE char *bytes = write_profile(profile, &size);

    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct profile *again = NULL;
        size_t again_size = 0;
        char *again_bytes;
        struct error err;

        if (read_pieces(bytes, size, pieces[i], &again, &err) < 0)
            fail_msg("%s", err.message);
        again_bytes = write_profile(again, &again_size);
        if (size != again_size || memcmp(bytes, again_bytes, size) != 0)
            print_error("wrote\n%s\nread, and wrote\n%s\n", bytes, again_bytes);
        assert_int_equal(size, again_size);
        assert_memory_equal(bytes, again_bytes, size);
        free(again_bytes);
        profile_destroy(again);
    }
    profile_destroy(profile);
}

static void add_evidence(struct profile *profile)
{
    uint32_t frame = fixture_wait(profile, WAIT_LOCK, "[wait: lock cache_mu]");
    uint32_t stack = stack_table_push(profile->stacks, STACK_EMPTY, frame);
    struct histogram histogram = {.count = 7, .sum_ns = UINT64_C(1) << 60, .bins = {[3] = 5, [39] = 2}};

    profile->meta.cpu_count = 12;
    profile->looks = (struct profile_looks){9, 8, 7, 6, 5, 4, 3, 2, {{1, 0}, {2, 1}, {0, 0}, {4, 3}}};
    profile->loss = (struct profile_loss){6, 5, 4, 3, 2};
    profile_add_counted_wait(profile, stack, &histogram);
    profile_add_listener(profile, &(struct profile_listener){
                                      .address = string_table_intern(profile->strings, "tcp [::]:8080"),
                                      .looks = 4,
                                      .queued_looks = 3,
                                      .backlog = 128,
                                      .queue_max = 9,
                                      .queue_sum = 20,
                                      .connections_max = 100,
                                      .connections_sum = 350,
                                      .unread_max = 8,
                                      .unread_sum = 11,
                                  });
    profile_add_peer(profile, &(struct profile_peer){
                                  .address = string_table_intern(profile->strings, "tcp 10.0.0.5:5432"),
                                  .looks = 4,
                                  .in_flight_max = 16,
                                  .in_flight_sum = 60,
                                  .connections_max = 17,
                                  .connections_sum = 64,
                              });
    profile->quota = (struct profile_quota){10, 9, 8, 7, 6};
    profile_add_lock_wait(profile, &(struct lock_wait){.stack = stack,
                                                       .owner = 0,
                                                       .owner_stack = stack,
                                                       .owner_state = STATE_BLOCKED,
                                                       .waited_ns = 12345});
    profile_add_lock_wait(profile, &(struct lock_wait){.stack = stack,
                                                       .owner = LOCK_OWNER_UNKNOWN,
                                                       .owner_state = STATE_UNKNOWN,
                                                       .waited_ns = 1});
}

static void test_nothing_is_lost(void **state)
{
    struct profile *server = fixture_server();

    (void)state;
    add_evidence(server);
    server->threads[0].ledger.has_kernel_counters = true;
    server->threads[0].ledger.kernel_on_cpu_ns = (UINT64_C(1) << 60) + 1; /* no double holds it */
    expect_the_same_bytes(server);
    expect_the_same_bytes(fixture_quarter());
    expect_the_same_bytes(fixture_empty());
    expect_the_same_bytes(fixture_hostile());
}

/* Each in an order that is not that of their ids in a file. */
static void test_equal_weights_keep_their_order(void **state)
{
    struct profile *profile = fixture_new("srv (7)", NS_PER_S);
    uint32_t process = profile_add_process(profile, 7, "srv");
    uint32_t thread = profile_add_thread(profile, process, 7, "srv", true);
    uint32_t a = fixture_stack(profile, STACK_EMPTY, "main|a", "srv");
    uint32_t b = fixture_stack(profile, STACK_EMPTY, "main|b", "srv");

    (void)state;
    fixture_sample(profile, thread, 0, 20, b, STATE_ON_CPU);
    fixture_sample(profile, thread, 20, 10, a, STATE_ON_CPU);
    fixture_sample(profile, thread, 30, 10, b, STATE_IDLE);
    fixture_sample(profile, thread, 40, 10, a, STATE_IDLE);
    fixture_sample(profile, thread, 50, 10, STACK_EMPTY, STATE_UNKNOWN);
    fixture_sample(profile, thread, 70, 10, a, STATE_STOPPED); /* after a gap */
    expect_the_same_bytes(profile);
}

/* Beyond 2^53 ns the file is in microseconds. */
static void test_microseconds(void **state)
{
    struct profile *profile = fixture_new("srv (7)", (UINT64_C(1) << 54) + 999);
    uint32_t process = profile_add_process(profile, 7, "srv");
    uint32_t thread = profile_add_thread(profile, process, 7, "srv", true);
    uint32_t stack = fixture_stack(profile, STACK_EMPTY, "main", "srv");

    (void)state;
    fixture_sample(profile, thread, 0, (UINT64_C(1) << 54) + 1001, stack, STATE_ON_CPU);
    expect_the_same_bytes(profile);
}

static void test_fields_come_back(void **state)
{
    struct profile *server = fixture_server();
    size_t size = 0;
    AUTO_FREE char *bytes = NULL;
    struct profile *again = NULL;
    struct error err;

    (void)state;
    add_evidence(server);
    bytes = write_profile(server, &size);
    assert_int_equal(read_pieces(bytes, size, 4096, &again, &err), 0);
    assert_int_equal(again->meta.start_unix_ns, server->meta.start_unix_ns);
    assert_int_equal(again->meta.cpu_count, 12);
    assert_int_equal(again->thread_count, server->thread_count);
    assert_int_equal(again->frame_count, server->frame_count);
    assert_string_equal(again->meta.engines, server->meta.engines);
    assert_int_equal(again->counted_waits[0].histogram.bins[39], 2);
    assert_int_equal(again->listeners[0].connections_sum, 350);
    assert_int_equal(again->lock_waits[again->lock_wait_count - 1].owner, LOCK_OWNER_UNKNOWN);
    for (size_t i = 0; i < server->thread_count; i++) {
        assert_int_equal(again->threads[i].sample_count, server->threads[i].sample_count);
        assert_memory_equal(&again->threads[i].ledger.time_ns, &server->threads[i].ledger.time_ns,
                            sizeof server->threads[i].ledger.time_ns);
    }
    profile_destroy(server);
    profile_destroy(again);
}

#define FOREIGN(profiles)                                                                                    \
    "{\"profiles\":[" profiles "],\"name\":\"x\",\"shared\":{\"frames\":[{\"name\":\"main\"},"               \
    "{\"name\":\"f\",\"line\":3},{\"name\":\"g\"}]},\"$schema\":\"s\",\"extra\":[{\"deep\":[1,[2]]}]}"

static void test_another_program_s_samples(void **state)
{
    struct profile *profile = read_text(
        FOREIGN("{\"type\":\"sampled\",\"name\":\"t1\",\"unit\":\"milliseconds\",\"startValue\":5,"
                "\"endValue\":9.5,\"samples\":[[0,1],[],[0]],\"weights\":[2.5,1,1]},"
                "{\"type\":\"sampled\",\"name\":\"t2\",\"unit\":\"seconds\",\"startValue\":1,\"endValue\":2,"
                "\"samples\":[[0]],\"weights\":[1]}"));

    (void)state;
    assert_int_equal(profile->thread_count, 2);
    assert_string_equal(profile->meta.title, "x");
    assert_int_equal(profile->threads[0].sample_count, 2);
    assert_int_equal(profile->threads[0].samples[0].weight_ns, 2500000);
    assert_int_equal(profile->threads[0].samples[1].start_ns, 3500000);
    assert_int_equal(profile->threads[1].samples[0].start_ns, 995000000);
    assert_int_equal(profile->meta.duration_ns, 1995000000);
    assert_string_equal(string_table_get(profile->strings, profile->threads[1].name), "t2");
    profile_destroy(profile);
}

static void test_another_program_s_events(void **state)
{
    struct profile *profile = read_text(FOREIGN(
        "{\"type\":\"evented\",\"name\":\"t\",\"unit\":\"microseconds\",\"startValue\":10,\"endValue\":20,"
        "\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":10},{\"type\":\"O\",\"frame\":2,\"at\":12},"
        "{\"type\":\"C\",\"frame\":2,\"at\":15},{\"type\":\"C\",\"frame\":0,\"at\":16},"
        "{\"type\":\"O\",\"frame\":1,\"at\":18},{\"type\":\"C\",\"frame\":1,\"at\":20}]}"));
    const struct profile_thread *thread = &profile->threads[0];

    (void)state;
    assert_int_equal(thread->sample_count, 4);
    assert_int_equal(thread->samples[1].weight_ns, 3000);
    assert_int_equal(stack_table_get(profile->stacks, thread->samples[1].stack).depth, 2);
    assert_int_equal(thread->samples[3].start_ns, 8000);
    profile_destroy(profile);
}

#define SAMPLED(samples, weights)                                                                            \
    FOREIGN("{\"type\":\"sampled\",\"name\":\"t\",\"unit\":\"seconds\",\"startValue\":0,\"endValue\":1,"     \
            "\"samples\":" samples ",\"weights\":" weights "}")
#define EVENTED(events)                                                                                      \
    FOREIGN("{\"type\":\"evented\",\"name\":\"t\",\"unit\":\"seconds\",\"startValue\":0,\"endValue\":1,"     \
            "\"events\":" events "}")
#define OWN(own, profiles)                                                                                   \
    "{\"stallgraph\":{\"version\":1,\"states\":[\"on-cpu\"],\"processes\":[{\"pid\":1,\"name\":\"p\"}]," own \
    "},\"shared\":{\"frames\":[{\"name\":\"f\"}]},\"profiles\":[" profiles "]}"

static void test_broken_files_say_why(void **state)
{
    (void)state;
    refuse("", "byte 0");
    refuse("{", "byte 1");
    refuse("{\"a\":1,}", "byte");
    refuse("\"text\"", "no profile");
    refuse("{}", "no profile");
    refuse("[1]", "no profile");
    refuse(SAMPLED("[[0]]", "[1,2]"), "1 samples and 2 weights");
    refuse(SAMPLED("[[3]]", "[1]"), "frame 3 of 3");
    refuse(SAMPLED("[[-1]]", "[1]"), "no frame");
    refuse(SAMPLED("[[0.5]]", "[1]"), "no frame");
    refuse(SAMPLED("[[0]]", "[-1]"), "a weight of -1");
    refuse(SAMPLED("[[0]]", "[1e300]"), "a weight of");
    refuse(SAMPLED("[[0]]", "[1e18]"), "longer than");
    refuse(SAMPLED("[[0]]", "[1e99999]"), "a weight");
    refuse(EVENTED("[{\"type\":\"O\",\"frame\":0,\"at\":1},{\"type\":\"C\",\"frame\":0,\"at\":0}]"),
           "before");
    refuse(EVENTED("[{\"type\":\"C\",\"frame\":0,\"at\":1}]"), "not open");
    refuse(EVENTED("[{\"type\":\"O\",\"frame\":0,\"at\":0},{\"type\":\"C\",\"frame\":1,\"at\":1}]"),
           "not open");
    refuse(OWN("\"threads\":[{\"process\":1,\"tid\":1,\"name\":\"t\"}]", ""), "process 1 of 1");
    refuse(OWN("\"threads\":[{\"process\":-1}]", ""), "out of range");
    refuse(OWN("\"threads\":[{\"process\":\"x\"}]", ""), "wrong type");
    refuse(OWN("\"threads\":[]", "{\"stallgraph\":{\"thread\":0}}"), "thread 0 of 0");
    refuse(OWN("\"threads\":[{\"process\":0}]",
               "{\"samples\":[[0]],\"weights\":[1],\"stallgraph\":{\"thread\":0,\"states\":[]}}"),
           "1 samples and 0 states");
    refuse(OWN("\"threads\":[{\"process\":0}]",
               "{\"samples\":[[0]],\"weights\":[1],\"stallgraph\":{\"thread\":0,\"states\":[1]}}"),
           "state 1 of 1");
    refuse(OWN("\"locks\":[{\"stack\":[7]}]", ""), "frame 7 of 1");
    refuse("{\"stallgraph\":{\"version\":2},\"profiles\":[]}", "version 2");
}

static void test_depth_has_a_limit(void **state)
{
    enum { DEPTH = 100000 };
    AUTO_FREE char *text = memory_zeroed(2 * DEPTH + 64, 1);
    size_t used = (size_t)snprintf(text, 64, "{\"x\":");

    (void)state;
    memset(text + used, '[', DEPTH);
    refuse(text, "nested too deeply");
}

static char *temporary_path(void)
{
    char *path = string_copy("speedscope_read_XXXXXX");
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    return path;
}

static void test_gzip_by_content(void **state)
{
    AUTO_FREE char *path = temporary_path();
    struct profile *server = fixture_server();
    struct profile *again = NULL;
    struct error err = {0};
    FILE *plain = fopen(path, "w");
    FILE *packed = gzip_wrap(plain);

    (void)state;
    assert_int_equal(exporter_speedscope.write(server, &options, packed, NULL), 0);
    assert_int_equal(fclose(packed), 0);
    assert_int_equal(fclose(plain), 0);
    assert_int_equal(profile_file_read(path, &again, &err), 0);
    assert_int_equal(again->thread_count, server->thread_count);
    profile_destroy(again);
    assert_int_equal(truncate(path, 300), 0);
    assert_true(profile_file_read(path, &again, &err) < 0);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(truncate(path, 0), 0);
    assert_true(profile_file_read(path, &again, &err) < 0);
    assert_non_null(strstr(err.message, "empty"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(profile_file_read(path, &again, &err), -ENOENT);
    profile_destroy(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_equal_weights_keep_their_order),
        cmocka_unit_test(test_microseconds),
        cmocka_unit_test(test_fields_come_back),
        cmocka_unit_test(test_another_program_s_samples),
        cmocka_unit_test(test_another_program_s_events),
        cmocka_unit_test(test_broken_files_say_why),
        cmocka_unit_test(test_depth_has_a_limit),
        cmocka_unit_test(test_gzip_by_content),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
