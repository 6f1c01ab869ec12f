/* proc_maps: lines as the kernel writes them, and lines that it never would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"
#include "profiler/collect/proc_maps.h"

static void assert_path(const struct proc_maps_line *line, const char *wanted)
{
    assert_int_equal(line->path_length, strlen(wanted));
    assert_memory_equal(line->path, wanted, strlen(wanted));
}

static void test_file_mapping(void **state)
{
    static const char text[] = "7f0e4c028000-7f0e4c17d000 r-xp 00028000 fe:10 1835103                    "
                               "/usr/lib/x86_64-linux-gnu/libc.so.6\nnext";
    struct proc_maps_line line;

    (void)state;
    assert_int_equal(proc_maps_parse_line(text, sizeof text - 1, &line), strlen(text) - strlen("next"));
    assert_int_equal(line.start, 0x7f0e4c028000);
    assert_int_equal(line.end, 0x7f0e4c17d000);
    assert_int_equal(line.file_offset, 0x28000);
    assert_true(line.executable);
    assert_int_equal(line.device, makedev(0xfe, 0x10));
    assert_int_equal(line.inode, 1835103);
    assert_false(line.deleted);
    assert_path(&line, "/usr/lib/x86_64-linux-gnu/libc.so.6");
}

struct path_case {
    const char *text;
    const char *path;
    bool executable;
    bool deleted;
};

static const struct path_case path_cases[] = {
    {"5500-6600 rw-p 00000000 00:00 0 \n", "", false, false},
    {"5500-6600 rw-p 00000000 00:00 0", "", false, false},
    {"5500-6600 rw-s 00000000 00:00 0                          [heap]\n", "[heap]", false, false},
    {"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n", "[vsyscall]",
     true, false},
    {"1000-2000 r-xp 00000000 08:01 7      /opt/a b/srv (deleted)\n", "/opt/a b/srv", true, true},
    {"1000-2000 r-xp 00000000 08:01 7      /memfd:jit code (deleted)", "/memfd:jit code", true, true},
    {"1000-2000 r-xp 00000000 08:01 7      /a\\012b\n", "/a\\012b", true, false},
    {"1000-2000 r-xp 00000000 08:01 7       (deleted)\n", "(deleted)", true, false},
    {"1000-2000 r-xp 00000000 08:01 7      /\xff\xfe\n", "/\xff\xfe", true, false},
};

static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof path_cases / sizeof path_cases[0]; i++) {
        const struct path_case *one = &path_cases[i];
        struct proc_maps_line line;

        assert_int_equal(proc_maps_parse_line(one->text, strlen(one->text), &line), strlen(one->text));
        assert_path(&line, one->path);
        assert_int_equal(line.executable, one->executable);
        assert_int_equal(line.deleted, one->deleted);
    }
}

static void test_refuses_what_is_no_line(void **state)
{
    static const char *const bad[] = {
        "\n",
        "garbage\n",
        "1000-2000\n",
        "1000 2000 r-xp 00000000 08:01 7 /a\n",
        "2000-1000 r-xp 00000000 08:01 7 /a\n",
        "1000-1000 r-xp 00000000 08:01 7 /a\n",
        "-1000-2000 r-xp 00000000 08:01 7 /a\n",
        "11111111111111111-22222222222222222 r-xp 00000000 08:01 7 /a\n",
        "1000-2000 rwx 00000000 08:01 7 /a\n",
        "1000-2000 r-xz 00000000 08:01 7 /a\n",
        "1000-2000 r-xp 00000000 0801 7 /a\n",
        "1000-2000 r-xp 00000000 123456789:01 7 /a\n",
        "1000-2000 r-xp 00000000 08:01 99999999999999999999 /a\n",
        "1000-2000 r-xp 00000000 08:01 7/a\n",
    };
    struct proc_maps_line line = {.inode = 42};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(proc_maps_parse_line(bad[i], strlen(bad[i]), &line), -EBADMSG);
    assert_int_equal(proc_maps_parse_line("1000-2000 r-xp 0 08:01 7 /a\0b\n", 30, &line), -EBADMSG);
    assert_int_equal(line.inode, 42); /* untouched on failure */
    assert_int_equal(proc_maps_parse_line("", 0, &line), 0);
}

/* Every prefix of a line, each at the very end of a readable page: reading one byte too far would end the
 * test. */
static void test_never_reads_beyond(void **state)
{
    static const char text[] =
        "7f0e4c028000-7f0e4c17d000 r-xp 00028000 fe:00 1835103   /usr/lib/libc.so.6 (deleted)\n";
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    for (size_t length = 0; length < sizeof text; length++) {
        struct proc_maps_line line;
        long r;

        memcpy(pages + page - length, text, length);
        r = proc_maps_parse_line(pages + page - length, length, &line);
        assert_true(r == (long)length || r == -EBADMSG);
    }
    munmap(pages, 2 * page);
}

static void code_of_this_test(void)
{
}

/* Our own maps: every line parses, and the one that holds this function is our executable's. */
static void test_own_maps(void **state)
{
    AUTO_FREE char *text = NULL;
    size_t length = 0;
    size_t at = 0;
    uint64_t wanted = (uint64_t)(uintptr_t)code_of_this_test;
    struct stat own;
    int found = 0;

    (void)state;
    assert_int_equal(stat("/proc/self/exe", &own), 0);
    assert_int_equal(file_read(AT_FDCWD, "/proc/self/maps", 1 << 24, &text, &length), 0);
    while (at < length) {
        struct proc_maps_line line;
        long r = proc_maps_parse_line(text + at, length - at, &line);

        assert_true(r > 0);
        at += (size_t)r;
        if (wanted < line.start || wanted >= line.end)
            continue;
        found++;
        assert_true(line.executable);
        assert_int_equal(line.inode, own.st_ino);
        assert_int_equal(line.path[0], '/');
    }
    assert_int_equal(found, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_mapping),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_refuses_what_is_no_line),
        cmocka_unit_test(test_never_reads_beyond),
        cmocka_unit_test(test_own_maps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
