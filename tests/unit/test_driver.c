#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/wait/driver.h"

static void expect(const char *module, const char *name, const char *service)
{
    const struct driver *driver = driver_of_frame(module, name);

    if (service == NULL) {
        if (driver != NULL)
            fail_msg("%s %s is taken for %s", module, name, driver->service);
        return;
    }
    if (driver == NULL)
        fail_msg("%s %s is not known", module, name);
    assert_string_equal(driver->service, service);
}

static void test_native_clients(void **state)
{
    (void)state;
    expect("libpq.so.5.15", "PQgetResult", "postgresql");
    expect("libmongoc-1.0.so.0.0.0", "mongoc_client_command", "mongodb");
    expect("libhiredis.so.0.14", "redisGetReply", "redis");
    expect("libmariadb.so.3", "mysql_real_query", "mariadb");
    expect("libpqxx-6.4.so", "exec", NULL);
    expect("libctf.so", "x", NULL);
    expect("libc.so.6", "poll", NULL);
    expect("", "", NULL);
}

static void test_managed_clients(void **state)
{
    (void)state;
    expect("[jit]", "void [Npgsql] Npgsql.NpgsqlCommand::ExecuteReader()", "postgresql");
    expect("[jit]", "void org.postgresql.core.v3.QueryExecutorImpl.execute()", "postgresql");
    expect("[jit]", "JS:*query /app/node_modules/pg/lib/client.js:1:1", "postgresql");
    expect("[jit]", "void MyNpgsql.Thing::run()", NULL);
    expect("[jit]", "void my.org.postgresql.Fake.run()", NULL);
}

static void test_tag(void **state)
{
    char text[64];
    char small[16];

    (void)state;
    driver_tag_wait("[wait: poll]", driver_of_frame("libpq.so.5", ""), text, sizeof text);
    assert_string_equal(text, "[wait: poll, database: postgresql]");
    driver_tag_wait("[wait: poll]", driver_of_frame("libpq.so.5", ""), small, sizeof small);
    assert_string_equal(small, "[wait: poll, da");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_clients),
        cmocka_unit_test(test_managed_clients),
        cmocka_unit_test(test_tag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
