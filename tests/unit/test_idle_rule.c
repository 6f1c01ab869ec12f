#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "profiler/wait/idle_rule.h"

#define C(name)                                                                                              \
    {                                                                                                        \
        name, "libc.so.6"                                                                                    \
    }
#define P(name)                                                                                              \
    {                                                                                                        \
        name, "srv"                                                                                          \
    }
#define STACK(...)                                                                                           \
    (const struct wait_function[]){__VA_ARGS__},                                                             \
        sizeof((const struct wait_function[]){__VA_ARGS__}) / sizeof(struct wait_function)

static enum idle_reason judge(const char *wait, const struct wait_function *frames, size_t count)
{
    const struct idle_question question = {
        .wait_text = wait, .frames = frames, .count = count, .from_start = true};

    return idle_rules_judge(NULL, &question).reason;
}

static void test_verdict_fits_its_reason(void **state)
{
    static const char *const waits[] = {"[wait: tcp 1.2.3.4:5]", "[wait: client tcp :80]", "[wait: epoll]",
                                        "[wait: lock x]",        "[wait: condition]",      "[wait: poll]"};

    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        const struct idle_question question = {.wait_text = waits[i]};
        struct idle_verdict verdict = idle_rules_judge(NULL, &question);

        assert_true(strlen(idle_reason_text(verdict.reason)) > 0);
        assert_int_equal(verdict.idle,
                         verdict.reason == IDLE_NO_REQUEST || verdict.reason == IDLE_EVENT_LOOP);
    }
}

static void test_what_is_waited_for_decides(void **state)
{
    (void)state;
    assert_int_equal(judge("[wait: tcp 1.2.3.4:5]", STACK(C("recv"), P("main"))), BUSY_DEPENDENCY);
    assert_int_equal(judge("[wait: send client tcp :80]", STACK(C("send"), P("main"))), BUSY_SLOW_CLIENT);
    assert_int_equal(judge("[wait: lock x]", STACK(C("pthread_mutex_lock"), P("main"))), BUSY_LOCK);
    assert_int_equal(judge("[wait: disk read]", STACK(C("read"), P("main"))), BUSY_DISK);
    assert_int_equal(judge("[wait: task]", STACK(P("main"))), BUSY_ACQUIRE);
    assert_int_equal(judge("[wait: recvfrom]", STACK(C("recv"), P("main"))), BUSY_UNKNOWN);
    assert_int_equal(judge("[wait: client tcp :80]", STACK(P("a"), P("b"), P("c"), P("d"))), IDLE_NO_REQUEST);
    assert_int_equal(judge("[wait: accept tcp :80]", STACK(P("main"))), IDLE_NO_REQUEST);
    assert_int_equal(judge("[wait: epoll]", STACK(P("a"), P("b"), P("c"), P("d"))), IDLE_EVENT_LOOP);
}

static void test_at_home(void **state)
{
    (void)state;
    assert_int_equal(judge("[wait: condition]",
                           STACK(C("pthread_cond_wait"), P("pop"), P("worker_main"), C("start_thread"))),
                     IDLE_AT_START);
    assert_int_equal(judge("[wait: sleep]", STACK(C("nanosleep"), P("reaper"), C("start_thread"))),
                     IDLE_AT_START);
    assert_int_equal(judge("[wait: condition]", STACK(C("pthread_cond_wait"), P("get"), P("handle"),
                                                      P("worker_main"), C("start_thread"))),
                     BUSY_IN_WORK);
    assert_int_equal(judge("[wait: sleep]", STACK(C("nanosleep"), P("handle_sleep"), P("worker_main"))),
                     BUSY_IN_WORK);
    /* Frames of a library's own do not count. */
    assert_int_equal(
        judge("[wait: condition]",
              STACK(C("pthread_cond_wait"), P("std::condition_variable::wait(lock)"), P("Pool::pop()"),
                    P("Pool::work()"), P("std::thread::_State_impl<f>::_M_run()"), C("start_thread"))),
        IDLE_AT_START);
}

static void test_truncated_stacks_have_no_start(void **state)
{
    const struct wait_function frames[] = {C("pthread_cond_wait"), P("get")};
    const struct idle_question question = {.wait_text = "[wait: condition]", .frames = frames, .count = 2};

    (void)state;
    assert_int_equal(idle_rules_judge(NULL, &question).reason, BUSY_IN_WORK);
}

static void test_never_below_an_acquire(void **state)
{
    static const char *const names[] = {"connection_acquire", "Pool::getConnection()",
                                        "poolAcquire",        "future_get",
                                        "rwlock_take",        "Promise<int>::wait()"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct wait_function frames[] = {C("pthread_cond_wait"), {names[i], "srv"}, P("worker")};

        assert_int_equal(judge("[wait: condition]", frames, 3), BUSY_ACQUIRE);
    }
    assert_int_equal(
        judge("[wait: condition]", STACK(C("pthread_cond_wait"), P("block_reader"), P("clock_worker"))),
        IDLE_AT_START);
}

static void test_returns_outside_work(void **state)
{
    const struct wait_function frames[] = {C("pthread_cond_wait"), P("a"), P("b"), P("c"), P("d")};
    struct idle_question question = {
        .wait_text = "[wait: condition]", .frames = frames, .count = 5, .from_start = true, .returns = 2};

    (void)state;
    assert_int_equal(idle_rules_judge(NULL, &question).reason, BUSY_IN_WORK);
    question.outside_work = true;
    assert_int_equal(idle_rules_judge(NULL, &question).reason, IDLE_RETURNS);
    question.returns = 1;
    assert_int_equal(idle_rules_judge(NULL, &question).reason, BUSY_IN_WORK);
}

static void test_known_pools(void **state)
{
    (void)state;
    assert_int_equal(
        judge("[wait: condition]",
              STACK(C("pthread_cond_wait"), P("jdk.internal.misc.Unsafe.park"),
                    P("java.util.concurrent.ThreadPoolExecutor.getTask"), P("x"), P("y"), P("z"))),
        IDLE_POOL);
    assert_int_equal(
        judge("[wait: condition]", STACK(P("runtime.futex"), P("runtime.stopm"), P("runtime.schedule"))),
        IDLE_POOL);
}

static void test_children(void **state)
{
    (void)state;
    assert_int_equal(judge("[wait: child]", STACK(C("wait4"), P("main"))), IDLE_AT_START);
    assert_int_equal(judge("[wait: child]", STACK(C("wait4"), C("do_system"), P("main"))), BUSY_CHILD);
}

/* Even at the thread's home. */
static void test_drivers_are_dependencies(void **state)
{
    const struct wait_function frames[] = {C("pthread_cond_wait"), P("main")};
    const struct idle_question question = {
        .wait_text = "[wait: epoll]", .frames = frames, .count = 2, .from_start = true, .has_driver = true};

    (void)state;
    assert_int_equal(idle_rules_judge(NULL, &question).reason, BUSY_DEPENDENCY);
    assert_int_equal(judge("[wait: condition, database: redis]", frames, 2), BUSY_DEPENDENCY);
}

static void test_rules_of_the_user(void **state)
{
    static const char *const idle[] = {"^handle_[a-z]+$", "lock cache_mu"};
    static const char *const busy[] = {"^pop$"};
    const struct wait_function frames[] = {P("pop"), P("main")};
    const struct wait_function handler[] = {P("get"), P("handle_x")};
    const struct wait_function both[] = {P("pop"), P("handle_x")};
    struct idle_question question = {.wait_text = "[wait: epoll]", .frames = frames, .count = 2};
    struct idle_rules *rules;

    (void)state;
    assert_int_equal(idle_rules_create(idle, 2, busy, 1, &rules, NULL), 0);
    assert_int_equal(idle_rules_judge(rules, &question).reason, BUSY_BY_USER_RULE);
    question.frames = both;
    assert_int_equal(idle_rules_judge(rules, &question).reason, BUSY_BY_USER_RULE);
    question.frames = handler;
    question.wait_text = "[wait: tcp 1.2.3.4:5]";
    assert_int_equal(idle_rules_judge(rules, &question).reason, IDLE_BY_USER_RULE);
    question.count = 1;
    assert_int_equal(idle_rules_judge(rules, &question).reason, BUSY_DEPENDENCY);
    question.wait_text = "[wait: lock cache_mu]";
    assert_int_equal(idle_rules_judge(rules, &question).reason, IDLE_BY_USER_RULE);
    idle_rules_destroy(rules);
}

static void test_refuses_broken_and_too_many_rules(void **state)
{
    const char *broken = "(";
    const char *many[IDLE_RULES_MAX_EXPRESSIONS + 1];
    struct idle_rules *rules = NULL;
    struct error err = {0};

    (void)state;
    assert_int_equal(idle_rules_create(NULL, 0, &broken, 1, &rules, &err), -EINVAL);
    assert_non_null(strstr(err.message, "\"(\""));
    for (size_t i = 0; i < sizeof many / sizeof many[0]; i++)
        many[i] = "x";
    assert_int_equal(idle_rules_create(many, sizeof many / sizeof many[0], NULL, 0, &rules, &err), -EINVAL);
    assert_null(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict_fits_its_reason),
        cmocka_unit_test(test_what_is_waited_for_decides),
        cmocka_unit_test(test_at_home),
        cmocka_unit_test(test_truncated_stacks_have_no_start),
        cmocka_unit_test(test_never_below_an_acquire),
        cmocka_unit_test(test_returns_outside_work),
        cmocka_unit_test(test_known_pools),
        cmocka_unit_test(test_children),
        cmocka_unit_test(test_drivers_are_dependencies),
        cmocka_unit_test(test_rules_of_the_user),
        cmocka_unit_test(test_refuses_broken_and_too_many_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
