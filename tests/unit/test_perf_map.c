#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/base/memory.h"
#include "profiler/symbolize/perf_map.h"
#include "profiler/symbolize/symbol_name.h"

static struct perf_map *map;

static int set_up(void **state)
{
    (void)state;
    map = perf_map_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    perf_map_destroy(map);
    return 0;
}

static int file_of(const char *bytes, size_t size)
{
    int fd = memfd_create("perf.map", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    return fd;
}

static void read_bytes(const char *bytes, size_t size, int wanted)
{
    int fd = file_of(bytes, size);

    assert_int_equal(perf_map_read(map, fd), wanted);
    close(fd);
}

static void read_text(const char *text)
{
    read_bytes(text, strlen(text), 0);
}

static void assert_at(uint64_t address, const char *wanted)
{
    const char *name = perf_map_find(map, address);

    assert_string_equal(name != NULL ? name : "(none)", wanted != NULL ? wanted : "(none)");
}

static void assert_line(const char *line, uint64_t start, uint64_t end, const char *name)
{
    struct perf_map_line parsed;

    assert_true(perf_map_parse_line(line, strlen(line), &parsed));
    assert_int_equal(parsed.start, start);
    assert_int_equal(parsed.end, end);
    assert_int_equal(parsed.name_length, strlen(name));
    assert_memory_equal(parsed.name, name, strlen(name));
}

static void lines_of_all_runtimes(void **state)
{
    (void)state;
    assert_line("fdd4f61730e 2a JS:~fibo /app/n.js:1:14", 0xfdd4f61730e, 0xfdd4f617338,
                "JS:~fibo /app/n.js:1:14");
    assert_line("0x00007f3c1d0a1e40 0x00000000000002a0 void SpinJ.spinJ()", 0x7f3c1d0a1e40, 0x7f3c1d0a20e0,
                "void SpinJ.spinJ()");
    assert_line("0X7F3C1D0A1E40 0X2A0 x", 0x7f3c1d0a1e40, 0x7f3c1d0a20e0, "x");
    assert_line("00007F3C1D0A1E40 18 instance void [App] App.Program::Main()[Tier0]", 0x7f3c1d0a1e40,
                0x7f3c1d0a1e58, "instance void [App] App.Program::Main()[Tier0]");
    assert_line("10 0 none", 0x10, 0x11, "none");
    assert_line("0 1 at zero", 0, 1, "at zero");
    assert_line("10\t4  two blanks ", 0x10, 0x14, "two blanks ");
    assert_line("10 4 \xff\x01;<\"", 0x10, 0x14, "\xff\x01;<\"");
    assert_line("fffffffffffffff0 ffffffffffffffff last", 0xfffffffffffffff0, UINT64_MAX, "last");
    assert_line("10 4 1", 0x10, 0x14, "1");
}

static void what_is_no_line(void **state)
{
    static const char *const lines[] = {
        "",
        " ",
        "10",
        "10 ",
        "10 4",
        "10 4 ",
        "10 4  ",
        "x 4 name",
        "10 x n",
        "0x 4 name",
        "10 0x n",
        "-10 4 n",
        " 10 4 name",
        "10,4 n",
        "1g 4 name",
        "10 4name",
        "# 10 4 n",
        "10000000000000000 4 name",
        "10 10000000000000000 n",
        "ffffffffffffffff 1 n",
    };
    struct perf_map_line parsed;

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (perf_map_parse_line(lines[i], strlen(lines[i]), &parsed))
            fail_msg("taken: \"%s\"", lines[i]);
}

static void stubs_are_known(void **state)
{
    struct perf_map_line parsed;

    (void)state;
    assert_true(perf_map_parse_line("10 4 stub<3> X<Y>", 17, &parsed));
    assert_true(parsed.is_stub);
    assert_true(perf_map_parse_line("10 4 stub GenerateLookupStub", 28, &parsed));
    assert_true(parsed.is_stub);
    assert_true(perf_map_parse_line("10 4 stubborn()", 15, &parsed));
    assert_false(parsed.is_stub);
}

static void ranges_are_half_open(void **state)
{
    (void)state;
    read_text("1000 10 a\n2000 10 b\n");
    assert_at(0xfff, NULL);
    assert_at(0x1000, "a");
    assert_at(0x100f, "a");
    assert_at(0x1010, NULL);
    assert_at(0x2000, "b");
    assert_int_equal(perf_map_count(map), 2);
}

static void latest_line_wins(void **state)
{
    (void)state;
    read_text("1000 100 old\n"
              "1040 20 new\n"
              "1200 100 inner_first\n"
              "11c0 200 covers\n"
              "1400 40 twice\n"
              "1400 40 again\n");
    assert_at(0x103f, "old");
    assert_at(0x1040, "new");
    assert_at(0x105f, "new");
    assert_at(0x1060, "old");
    assert_at(0x10ff, "old");
    assert_at(0x1200, "covers");
    assert_at(0x13bf, "covers");
    assert_at(0x1400, "again");
    assert_at(0x143f, "again");
    assert_at(0x1440, NULL);
}

static void what_is_read_later_wins(void **state)
{
    (void)state;
    read_text("1000 100 first\n2000 100 only_first\n");
    read_text("1080 10 second\n");
    assert_at(0x1000, "first");
    assert_at(0x1080, "second");
    assert_at(0x1090, "first");
    assert_at(0x2000, "only_first");
    read_text("1000 100 third\n");
    assert_at(0x1080, "third");
    assert_int_equal(perf_map_count(map), 2);
}

static void reading_again_does_not_grow(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++)
        read_text("1000 100 a\n1040 10 b\n2000 10 c\n");
    assert_int_equal(perf_map_count(map), 4);
    assert_at(0x1050, "a");
}

static void stub_block_never_beats_a_method(void **state)
{
    (void)state;
    read_text("1000 40 void Method()\n0x1000 0x1000 stub<1> AllocateTemporaryEntryPoints<X>\n1800 10 stub<2> "
              "Y<Z>\n");
    assert_at(0x1000, "void Method()");
    assert_at(0x103f, "void Method()");
    assert_at(0x1040, "stub<1> AllocateTemporaryEntryPoints<X>");
    assert_at(0x1800, "stub<2> Y<Z>");
    read_text("1000 1000 stub<3> later<>\n");
    assert_at(0x1000, "void Method()");
    assert_at(0x1040, "stub<3> later<>");
}

static void unterminated_last_line(void **state)
{
    (void)state;
    read_text("1000 10 a\n2000 10 the end");
    assert_at(0x2000, "the end");
}

static void bad_lines_are_passed_over(void **state)
{
    static const char text[] = "garbage\n\n\0\0\0\n1000 10 a\0b\nzz zz zz\r\n2000 10 c\n\xff\xfe\n";

    (void)state;
    read_bytes(text, sizeof text - 1, 0);
    assert_at(0x1000, "a?b");
    assert_at(0x2000, "c");
    assert_int_equal(perf_map_count(map), 2);
}

static void long_name_is_shortened(void **state)
{
    char *text = memory_zeroed(1 << 21, 1);
    size_t size;
    const char *name;

    (void)state;
    size = (size_t)sprintf(text, "1000 10 ");
    memset(text + size, 'n', 1 << 20);
    size += 1 << 20;
    size += (size_t)sprintf(text + size, "\n2000 10 after it");
    read_bytes(text, size, 0);
    free(text);
    name = perf_map_find(map, 0x1000);
    assert_non_null(name);
    assert_int_equal(strlen(name), SYMBOL_NAME_MAX_BYTES);
    assert_string_equal(name + SYMBOL_NAME_MAX_BYTES - 5, "nn...");
    assert_at(0x2000, "after it");
}

static void lines_across_read_buffers(void **state)
{
    enum { LINES = 20000 };
    char *text = memory_zeroed(LINES, 64);
    size_t size = 0;

    (void)state;
    for (int i = 0; i < LINES; i++)
        size += (size_t)sprintf(text + size, "%x 10 function number %d\n", 0x100000 + i * 16, i);
    read_bytes(text, size, 0);
    free(text);
    assert_int_equal(perf_map_count(map), LINES);
    for (int i = 0; i < LINES; i++) {
        char wanted[64];

        sprintf(wanted, "function number %d", i);
        assert_at(0x10000fu + (uint64_t)i * 16, wanted);
    }
}

enum { MANY_LINES = 1100 * 1000, MANY_LINES_WIDTH = 19 };

/* "0012340 10 f001234", one for each number, at the address 16 * (number % places). By hand: sprintf takes
 * seconds for them. */
static char *many_lines(size_t places)
{
    char *text = memory_zeroed(MANY_LINES + 1, MANY_LINES_WIDTH);
    char *at = text;

    for (size_t i = 0; i < MANY_LINES; i++) {
        for (int shift = 20; shift >= 0; shift -= 4)
            *at++ = "0123456789abcdef"[i % places >> shift & 15];
        memcpy(at, "0 10 f", 6);
        at += 6;
        for (int shift = 20; shift >= 0; shift -= 4)
            *at++ = "0123456789abcdef"[i >> shift & 15];
        *at++ = '\n';
    }
    return text;
}

static void too_many_lines(void **state)
{
    char *text = many_lines(MANY_LINES);

    (void)state;
    read_bytes(text, strlen(text), 1);
    assert_true(perf_map_count(map) <= 1000 * 1000);
    assert_at(0x10, "f000001");
    free(text);
}

/* As many lines as above, for few places: what is hidden makes room. */
static void many_lines_for_few_places(void **state)
{
    char *text = many_lines(1000);

    (void)state;
    read_bytes(text, strlen(text), 0);
    assert_int_equal(perf_map_count(map), 1000);
    assert_at(999 * 16, "f10c8df");
    free(text);
}

static void agrees_with_painting(void **state)
{
    enum { LINES = 400, SPACE = 1500 };
    static int painted[SPACE];
    char text[LINES * 32];
    size_t size = 0;
    uint64_t random = 88172645463325252u;

    (void)state;
    for (int i = 1; i <= LINES; i++) {
        unsigned start;
        unsigned length;

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        start = (unsigned)(random >> 8) % (SPACE - 200);
        length = 1 + (unsigned)(random >> 40) % (i % 8 == 0 ? 200 : 10);
        for (unsigned at = start; at < start + length; at++)
            painted[at] = i;
        size += (size_t)sprintf(text + size, "%x %x f%d\n", start, length, i);
    }
    read_bytes(text, size, 0);
    for (unsigned at = 0; at < SPACE; at++) {
        char wanted[16];

        sprintf(wanted, "f%d", painted[at]);
        assert_at(at, painted[at] > 0 ? wanted : NULL);
    }
}

static void only_regular_files(void **state)
{
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(perf_map_read(map, fds[0]), -EINVAL);
    assert_int_equal(perf_map_read(map, -1), -EBADF);
    close(fds[0]);
    close(fds[1]);
    read_text("");
    assert_at(0, NULL);
    assert_null(perf_map_find(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_all_runtimes),
        cmocka_unit_test(what_is_no_line),
        cmocka_unit_test(stubs_are_known),
        cmocka_unit_test_setup_teardown(ranges_are_half_open, set_up, tear_down),
        cmocka_unit_test_setup_teardown(latest_line_wins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_read_later_wins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reading_again_does_not_grow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stub_block_never_beats_a_method, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unterminated_last_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_lines_are_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_name_is_shortened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lines_across_read_buffers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_many_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_lines_for_few_places, set_up, tear_down),
        cmocka_unit_test_setup_teardown(agrees_with_painting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_regular_files, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
