/* The "dwarf" unwinder on this process, against backtrace(3) on the same stacks. */
#define UNW_LOCAL_ONLY
#include <execinfo.h>
#include <libunwind.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/unwind/unwinder.h"
#include "tests/unit/unwind_child.h"

static struct child child; /* here: for its mappings and its room for a stack */
static struct unwound_stack stack;

struct self {
    struct unwinder *unwinder;
    struct address_space *space;
    uint64_t stack_end;
    size_t compared;
};

static void __attribute__((noinline)) compare_here(struct self *self)
{
    static void *expected[512];
    unw_context_t context;
    struct raw_sample sample = {0};
    struct unwind_request request = {.sample = &sample, .space = self->space};
    int count = backtrace(expected, 512);
    size_t size;

    unw_getcontext(&context);
    registers_set(&sample.registers, REGISTER_IP, (uint64_t)context.uc_mcontext.gregs[REG_RIP]);
    registers_set(&sample.registers, REGISTER_RSP, (uint64_t)context.uc_mcontext.gregs[REG_RSP]);
    registers_set(&sample.registers, REGISTER_RBP, (uint64_t)context.uc_mcontext.gregs[REG_RBP]);
    registers_set(&sample.registers, REGISTER_RBX, (uint64_t)context.uc_mcontext.gregs[REG_RBX]);
    registers_set(&sample.registers, REGISTER_R12, (uint64_t)context.uc_mcontext.gregs[REG_R12]);
    registers_set(&sample.registers, REGISTER_R13, (uint64_t)context.uc_mcontext.gregs[REG_R13]);
    registers_set(&sample.registers, REGISTER_R14, (uint64_t)context.uc_mcontext.gregs[REG_R14]);
    registers_set(&sample.registers, REGISTER_R15, (uint64_t)context.uc_mcontext.gregs[REG_R15]);
    sample.stack_address = sample.registers.value[REGISTER_RSP];
    size = self->stack_end - sample.stack_address;
    if (size > sizeof child.stack)
        size = sizeof child.stack;
    for (size_t i = 0; i < size; i++) /* not memcpy: sanitizers know that this reads over objects */
        child.stack[i] = ((const volatile uint8_t *)sample.stack_address)[i];
    sample.stack = child.stack;
    sample.stack_size_bytes = size;
    unwind_libunwind.walk(self->unwinder, &request, &stack);
    assert_int_equal(stack.end, UNWIND_REACHED_START);
    assert_int_equal(stack.count, count);
    for (int i = 1; i < count; i++)
        assert_int_equal(stack.addresses[i], (uint64_t)expected[i] - 1);
    self->compared++;
}

static int __attribute__((noinline)) recurse(struct self *self, int depth)
{
    int result = depth > 0 ? recurse(self, depth - 1) + 1 : 0;

    compare_here(self);
    return result;
}

static int compare_in_sort(const void *left, const void *right, void *context)
{
    compare_here(context);
    return *(const int *)left - *(const int *)right;
}

static void read_own_stack_end(uint64_t *ret_end)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    uint64_t start, end;

    while (fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && start <= (uint64_t)&line &&
            (uint64_t)&line < end)
            *ret_end = end;
    fclose(maps);
}

static void test_like_backtrace(void **state)
{
    struct binary_table *binaries = binary_table_create();
    struct self self = {.unwinder = unwind_libunwind.create(binaries), .space = &child.space};
    int numbers[32];

    (void)state;
    child.pid = getpid();
    assert_true(child_read_maps(&child, binaries));
    child.pid = 0;
    read_own_stack_end(&self.stack_end);
    for (int i = 0; i < 32; i++)
        numbers[i] = i * 7919 % 31;
    recurse(&self, 100);
    qsort_r(numbers, 32, sizeof *numbers, compare_in_sort, &self);
    print_message("%zu stacks like backtrace(3)\n", self.compared);
    assert_in_range(self.compared, 150, 1000);
    address_space_finish(&child.space);
    unwind_libunwind.destroy(self.unwinder);
    binary_table_destroy(binaries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_like_backtrace)};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("skipped: under a sanitizer, which has its own backtrace and its own stacks\n");
    return 77;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
