#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "profiler/symbolize/elf_symbols.h"
#include "profiler/symbolize/plt.h"
#include "tests/fixtures/fixture.h"

static struct binary_table *binaries;
static struct symbol_table *table;
static bool was_skipped;

/* No files of the target, no processes: the host's /usr/lib/debug has none of the fixtures. */
static const struct symbolizer_context *no_context(void)
{
    static struct symbolizer_context context;

    context = (struct symbolizer_context){.binaries = binaries};
    return &context;
}

static int set_up(void **state)
{
    (void)state;
    binaries = binary_table_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    symbol_table_destroy(table);
    table = NULL;
    binary_table_destroy(binaries);
    return 0;
}

static void load(const char *name)
{
    symbol_table_destroy(table);
    table = elf_symbols_load(no_context(), add_fixture(binaries, name, "/opt/none/prog"));
}

static void assert_at(uint64_t address, const char *wanted)
{
    const char *name = symbol_table_find(table, address);

    assert_string_equal(name != NULL ? name : "(none)", wanted != NULL ? wanted : "(none)");
}

/* The functions of symbols.c, in a file whose addresses nm listed as listing. */
static void assert_fixture_functions(const char *listing)
{
    static const char *const functions[] = {"main", "fixture_global", "fixture_static", "fixture_caller"};

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        assert_at(nm_address(listing, functions[i]), functions[i]);
        assert_at(nm_address(listing, functions[i]) + 1, functions[i]);
    }
    assert_at(nm_address(listing, "alias_local"), "alias_z_global");
    assert_at(nm_address(listing, "alias_local") + 15, "alias_z_global");
    assert_at(nm_address(listing, "alias_local") + 16, NULL);
    assert_at(nm_address(listing, "a_local"), "pair_weak");
    assert_at(nm_address(listing, "data_object"), NULL);
}

static void every_way_of_linking(void **state)
{
    static const char *const names[] = {"pie", "no_pie", "static", "ibt", "lazy", "no_build_id"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        load(names[i]);
        assert_fixture_functions(names[i]);
    }
}

/* Skips the test where make_symbols.sh could not make the file for lack of a program. */
static void need_fixture(const char *name, const char *program)
{
    if (has_fixture(name))
        return;
    printf("skipped: %s is not installed\n", program);
    was_skipped = true;
    skip();
}

/* Its file offsets are not its addresses; the table knows addresses alone. */
static void linked_by_lld(void **state)
{
    (void)state;
    need_fixture("lld", "ld.lld");
    load("lld");
    assert_fixture_functions("lld");
}

static void symbols_without_size(void **state)
{
    uint64_t unsized = nm_address("pie", "unsized");

    (void)state;
    load("pie");
    assert_at(unsized, "unsized");
    assert_at(unsized + 31, "unsized");
    assert_at(unsized + 32, "outer");
}

static void functions_in_functions(void **state)
{
    uint64_t outer = nm_address("pie", "outer");

    (void)state;
    load("pie");
    assert_at(outer + 15, "outer");
    assert_at(outer + 16, "outer"); /* label_in_outer and $x stand here */
    assert_at(outer + 31, "outer");
    assert_at(outer + 32, "nested");
    assert_at(outer + 47, "nested");
    assert_at(outer + 48, "outer");
    assert_at(outer + 63, "outer");
    assert_at(outer + 64, NULL);
}

static void data_and_mapping_symbols_name_nothing(void **state)
{
    uint64_t after = nm_address("pie", "after_table");

    (void)state;
    load("pie");
    assert_at(nm_address("pie", "table_in_text"), NULL); /* $x.1 too */
    assert_at(after - 1, NULL);
    assert_at(after, "after_table");
}

static void versions_are_cut(void **state)
{
    (void)state;
    load("versions.so");
    assert_at(nm_address("versions.so", "versioned@V1"), "versioned");
    assert_at(nm_address("versions.so", "versioned@@V2"), "versioned");
    load("version_in_symtab");
    assert_at(nm_address("pie", "after_table"), "after_table");
}

static void stripped_has_only_stubs(void **state)
{
    (void)state;
    load("stripped");
    assert_at(nm_address("pie", "main"), NULL);
    assert_at(nm_address("pie", "fixture_static"), NULL);
    assert_true(symbol_table_count(table) > 0); /* PLT */
}

static void minidebuginfo(void **state)
{
    (void)state;
    need_fixture("mini", "xz");
    load("mini");
    assert_fixture_functions("pie");
}

static void broken_minidebuginfo(void **state)
{
    static const char *const names[] = {"mini_broken", "mini_cut"};

    (void)state;
    need_fixture("mini_cut", "xz");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        load(names[i]);
        assert_at(nm_address("pie", "main"), NULL);
        assert_true(symbol_table_count(table) > 0);
    }
}

/* Section bounds and the names that objdump gives the stubs in them. */
static void assert_stubs(const char *name, size_t wanted_puts, size_t wanted_write)
{
    size_t puts_count = 0;
    size_t write_count = 0;
    const char *last = NULL;

    load(name);
    for (uint64_t address = 0; address < 0x500000; address += 8) {
        const char *found = symbol_table_find(table, address);

        /* A stub is one range: the same name at the next step is the same pointer. */
        if (found != NULL && found != last) {
            puts_count += strcmp(found, "puts@plt") == 0;
            write_count += strcmp(found, "write@plt") == 0;
        }
        last = found;
    }
    assert_int_equal(puts_count, wanted_puts);
    assert_int_equal(write_count, wanted_write);
}

static void plt_stubs_are_named(void **state)
{
    (void)state;
    /* puts, whose address is taken, has its stub in .plt.got; where branches are tracked, a called function
     * has a stub in .plt and one in .plt.sec. */
    assert_stubs("lazy", 1, 1);
    assert_stubs("ibt", 1, 2);
}

static void decode_plt_code(void **state)
{
    static const uint8_t jump[] = {0xff, 0x25, 0x10, 0x00, 0x00, 0x00, 0x66, 0x90};
    static const uint8_t back[] = {0xff, 0x25, 0xf0, 0xff, 0xff, 0xff, 0x66, 0x90};
    static const uint8_t tracked[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10,
                                      0,    0,    0,    0x0f, 0x1f, 0x44, 0,    0};
    static const uint8_t push[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0x07, 0x00, 0x00,
                                   0x00, 0xf2, 0xe9, 0,    0,    0,    0,    0x90};
    static const uint8_t first[] = {0xff, 0x35, 0x10, 0, 0, 0, 0xff, 0x25};
    struct plt_stub stub;

    (void)state;
    stub = plt_decode(jump, sizeof jump, 0x1000);
    assert_int_equal(stub.kind, PLT_JUMP_SLOT);
    assert_int_equal(stub.slot_address, 0x1016);
    stub = plt_decode(back, sizeof back, 0x1000);
    assert_int_equal(stub.slot_address, 0xff6);
    stub = plt_decode(tracked, sizeof tracked, 0x1000);
    assert_int_equal(stub.kind, PLT_JUMP_SLOT);
    assert_int_equal(stub.slot_address, 0x101b);
    stub = plt_decode(push, sizeof push, 0x1000);
    assert_int_equal(stub.kind, PLT_PUSH_INDEX);
    assert_int_equal(stub.index, 7);
    assert_int_equal(plt_decode(first, sizeof first, 0x1000).kind, PLT_NONE);
    for (size_t size = 0; size < 6; size++)
        assert_int_equal(plt_decode(jump, size, 0x1000).kind, PLT_NONE);
}

/* Adds a changed copy of a fixture. */
static struct binary *add_changed(const char *name, size_t keep_bytes, size_t at, const void *bytes,
                                  size_t size)
{
    const struct binary *whole = add_fixture(binaries, name, "/opt/none/whole");
    struct binary_key key = {.device = 1, .inode = binary_table_count(binaries)};
    int fd = memfd_create("changed", MFD_CLOEXEC);
    char chunk[4096];
    off_t offset = 0;
    ssize_t got;

    assert_true(fd >= 0);
    while ((got = pread(whole->fd, chunk, sizeof chunk, offset)) > 0) {
        assert_int_equal(pwrite(fd, chunk, (size_t)got, offset), got);
        offset += got;
    }
    assert_int_equal(pwrite(fd, bytes, size, (off_t)at), size);
    if (keep_bytes > 0)
        assert_int_equal(ftruncate(fd, (off_t)keep_bytes), 0);
    return binary_table_add_file(binaries, &key, "/opt/none/changed", fd);
}

static void broken_section_table(void **state)
{
    static const uint64_t all_ones = UINT64_MAX;
    static const uint16_t no_count = 0;
    static const uint16_t big_count = 0xfeff;

    (void)state;
    table =
        elf_symbols_load(no_context(), add_changed("pie", 0, offsetof(Elf64_Ehdr, e_shoff), &all_ones, 8));
    assert_int_equal(symbol_table_count(table), 0);
    symbol_table_destroy(table);
    table =
        elf_symbols_load(no_context(), add_changed("pie", 0, offsetof(Elf64_Ehdr, e_shnum), &big_count, 2));
    assert_int_equal(symbol_table_count(table), 0);
    symbol_table_destroy(table);
    table =
        elf_symbols_load(no_context(), add_changed("pie", 0, offsetof(Elf64_Ehdr, e_shnum), &no_count, 2));
    assert_int_equal(symbol_table_count(table), 0);
    symbol_table_destroy(table);
    table = elf_symbols_load(no_context(),
                             add_changed("pie", 0, offsetof(Elf64_Ehdr, e_shstrndx), &big_count, 2));
    assert_int_equal(symbol_table_count(table), 0);
}

static void cut_at_every_length(void **state)
{
    static const char nothing[] = "";

    (void)state;
    for (size_t keep = 1; keep < 20000; keep += keep < 200 ? 7 : 611) {
        table = elf_symbols_load(no_context(), add_changed("pie", keep, 0, nothing, 0));
        symbol_table_destroy(table);
        table = NULL;
    }
}

/* A file that is cut after it was opened, between the look at its headers and that at its symbols. */
static void shrinks_after_it_was_added(void **state)
{
    static const char nothing[] = "";
    struct binary *binary = add_changed("pie", 0, 0, nothing, 0);

    (void)state;
    assert_true(binary->is_elf);
    assert_int_equal(ftruncate(binary->fd, 4096), 0);
    table = elf_symbols_load(no_context(), binary);
    assert_int_equal(symbol_table_count(table), 0);
}

static void no_file(void **state)
{
    struct binary_key key = {.device = 1, .inode = 1};

    (void)state;
    table = elf_symbols_load(no_context(), binary_table_add_file(binaries, &key, "/gone", -1));
    assert_int_equal(symbol_table_count(table), 0);
}

static void vdso(void **state)
{
    const struct binary *binary = binary_table_vdso(binaries);
    bool has_clock = false;

    (void)state;
    table = elf_symbols_load(no_context(), binary);
    for (uint64_t address = 0; address < binary->image_size_bytes && !has_clock; address++) {
        const char *name = symbol_table_find(table, address);

        has_clock = name != NULL && strstr(name, "clock_gettime") != NULL;
    }
    assert_true(has_clock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_way_of_linking, set_up, tear_down),
        cmocka_unit_test_setup_teardown(linked_by_lld, set_up, tear_down),
        cmocka_unit_test_setup_teardown(symbols_without_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(functions_in_functions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(data_and_mapping_symbols_name_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(versions_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stripped_has_only_stubs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(minidebuginfo, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_minidebuginfo, set_up, tear_down),
        cmocka_unit_test_setup_teardown(plt_stubs_are_named, set_up, tear_down),
        cmocka_unit_test(decode_plt_code),
        cmocka_unit_test_setup_teardown(broken_section_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cut_at_every_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shrinks_after_it_was_added, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(vdso, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed == 0 && was_skipped ? 77 : failed;
}
