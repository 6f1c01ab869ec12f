#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiler/model/wait_role.h"
#include "profiler/wait/wait_name.h"

static const struct {
    const char *text;
    enum wait_role role;
    enum wait_kind kind;
} rows[] = {
    {"[wait: tcp 10.0.0.5:5432 postgresql]", WAIT_ROLE_OUTBOUND, WAIT_DATABASE},
    {"[wait: tcp 10.0.0.5:80 nginx]", WAIT_ROLE_OUTBOUND, WAIT_NETWORK},
    {"[wait: tcp 10.0.0.5:5432 haproxy, database: postgresql]", WAIT_ROLE_OUTBOUND, WAIT_DATABASE},
    {"[wait: send tcp 10.0.0.5:5432 postgres]", WAIT_ROLE_OUTBOUND, WAIT_DATABASE},
    {"[wait: connect tcp 10.0.0.5:6379 redis-server]", WAIT_ROLE_OUTBOUND, WAIT_DATABASE},
    {"[wait: unix /run/pg/.s.PGSQL.5432 postgres]", WAIT_ROLE_OUTBOUND, WAIT_DATABASE},
    {"[wait: unix]", WAIT_ROLE_OUTBOUND, WAIT_NETWORK},
    {"[wait: udp 10.0.0.1:53 dns]", WAIT_ROLE_OUTBOUND, WAIT_NETWORK},
    {"[wait: client tcp :8080]", WAIT_ROLE_CLIENT, WAIT_NETWORK},
    {"[wait: client unix /run/tcp x]", WAIT_ROLE_CLIENT, WAIT_NETWORK},
    {"[wait: send client tcp :8080]", WAIT_ROLE_SEND_CLIENT, WAIT_NETWORK},
    {"[wait: accept tcp :8080]", WAIT_ROLE_ACCEPT, WAIT_NETWORK},
    {"[wait: accept]", WAIT_ROLE_ACCEPT, WAIT_NETWORK},
    {"[wait: epoll]", WAIT_ROLE_EVENT_LOOP, WAIT_OTHER},
    {"[wait: events]", WAIT_ROLE_EVENT_LOOP, WAIT_OTHER},
    {"[wait: lock cache_mu]", WAIT_ROLE_LOCK, WAIT_LOCK},
    {"[wait: lock]", WAIT_ROLE_LOCK, WAIT_LOCK},
    {"[wait: futex]", WAIT_ROLE_LOCK, WAIT_LOCK},
    {"[wait: condition]", WAIT_ROLE_CONDITION, WAIT_LOCK},
    {"[wait: task]", WAIT_ROLE_TASK, WAIT_LOCK},
    {"[wait: task, database: postgresql]", WAIT_ROLE_TASK, WAIT_DATABASE},
    {"[wait: pipe stdin]", WAIT_ROLE_QUEUE, WAIT_OTHER},
    {"[wait: send pipe]", WAIT_ROLE_UNKNOWN, WAIT_OTHER},
    {"[wait: sleep]", WAIT_ROLE_SLEEP, WAIT_SLEEP},
    {"[wait: disk read]", WAIT_ROLE_DISK, WAIT_DISK},
    {"[wait: page fault]", WAIT_ROLE_DISK, WAIT_DISK},
    {"[wait: fsync]", WAIT_ROLE_DISK, WAIT_DISK},
    {"[wait: child]", WAIT_ROLE_CHILD, WAIT_OTHER},
    /* What may be anything: a dependency must not pass for something else. */
    {"[wait: poll]", WAIT_ROLE_UNKNOWN, WAIT_OTHER},
    {"[wait: read]", WAIT_ROLE_UNKNOWN, WAIT_OTHER},
    {"[wait: recvfrom]", WAIT_ROLE_UNKNOWN, WAIT_NETWORK},
    {"[wait: clients]", WAIT_ROLE_UNKNOWN, WAIT_OTHER},
    {"[wait: ", WAIT_ROLE_UNKNOWN, WAIT_OTHER},
    {"client tcp", WAIT_ROLE_UNKNOWN, WAIT_OTHER},
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("%s\n", rows[i].text);
        assert_int_equal(wait_role_of_text(rows[i].text), rows[i].role);
        assert_int_equal(wait_kind_of_text(rows[i].text), rows[i].kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
