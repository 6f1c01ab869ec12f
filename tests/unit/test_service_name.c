#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profiler/wait/service_name.h"

static void test_ports(void **state)
{
    (void)state;
    assert_string_equal(service_name_of_port(5432), "postgresql");
    assert_string_equal(service_name_of_port(3306), "mysql");
    assert_string_equal(service_name_of_port(6379), "redis");
    assert_string_equal(service_name_of_port(53), "dns");
    assert_null(service_name_of_port(0));
    assert_null(service_name_of_port(54321));
}

static void test_one_name_for_a_database(void **state)
{
    (void)state;
    assert_string_equal(service_database("postgres"), service_database("postgresql"));
    assert_string_equal(service_database("mariadbd"), service_database("mysql"));
    assert_string_equal(service_database("redis-server"), "redis");
    assert_null(service_database("nginx"));
    assert_null(service_database(""));
}

static void expect(const char *wait, const char *service)
{
    char name[64];

    service_of_wait(wait, name, sizeof name);
    assert_string_equal(name, service);
}

static void test_service_in_a_wait_frame(void **state)
{
    char small[5];

    (void)state;
    expect("[wait: tcp 10.0.0.5:5432 postgresql]", "postgresql");
    expect("[wait: send tcp [::1]:5432 postgres]", "postgres");
    expect("[wait: connect unix /run/pg/.s.PGSQL.5432 postgres]", "postgres");
    expect("[wait: tcp 10.0.0.5:5432 haproxy, database: postgresql]", "haproxy");
    expect("[wait: unix /run/a b postgres]", "postgres");
    expect("[wait: tcp 10.0.0.5:5432]", "");
    expect("[wait: tcp]", "");
    expect("[wait: client tcp :8080]", "");
    expect("[wait: lock a postgres]", "");
    expect("[wait: sleep]", "");
    expect("", "");
    service_of_wait("[wait: tcp 10.0.0.5:5432 postgresql]", small, sizeof small);
    assert_string_equal(small, "post");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_one_name_for_a_database),
        cmocka_unit_test(test_service_in_a_wait_frame),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
