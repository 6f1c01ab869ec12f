#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/model/location.h"
#include "profiler/model/process.h"

static void test_reused_number_is_somebody_else(void **state)
{
    struct process_table *table = process_table_create();
    struct process *old = process_table_add_process(table, 100, "old", 1);
    struct thread *old_thread = process_table_add_thread(table, old, 100, "old", 1);
    struct process *new = process_table_add_process(table, 100, "new", 50);

    (void)state;
    assert_false(old->alive);
    assert_false(old_thread->alive);
    assert_int_equal(old_thread->end_ns, 50);
    assert_ptr_equal(process_table_find_process(table, 100), new);
    assert_null(process_table_find_thread(table, 100));
    assert_int_not_equal(old->id, new->id);
    process_table_destroy(table);
}

static void test_live_threads_are_counted(void **state)
{
    struct process_table *table = process_table_create();
    struct process *process = process_table_add_process(table, 100, "srv", 1);
    struct thread *main_thread = process_table_add_thread(table, process, 100, "srv", 1);
    struct thread *worker = process_table_add_thread(table, process, 101, "worker", 2);

    (void)state;
    assert_true(main_thread->is_main);
    assert_false(worker->is_main);
    assert_int_equal(process->live_threads, 2);
    process_table_end_thread(table, worker, 9);
    process_table_end_thread(table, worker, 11);
    assert_int_equal(process->live_threads, 1);
    assert_int_equal(worker->end_ns, 9);
    process_table_end_process(table, process, 20);
    assert_int_equal(process->live_threads, 0);
    assert_int_equal(main_thread->end_ns, 20);
    process_table_destroy(table);
}

static void test_long_comm_is_cut(void **state)
{
    struct process_table *table = process_table_create();
    struct process *process = process_table_add_process(table, 100, "srv", 1);
    struct thread *thread = process_table_add_thread(table, process, 100, "0123456789abcdefghij", 1);

    (void)state;
    assert_string_equal(thread->comm, "0123456789abcde");
    thread_set_comm(thread, "x");
    assert_string_equal(thread->comm, "x");
    process_table_destroy(table);
}

static void test_equal_locations_are_one(void **state)
{
    struct location_table *table = location_table_create();
    const struct location a = {.kind = LOCATION_USER, .owner = 1, .address = 0x10};
    const struct location b = {.kind = LOCATION_USER, .owner = 2, .address = 0x10};
    uint32_t id = location_table_intern(table, &a);

    (void)state;
    assert_int_not_equal(location_table_intern(table, &b), id);
    assert_int_equal(location_table_intern(table, &a), id);
    assert_int_equal(location_table_count(table), 2);
    assert_int_equal(location_table_get(table, id)->owner, 1);
    location_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reused_number_is_somebody_else),
        cmocka_unit_test(test_live_threads_are_counted),
        cmocka_unit_test(test_long_comm_is_cut),
        cmocka_unit_test(test_equal_locations_are_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
