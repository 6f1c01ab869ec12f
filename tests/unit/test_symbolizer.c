#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "profiler/symbolize/symbolizer.h"
#include "tests/fixtures/fixture.h"

static struct binary_table *binaries;
static struct process_table *processes;
static struct symbolizer *symbolizer;
static struct symbol symbol;
static uint32_t process;
static const char *perf_map_text; /* what the target's perf map holds now; NULL = there is none */
static char perf_map_path[64];    /* the one that was asked for last */
static int perf_map_opens;

static int open_in_target(void *open_context, uint32_t asked_process, const char *path)
{
    int fd;

    (void)open_context;
    if (strncmp(path, "/tmp/", 5) != 0)
        return -ENOENT;
    assert_int_equal(asked_process, process);
    perf_map_opens++;
    snprintf(perf_map_path, sizeof perf_map_path, "%s", path);
    if (perf_map_text == NULL)
        return -ENOENT;
    fd = memfd_create("perf.map", MFD_CLOEXEC);
    assert_int_equal(write(fd, perf_map_text, strlen(perf_map_text)), strlen(perf_map_text));
    return fd;
}

static pid_t inner_pid(void *open_context, uint32_t asked_process)
{
    (void)open_context;
    assert_int_equal(asked_process, process);
    return 7;
}

static int set_up(void **state)
{
    struct symbolizer_context context = {.open_in_target = open_in_target, .inner_pid = inner_pid};

    (void)state;
    perf_map_text = NULL;
    perf_map_opens = 0;
    binaries = binary_table_create();
    processes = process_table_create();
    process_table_add_process(processes, 1000, "other", 0);
    process = process_table_add_process(processes, 1234, "prog", 0)->id;
    context.binaries = binaries;
    context.processes = processes;
    symbolizer = symbolizer_create(&context);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    symbolizer_destroy(symbolizer);
    process_table_destroy(processes);
    binary_table_destroy(binaries);
    return 0;
}

static void resolve(enum location_kind kind, uint32_t owner, uint64_t address)
{
    struct location location = {.kind = kind, .owner = owner, .address = address};

    symbolizer_resolve(symbolizer, &location, &symbol);
}

static void assert_symbol(const char *name, const char *module, bool is_named)
{
    assert_string_equal(symbol.name, name);
    assert_string_equal(symbol.module, module);
    assert_int_equal(symbol.is_named, is_named);
}

/* Looked up below by its address; the compiler must keep it apart from its caller. */
__attribute__((noinline)) static int function_of_this_program(int x)
{
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

/* The file that holds an address of this process, and the address in it. */
static struct binary *binary_of(const void *pointer, uint64_t *ret_vaddr)
{
    struct link_map *link = NULL;
    struct binary *binary;
    struct binary_key key;
    struct stat st;
    const char *path;
    Dl_info info;
    int fd;

    assert_int_not_equal(dladdr1(pointer, &info, (void **)&link, RTLD_DL_LINKMAP), 0);
    path = link->l_name[0] != '\0' ? link->l_name : "/proc/self/exe";
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(fd, &st), 0);
    key = (struct binary_key){.device = st.st_dev, .inode = st.st_ino};
    binary = binary_table_find(binaries, &key);
    if (binary != NULL)
        close(fd);
    else
        binary = binary_table_add_file(binaries, &key, path, fd);
    *ret_vaddr = (uint64_t)(uintptr_t)pointer - link->l_addr;
    return binary;
}

static void functions_of_this_process(void **state)
{
    uint64_t vaddr;
    const struct binary *binary = binary_of((const void *)(uintptr_t)function_of_this_program, &vaddr);

    (void)state;
    assert_int_equal(function_of_this_program(1), 2);
    resolve(LOCATION_USER, binary->id, vaddr);
    assert_symbol("function_of_this_program", "exe", true);
    resolve(LOCATION_USER, binary->id, vaddr + 1);
    assert_symbol("function_of_this_program", "exe", true);
}

/* Of several names of one address global beats weak, so poll is __poll. */
static void functions_of_the_c_library(void **state)
{
    uint64_t vaddr;
    /* Of the library itself: sanitizers put functions of their own before it. */
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    const struct binary *binary;

    (void)state;
    assert_non_null(libc);
    binary = binary_of(dlsym(libc, "poll"), &vaddr);
    resolve(LOCATION_USER, binary->id, vaddr + 4);
    assert_symbol("__poll", "libc.so.6", true);
    assert_int_equal(strlen(symbol.build_id), 2 * binary->build_id_size_bytes);
    binary = binary_of(dlsym(libc, "qsort"), &vaddr);
    resolve(LOCATION_USER, binary->id, vaddr);
    assert_symbol("qsort", "libc.so.6", true);
    dlclose(libc);
}

static void address_in_no_symbol(void **state)
{
    const struct binary *binary = add_fixture(binaries, "pie", "/opt/srv/prog (1)");
    uint64_t address = nm_address("pie", "alias_local") + 16;
    char wanted[64];

    (void)state;
    snprintf(wanted, sizeof wanted, "prog (1)+0x%" PRIx64, address);
    resolve(LOCATION_USER, binary->id, address);
    assert_symbol(wanted, "prog (1)", false);
    resolve(LOCATION_USER, binary->id, UINT64_MAX);
    assert_symbol("prog (1)+0xffffffffffffffff", "prog (1)", false);
}

static void broken_and_missing_files(void **state)
{
    struct binary_key key = {.device = 1, .inode = 1};
    int fd = memfd_create("broken", MFD_CLOEXEC);
    const struct binary *binary;

    (void)state;
    assert_int_equal(write(fd,
                           "\x7f"
                           "ELF",
                           4),
                     4);
    binary = binary_table_add_file(binaries, &key, "/opt/broken", fd);
    resolve(LOCATION_USER, binary->id, 0x1234);
    assert_symbol("broken+0x1234", "broken", false);
    assert_string_equal(symbol.build_id, "");
    key.inode = 2;
    binary = binary_table_add_file(binaries, &key, "/opt/gone", -1);
    resolve(LOCATION_USER, binary->id, 0x10);
    assert_symbol("gone+0x10", "gone", false);
    resolve(LOCATION_USER, 99, 0x10);
    assert_symbol("0x10", "", false);
}

static void jit_code_is_named_by_the_perf_map(void **state)
{
    const struct binary *jit = binary_table_jit(binaries, process);

    (void)state;
    perf_map_text = "7f0000001000 40 void SpinJ.spinJ()\n";
    resolve(LOCATION_USER, jit->id, 0x7f0000001010);
    assert_symbol("void SpinJ.spinJ()", "[jit]", true);
    assert_string_equal(perf_map_path, "/tmp/perf-7.map");
    resolve(LOCATION_USER, jit->id, 0x7f0000001040);
    assert_symbol("[jit]+0x7f0000001040", "[jit]", false);
    resolve(LOCATION_UNMAPPED, process, 0x7f0000001000);
    assert_symbol("void SpinJ.spinJ()", "[jit]", true);
    assert_int_equal(perf_map_opens, 1);
}

static void no_perf_map(void **state)
{
    (void)state;
    resolve(LOCATION_UNMAPPED, process, 0x7f0000001000);
    assert_symbol("0x7f0000001000", "", false);
    resolve(LOCATION_UNMAPPED, process, 0x7f0000001001);
    assert_int_equal(perf_map_opens, 1);
    resolve(LOCATION_UNMAPPED, 99, 0x7f0000001000);
    assert_symbol("0x7f0000001000", "", false);
}

/* A process may be gone when its names are wanted: its map was read before. */
static void perf_map_read_before(void **state)
{
    (void)state;
    perf_map_text = "1000 40 old\n2000 40 kept\n";
    symbolizer_load_perf_map(symbolizer, process);
    perf_map_text = "1000 20 new\n";
    symbolizer_load_perf_map(symbolizer, process);
    perf_map_text = NULL;
    symbolizer_load_perf_map(symbolizer, process);
    resolve(LOCATION_UNMAPPED, process, 0x1000);
    assert_symbol("new", "[jit]", true);
    resolve(LOCATION_UNMAPPED, process, 0x1020);
    assert_symbol("old", "[jit]", true);
    resolve(LOCATION_UNMAPPED, process, 0x2000);
    assert_symbol("kept", "[jit]", true);
}

static void kernel_names(void **state)
{
    uint64_t address = 0;
    char line[256];
    FILE *file = fopen("/proc/kallsyms", "r");

    (void)state;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strstr(line, " T vfs_read\n") != NULL)
            address = strtoull(line, NULL, 16);
    if (file != NULL)
        fclose(file);
    resolve(LOCATION_KERNEL, 0, address + 4);
    if (address != 0)
        assert_symbol("vfs_read", "[kernel]", true);
    else
        assert_symbol("[kernel]", "[kernel]", false);
    resolve(LOCATION_KERNEL, 0, UINT64_MAX);
    assert_symbol("[kernel]", "[kernel]", false);
}

static void vdso_names(void **state)
{
    const struct binary *vdso = binary_table_vdso(binaries);
    bool has_clock = false;

    (void)state;
    for (uint64_t address = 0; address < vdso->image_size_bytes && !has_clock; address += 16) {
        resolve(LOCATION_USER, vdso->id, address);
        assert_string_equal(symbol.module, "[vdso]");
        has_clock = symbol.is_named && strstr(symbol.name, "clock_gettime") != NULL;
    }
    assert_true(has_clock);
}

/* Shortened by us, without cutting a character in two. */
static void long_names_are_shortened(void **state)
{
    enum { CHARACTERS = 3000 };
    char text[32 + 2 * CHARACTERS];
    size_t size = (size_t)sprintf(text, "1000 40 x");

    (void)state;
    for (size_t i = 0; i < CHARACTERS; i++)
        size += (size_t)sprintf(text + size, "\xc3\xa4");
    perf_map_text = text;
    resolve(LOCATION_UNMAPPED, process, 0x1000);
    assert_int_equal(strlen(symbol.name), 1 + 2 * 2046 + 3);
    assert_string_equal(symbol.name + strlen(symbol.name) - 5, "\xc3\xa4...");
    text[1 + strlen("1000 40 ") + 4094] = '\0';
    symbolizer_load_perf_map(symbolizer, process);
    resolve(LOCATION_UNMAPPED, process, 0x1000);
    assert_int_equal(strlen(symbol.name), 4095);
    perf_map_text = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(functions_of_this_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(functions_of_the_c_library, set_up, tear_down),
        cmocka_unit_test_setup_teardown(address_in_no_symbol, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_and_missing_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jit_code_is_named_by_the_perf_map, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_perf_map, set_up, tear_down),
        cmocka_unit_test_setup_teardown(perf_map_read_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kernel_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(vdso_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_names_are_shortened, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
