/* The exporters on fixed profiles, byte for byte against tests/golden/. UPDATE_GOLDEN=1 writes these files
 * anew; look at the difference before you keep it. What the files mean is checked by
 * tests/golden/check_golden.py, which shares no code with the exporters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "exporters/exporter.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"
#include "profiler/base/memory.h"
#include "tests/golden/fixtures.h"

enum { GOLDEN_MAX_BYTES = 4 << 20, AT_CURRENT_FOLDER = -100 };

static const struct export_options default_options = {.tree = {IDLE_SEPARATE, THREADS_POOL}};

static char *export_to_memory(const char *format, const struct profile *profile,
                              const struct export_options *options, size_t *ret_size)
{
    const struct exporter *exporter = exporter_find(format);
    char *bytes = NULL;
    struct error err = {0};
    FILE *out = open_memstream(&bytes, ret_size);

    assert_non_null(exporter);
    assert_non_null(out);
    assert_int_equal(exporter->write(profile, options, out, &err), 0);
    assert_int_equal(fclose(out), 0);
    return bytes;
}

/* The golden file of a format that packs itself holds what is packed: another zlib may pack it otherwise. */
static char *unpack(const char *packed, size_t packed_size, size_t *ret_size)
{
    char *bytes = memory_zeroed(GOLDEN_MAX_BYTES, 1);
    z_stream stream = {.next_in = (z_const Bytef *)packed,
                       .avail_in = (uInt)packed_size,
                       .next_out = (Bytef *)bytes,
                       .avail_out = GOLDEN_MAX_BYTES};

    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK); /* + 16: gzip */
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    *ret_size = stream.total_out;
    inflateEnd(&stream);
    return bytes;
}

static char *golden_path(const char *name, const struct exporter *exporter)
{
    size_t length = strlen(exporter->extension) - (exporter->packs_itself ? strlen(".gz") : 0);

    return string_format("%s/golden/%s%.*s", TEST_SOURCE_DIR, name, (int)length, exporter->extension);
}

static void compare_with_golden(const char *name, const char *format, const struct profile *profile,
                                const struct export_options *options)
{
    AUTO_FREE char *path = golden_path(name, exporter_find(format));
    size_t size = 0;
    size_t golden_size = 0;
    AUTO_FREE char *bytes = export_to_memory(format, profile, options, &size);
    AUTO_FREE char *golden = NULL;

    if (exporter_find(format)->packs_itself) {
        char *packed = bytes;

        bytes = unpack(packed, size, &size);
        free(packed);
    }
    if (getenv("UPDATE_GOLDEN") != NULL) {
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
    }
    assert_int_equal(file_read(AT_CURRENT_FOLDER, path, GOLDEN_MAX_BYTES, &golden, &golden_size), 0);
    if (golden_size != size || memcmp(golden, bytes, size) != 0)
        print_error("%s differs: run with UPDATE_GOLDEN=1 and read git diff\n", path);
    assert_int_equal(golden_size, size);
    assert_memory_equal(golden, bytes, size);
}

static void compare_all(const char *name, struct profile *profile)
{
    for (size_t i = 0; exporters[i] != NULL; i++)
        compare_with_golden(name, exporters[i]->name, profile, &default_options);
    profile_destroy(profile);
}

static void test_hostile_names(void **state)
{
    (void)state;
    compare_all("hostile", fixture_hostile());
}

static void test_server(void **state)
{
    (void)state;
    compare_all("server", fixture_server());
}

static void test_quarter(void **state)
{
    (void)state;
    compare_all("quarter", fixture_quarter());
}

static void test_empty(void **state)
{
    (void)state;
    compare_all("empty", fixture_empty());
}

/* The same profile gives the same bytes. */
static void test_twice_the_same(void **state)
{
    (void)state;
    struct profile *profile = fixture_server();

    for (size_t i = 0; exporters[i] != NULL; i++) {
        size_t first_size = 0;
        size_t second_size = 0;
        AUTO_FREE char *first = export_to_memory(exporters[i]->name, profile, &default_options, &first_size);
        AUTO_FREE char *second =
            export_to_memory(exporters[i]->name, profile, &default_options, &second_size);

        assert_int_equal(first_size, second_size);
        assert_memory_equal(first, second, first_size);
    }
    profile_destroy(profile);
}

static void expect_folded(const struct profile *profile, enum idle_mode idle, enum thread_grouping threads,
                          const char *expected)
{
    struct export_options options = {.tree = {idle, threads}};
    size_t size = 0;
    AUTO_FREE char *bytes = export_to_memory("folded", profile, &options, &size);

    assert_string_equal(bytes, expected);
}

static void test_folded_options(void **state)
{
    (void)state;
    struct profile *profile = fixture_new("srv (7)", NS_PER_S);
    uint32_t process = profile_add_process(profile, 7, "srv");
    uint32_t main_thread = profile_add_thread(profile, process, 7, "srv", true);
    uint32_t first = profile_add_thread(profile, process, 8, "io-1", false);
    uint32_t second = profile_add_thread(profile, process, 9, "io-2", false);
    uint32_t stack = fixture_stack(profile, STACK_EMPTY, "run", "srv");
    uint32_t idle =
        stack_table_push(profile->stacks, stack, fixture_wait(profile, WAIT_NETWORK, "[wait: epoll]"));

    fixture_sample(profile, main_thread, 0, 3000, stack, STATE_ON_CPU);
    fixture_sample(profile, first, 0, 5000, stack, STATE_ON_CPU);
    fixture_sample(profile, first, 5000, 7000, idle, STATE_IDLE);
    fixture_sample(profile, second, 0, 11000, stack, STATE_ON_CPU);
    expect_folded(profile, IDLE_SEPARATE, THREADS_POOL,
                  "[idle];srv;io-*;run;[wait: epoll] 7\nsrv;io-*;run 16\nsrv;srv [main];run 3\n");
    expect_folded(profile, IDLE_MERGE, THREADS_POOL,
                  "srv;io-*;run 16\nsrv;io-*;run;[wait: epoll] 7\nsrv;srv [main];run 3\n");
    expect_folded(profile, IDLE_HIDE, THREADS_POOL, "srv;io-*;run 16\nsrv;srv [main];run 3\n");
    expect_folded(profile, IDLE_HIDE, THREADS_EACH,
                  "srv (7);io-1 (8);run 5\nsrv (7);io-2 (9);run 11\nsrv (7);srv (7);run 3\n");
    expect_folded(profile, IDLE_HIDE, THREADS_MERGE, "srv;run 19\n");
    profile_destroy(profile);
}

/* Two modules may have functions of one name: one line, for a reader cannot tell them apart. */
static void test_folded_merges_equal_lines(void **state)
{
    (void)state;
    struct profile *profile = fixture_new("srv (7)", NS_PER_S);
    uint32_t process = profile_add_process(profile, 7, "srv");
    uint32_t thread = profile_add_thread(profile, process, 7, "srv", true);

    fixture_sample(profile, thread, 0, 3000, fixture_stack(profile, STACK_EMPTY, "init", "a.so"),
                   STATE_ON_CPU);
    fixture_sample(profile, thread, 3000, 4000, fixture_stack(profile, STACK_EMPTY, "init", "b.so"),
                   STATE_ON_CPU);
    fixture_sample(profile, thread, 7000, 2000, STACK_EMPTY, STATE_UNKNOWN);
    expect_folded(profile, IDLE_MERGE, THREADS_MERGE, "srv;[no stack] 2\nsrv;init 7\n");
    profile_destroy(profile);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (const char *found = text; (found = strstr(found, part)) != NULL; found += strlen(part))
        count++;
    return count;
}

/* A stack of more frames than the viewer can show keeps its ends; the picture stays below its limits. */
static void test_very_deep_stack(void **state)
{
    (void)state;
    enum { DEPTH = 9000 };
    struct profile *profile = fixture_new("deep (7)", NS_PER_S);
    uint32_t process = profile_add_process(profile, 7, "deep");
    uint32_t thread = profile_add_thread(profile, process, 7, "deep", true);
    uint32_t stack = fixture_stack(profile, STACK_EMPTY, "main", "deep");
    size_t size = 0;

    for (int i = 0; i < DEPTH; i++)
        stack = fixture_stack(profile, stack, "rec", "deep");
    stack = stack_table_push(profile->stacks, stack, fixture_wait(profile, WAIT_SLEEP, "[wait: sleep]"));
    fixture_sample(profile, thread, 0, NS_PER_S, stack, STATE_BLOCKED);

    AUTO_FREE char *speedscope = export_to_memory("speedscope", profile, &default_options, &size);
    char *samples = strstr(speedscope, "\"samples\":[");

    assert_non_null(samples);
    *strstr(samples, "\"weights\"") = '\0';
    assert_int_equal(count_of(samples, ","), 2000 + 1); /* 2,000 frames and the mark; and the comma behind */
    assert_non_null(strstr(samples, "[0,1,1,"));
    assert_non_null(
        strstr(samples, ",1,4,1,")); /* main 0, rec 1, wait 2, marks: [idle] 3, [frames left out] 4 */
    assert_non_null(strstr(samples, ",1,2]"));

    AUTO_FREE char *svg = export_to_memory("svg", profile, &default_options, &size);

    assert_true(count_of(svg, "<g ") < 2500);
    profile_destroy(profile);
}

/* Nothing in a name begins or ends an element, or a string of the data. */
static void test_svg_keeps_markup_out(void **state)
{
    (void)state;
    static const char markup[] = "</script><script>run()</script>]]><img onerror='run()'>\"\\&lt;";
    struct profile *profile = fixture_new(markup, NS_PER_S);
    uint32_t process = profile_add_process(profile, 7, markup);
    uint32_t thread = profile_add_thread(profile, process, 7, markup, false);
    uint32_t stack =
        stack_table_push(profile->stacks, STACK_EMPTY, fixture_frame(profile, FRAME_USER, markup, markup));
    size_t size = 0;

    profile_set_text(&profile->meta.host, markup);
    profile_set_text(&profile->meta.engines, markup);
    fixture_sample(profile, thread, 0, NS_PER_S, stack, STATE_ON_CPU);
    AUTO_FREE char *svg = export_to_memory("svg", profile, &default_options, &size);

    assert_int_equal(count_of(svg, "<script"), 4);
    assert_int_equal(count_of(svg, "</script"), 4);
    assert_int_equal(count_of(svg, "]]>"), 1);
    assert_null(strstr(svg, "<img"));
    assert_non_null(strstr(svg, "\"\\u003c/script\\u003e\\u003cscript\\u003erun()"));
    assert_non_null(strstr(svg, "\\u0022\\u005c\\u0026lt;\""));
    profile_destroy(profile);
}

/* Many frames, all wide enough: the widest are drawn. */
static void test_svg_stays_small(void **state)
{
    (void)state;
    struct profile *profile = fixture_new("wide (7)", NS_PER_S);
    uint32_t process = profile_add_process(profile, 7, "wide");
    uint32_t thread = profile_add_thread(profile, process, 7, "wide", true);
    size_t size = 0;
    uint64_t now_ns = 0;

    for (unsigned i = 0; i < 500; i++) {
        uint32_t stack = STACK_EMPTY;

        for (unsigned depth = 0; depth < 20; depth++) {
            char name[32];

            snprintf(name, sizeof name, "f%u_%u", i, depth);
            stack = fixture_stack(profile, stack, name, "wide");
        }
        fixture_sample(profile, thread, now_ns, 1000000 + i * 1000, stack, STATE_ON_CPU);
        now_ns += 1000000 + i * 1000;
    }
    AUTO_FREE char *svg = export_to_memory("svg", profile, &default_options, &size);
    size_t elements = count_of(svg, "<") - count_of(svg, "</");

    assert_true(elements < 10000);
    assert_true(elements > 5000);
    assert_non_null(strstr(svg, "are not drawn"));
    profile_destroy(profile);
}

/* Beyond 2^53 ns of thread time a double cannot tell nanoseconds apart. */
static void test_speedscope_microseconds(void **state)
{
    (void)state;
    const uint64_t window_ns = UINT64_C(1) << 52;
    struct profile *profile = fixture_new("long (7)", window_ns);
    uint32_t process = profile_add_process(profile, 7, "long");
    uint32_t stack = fixture_stack(profile, STACK_EMPTY, "main", "long");
    size_t size = 0;

    for (int i = 0; i < 3; i++) {
        uint32_t thread = profile_add_thread(profile, process, 7 + i, "long", i == 0);

        fixture_sample(profile, thread, 0, window_ns, stack, STATE_ON_CPU);
    }
    AUTO_FREE char *bytes = export_to_memory("speedscope", profile, &default_options, &size);

    assert_non_null(strstr(bytes, "\"unit\":\"microseconds\""));
    assert_null(strstr(bytes, "\"unit\":\"nanoseconds\""));
    assert_non_null(strstr(bytes, "\"endValue\":13510798882111")); /* 3 * 2^52 / 1000 */
    profile_destroy(profile);
}

static ssize_t refuse(void *cookie, const char *bytes, size_t size)
{
    (void)cookie;
    (void)bytes;
    (void)size;
    errno = ENOSPC;
    return 0;
}

/* Nothing of the time or the place of writing: RFC 1952, MTIME and flags are 0. */
static void test_pprof_header(void **state)
{
    (void)state;
    struct profile *profile = fixture_quarter();
    size_t size = 0;
    AUTO_FREE char *bytes = export_to_memory("pprof", profile, &default_options, &size);

    assert_true(size > 18);
    assert_memory_equal(bytes, "\x1f\x8b\x08\0\0\0\0\0", 8);
    profile_destroy(profile);
}

/* The options change labels and idle time; what they take from a file is found by the bytes of its strings. */
static void expect_in_pprof(const struct profile *profile, enum idle_mode idle, enum thread_grouping threads,
                            const char *there, const char *not_there)
{
    struct export_options options = {.tree = {idle, threads}};
    size_t packed_size = 0;
    size_t size = 0;
    AUTO_FREE char *packed = export_to_memory("pprof", profile, &options, &packed_size);
    AUTO_FREE char *bytes = unpack(packed, packed_size, &size);

    if (memmem(bytes, size, there, strlen(there)) == NULL)
        fail_msg("\"%s\" is not in the file", there);
    if (memmem(bytes, size, not_there, strlen(not_there)) != NULL)
        fail_msg("\"%s\" is in the file", not_there);
}

static void test_pprof_options(void **state)
{
    (void)state;
    struct profile *profile = fixture_server();

    expect_in_pprof(profile, IDLE_SEPARATE, THREADS_POOL, "[idle]", "worker-1");
    expect_in_pprof(profile, IDLE_SEPARATE, THREADS_POOL, "worker-*", "worker-1");
    expect_in_pprof(profile, IDLE_MERGE, THREADS_EACH, "worker-1", "[idle]");
    expect_in_pprof(profile, IDLE_MERGE, THREADS_MERGE, "[wait: epoll]", "dbserver [main]");
    expect_in_pprof(profile, IDLE_HIDE, THREADS_POOL, "housekeeper", "[wait: epoll]");
    profile_destroy(profile);
}

static void test_full_disk(void **state)
{
    (void)state;
    struct profile *profile = fixture_server();

    for (size_t i = 0; exporters[i] != NULL; i++) {
        struct error err = {0};
        FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = refuse});

        assert_non_null(out);
        assert_true(exporters[i]->write(profile, &default_options, out, &err) < 0);
        assert_non_null(strstr(err.message, "write the profile"));
        fclose(out);
    }
    profile_destroy(profile);
}

static void test_find(void **state)
{
    (void)state;
    assert_ptr_equal(exporter_find("svg"), &exporter_svg);
    assert_null(exporter_find("SVG"));
    assert_null(exporter_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_server),
        cmocka_unit_test(test_quarter),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_twice_the_same),
        cmocka_unit_test(test_folded_options),
        cmocka_unit_test(test_folded_merges_equal_lines),
        cmocka_unit_test(test_very_deep_stack),
        cmocka_unit_test(test_svg_keeps_markup_out),
        cmocka_unit_test(test_svg_stays_small),
        cmocka_unit_test(test_speedscope_microseconds),
        cmocka_unit_test(test_pprof_header),
        cmocka_unit_test(test_pprof_options),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_find),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
