#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/symbolize/data_symbol.h"

/* In this program's own data. */
long data_symbol_alone = 1;
struct {
    char before[24];
    int lock;
} data_symbol_inside = {.lock = 2};

static int take_bias(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    *(uint64_t *)context = info->dlpi_addr;
    return 1; /* the first is the program */
}

static void expect(const struct binary *binary, const void *address, const char *wanted)
{
    uint64_t bias = 0;
    char *name;

    dl_iterate_phdr(take_bias, &bias);
    name = data_symbol_find(binary, (uint64_t)(uintptr_t)address - bias);
    if (wanted == NULL)
        assert_null(name);
    else
        assert_string_equal(name, wanted);
    free(name);
}

static void test_finds_variables(void **state)
{
    struct binary_table *table = binary_table_create();
    const struct binary_key key = {.inode = 1};
    const struct binary *binary =
        binary_table_add_file(table, &key, "/self", open("/proc/self/exe", O_RDONLY | O_CLOEXEC));

    (void)state;
    expect(binary, &data_symbol_alone, "data_symbol_alone");
    expect(binary, (char *)&data_symbol_alone + sizeof data_symbol_alone - 1, "data_symbol_alone");
    expect(binary, &data_symbol_inside.lock, "data_symbol_inside");
    expect(binary, (const void *)(uintptr_t)test_finds_variables, NULL);
    assert_null(data_symbol_find(binary, 0));
    assert_null(data_symbol_find(binary, UINT64_MAX));
    binary_table_destroy(table);
}

static void test_no_file_no_name(void **state)
{
    struct binary_table *table = binary_table_create();
    const struct binary_key key = {.inode = 1};
    const struct binary *binary = binary_table_add_file(table, &key, "/gone", -1);

    (void)state;
    assert_null(data_symbol_find(binary, 0x1000));
    binary_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_variables),
        cmocka_unit_test(test_no_file_no_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
