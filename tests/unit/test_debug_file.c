#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "profiler/symbolize/debug_file.h"
#include "profiler/symbolize/elf_symbols.h"
#include "tests/fixtures/fixture.h"

static struct binary_table *binaries;
static struct process_table *processes;
static struct symbolizer_context context;
static char asked[4096]; /* the paths that were asked for in the target, one a line */
static bool was_skipped;

static int open_in_fixture_root(void *open_context, uint32_t process, const char *path)
{
    char full[512];
    int fd;

    assert_ptr_equal(open_context, asked);
    assert_true(process < process_table_process_count(processes));
    strncat(asked, path, sizeof asked - strlen(asked) - 1);
    strncat(asked, "\n", sizeof asked - strlen(asked) - 1);
    snprintf(full, sizeof full, "%s/root%s", FIXTURE_DIR, path);
    fd = open(full, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int set_up(void **state)
{
    (void)state;
    asked[0] = '\0';
    binaries = binary_table_create();
    processes = process_table_create();
    process_table_add_process(processes, 1, "prog", 0);
    context = (struct symbolizer_context){.binaries = binaries,
                                          .processes = processes,
                                          .open_in_target = open_in_fixture_root,
                                          .open_context = asked};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    process_table_destroy(processes);
    binary_table_destroy(binaries);
    return 0;
}

static int find(const struct binary *binary)
{
    struct elf_file file;
    struct elf_file debug;
    int r;

    assert_int_equal(elf_file_open_binary(&file, binary), 0);
    r = debug_file_open(&context, binary, &file, &debug);
    elf_file_close(&file);
    if (r == 0)
        elf_file_close(&debug);
    return r;
}

static void assert_named(const struct binary *binary, const char *listing)
{
    struct symbol_table *table = elf_symbols_load(&context, binary);
    const char *name = symbol_table_find(table, nm_address(listing, "fixture_static"));

    assert_string_equal(name != NULL ? name : "(none)", "fixture_static");
    symbol_table_destroy(table);
}

static void by_build_id(void **state)
{
    const struct binary *binary = add_fixture(binaries, "by_id", "/anywhere/prog");

    (void)state;
    assert_int_equal(find(binary), 0);
    assert_string_equal(asked, "/usr/lib/debug/.build-id/73/746163fedcba98.debug\n");
    assert_named(binary, "by_id");
}

static void another_build_id_is_refused(void **state)
{
    const struct binary *binary = add_fixture(binaries, "other_id", "/anywhere/prog");

    (void)state;
    assert_int_equal(find(binary), -ENOENT);
    assert_non_null(strstr(asked, "/usr/lib/debug/.build-id/73/74616300000001.debug\n"));
}

static void by_link_in_debug_folder(void **state)
{
    const struct binary *binary = add_fixture(binaries, "by_link", "/opt/srv/prog");

    (void)state;
    assert_int_equal(find(binary), 0);
    assert_string_equal(asked, "/opt/srv/by_link.debug\n/opt/srv/.debug/by_link.debug\n");
    assert_named(binary, "by_link");
}

static void by_link_below_usr_lib_debug(void **state)
{
    const struct binary *binary = add_fixture(binaries, "by_link", "/opt/srv2/prog");

    (void)state;
    assert_int_equal(find(binary), 0);
    assert_named(binary, "by_link");
}

static void wrong_crc_is_refused(void **state)
{
    const struct binary *binary = add_fixture(binaries, "by_link", "/opt/srv3/prog");

    (void)state;
    assert_int_equal(find(binary), -ENOENT);
    assert_non_null(strstr(asked, "/opt/srv3/by_link.debug\n"));
}

static void nothing_without_root_or_path(void **state)
{
    (void)state;
    assert_int_equal(find(add_fixture(binaries, "by_link", "relative")), -ENOENT);
    context.open_in_target = NULL;
    assert_int_equal(find(add_fixture(binaries, "by_id", "/anywhere/prog")), -ENOENT);
    assert_string_equal(asked, "");
}

/* Not stripped of symbols, and no debug file: nothing is looked for but what the build id says. */
static void program_with_symbols_asks_for_nothing(void **state)
{
    (void)state;
    assert_named(add_fixture(binaries, "pie", "/opt/srv/prog"), "pie");
    assert_string_equal(asked, "");
}

/* Files are looked for in few processes, first in those that have the binary mapped. */
static void processes_that_map_the_binary_come_first(void **state)
{
    const struct binary *binary = add_fixture(binaries, "other_id", "/anywhere/prog");
    struct mapping mapping = {.start = 0x1000, .end = 0x2000, .binary = binary->id};
    size_t count = 0;

    (void)state;
    for (int i = 2; i < 100; i++)
        process_table_add_process(processes, i, "prog", 0);
    address_space_insert(&process_table_process(processes, 50)->space, &mapping);
    assert_int_equal(find(binary), -ENOENT);
    for (const char *at = asked; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    assert_in_range(count, 1, 8);
}

/* The C library's own debug file, where the machine has it: the host is asked too. */
static void on_the_host(void **state)
{
    static const char libc[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
    struct binary_key key = {.device = 1, .inode = 1};
    struct binary *binary = binary_table_add_file(binaries, &key, libc, open(libc, O_RDONLY | O_CLOEXEC));
    char path[256] = "/usr/lib/debug/.build-id/";

    (void)state;
    for (size_t i = 0; i < binary->build_id_size_bytes && i < 32; i++)
        sprintf(path + strlen(path), i == 0 ? "%02x/" : "%02x", binary->build_id[i]);
    sprintf(path + strlen(path), ".debug");
    if (!binary->is_elf || access(path, R_OK) != 0) {
        printf("skipped: no debug file of the C library on this machine (libc6-dbg)\n");
        was_skipped = true;
        skip();
    }
    context.open_in_target = NULL;
    assert_int_equal(find(binary), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(by_build_id, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_build_id_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(by_link_in_debug_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(by_link_below_usr_lib_debug, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_crc_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_without_root_or_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(program_with_symbols_asks_for_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(processes_that_map_the_binary_come_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(on_the_host, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed == 0 && was_skipped ? 77 : failed;
}
