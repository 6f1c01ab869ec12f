#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profiler/wait/wait_name.h"
#include "profiler/wait/wait_refine.h"

#define C(name)                                                                                              \
    {                                                                                                        \
        name, "libc.so.6"                                                                                    \
    }
#define P(name)                                                                                              \
    {                                                                                                        \
        name, "srv"                                                                                          \
    }
#define J(name)                                                                                              \
    {                                                                                                        \
        name, "[jit]"                                                                                        \
    }

static void expect_frames(const struct wait_function *frames, size_t count, const char *text,
                          const char *wanted)
{
    char refined[WAIT_TEXT_BYTES];

    wait_refine(text, frames, count, refined, sizeof refined);
    assert_string_equal(refined, wanted);
}

#define EXPECT(text, wanted, ...)                                                                            \
    expect_frames((const struct wait_function[]){__VA_ARGS__},                                               \
                  sizeof((const struct wait_function[]){__VA_ARGS__}) / sizeof(struct wait_function), text,  \
                  wanted)

static void test_locks_are_named(void **state)
{
    (void)state;
    EXPECT("[wait: lock]", "[wait: lock cache_get]", C("__lll_lock_wait"),
           C("pthread_mutex_lock@@GLIBC_2.2.5"), P("cache_get"), P("worker"));
    EXPECT("[wait: lock]", "[wait: lock Pool::take()]", C("__lll_lock_wait"), C("pthread_mutex_lock"),
           P("std::mutex::lock()"), P("std::lock_guard<std::mutex>::lock_guard()"), P("Pool::take()"),
           P("main"));
    EXPECT("[wait: lock cache_mu]", "[wait: lock cache_mu]", C("__lll_lock_wait"), C("pthread_mutex_lock"),
           P("cache_get"));
    EXPECT("[wait: lock]", "[wait: lock]", C("__lll_lock_wait"));
    EXPECT("[wait: futex]", "[wait: lock cache_get]", C("__lll_lock_wait"), C("pthread_mutex_lock"),
           P("cache_get"));
}

static void test_conditions_and_their_like(void **state)
{
    (void)state;
    EXPECT("[wait: condition]", "[wait: semaphore]", C("__futex_abstimed_wait_common64"), C("sem_wait"),
           P("take"));
    EXPECT("[wait: condition]", "[wait: barrier]", C("futex_wait"), C("pthread_barrier_wait"), P("meet"));
    EXPECT("[wait: condition]", "[wait: condition]", C("pthread_cond_timedwait"), P("pop"));
    EXPECT("[wait: condition]", "[wait: condition]", P("main"));
    EXPECT("[wait: futex]", "[wait: condition]", C("__futex_abstimed_wait_common64"), C("pthread_cond_wait"),
           P("pop"));
    EXPECT("[wait: futex]", "[wait: join]", C("__pthread_clockjoin_ex"), C("pthread_join"), P("main"));
    EXPECT("[wait: futex]", "[wait: futex]", P("main"));
    /* musl's futex value of a condition is a mutex's in glibc. */
    EXPECT("[wait: lock]", "[wait: condition]", {"__timedwait", "ld-musl-x86_64.so.1"},
           {"pthread_cond_timedwait", "ld-musl-x86_64.so.1"}, P("pop"));
    /* The mutex is taken again within the condition's wait. */
    EXPECT("[wait: lock]", "[wait: lock pop]", C("__lll_lock_wait"), C("__pthread_mutex_cond_lock"),
           C("pthread_cond_wait"), P("pop"));
    /* Not what the program calls its own functions further up. */
    EXPECT("[wait: condition]", "[wait: condition]", C("futex_wait"), P("take"), P("my_mutex_lock"));
}

static void test_other_languages(void **state)
{
    (void)state;
    EXPECT("[wait: lock]", "[wait: condition]", C("syscall"),
           P("std::sys::sync::condvar::futex::Condvar::wait_optional_timeout"), P("srv::pop"));
    EXPECT("[wait: lock]", "[wait: lock srv::get]", C("syscall"),
           P("std::sys::sync::mutex::futex::Mutex::lock_contended"), P("srv::get"));
    EXPECT("[wait: condition]", "[wait: condition]", P("runtime.futex"), P("runtime.notesleep"));
}

static void test_locks_of_database_servers(void **state)
{
    (void)state;
    EXPECT("[wait: epoll]", "[wait: lock row]", C("epoll_wait"), P("WaitEventSetWait"), P("WaitLatch"),
           P("ProcSleep"), P("LockAcquire"), P("XactLockTableWait"), P("heap_update"));
    EXPECT("[wait: epoll]", "[wait: lock postgresql]", C("epoll_wait"), P("WaitLatch"), P("ProcSleep"),
           P("LockAcquire"));
    EXPECT("[wait: condition]", "[wait: lock LWLock]", C("sem_wait"), P("PGSemaphoreLock"),
           P("LWLockAcquire"));
    EXPECT("[wait: condition]", "[wait: lock row]", C("pthread_cond_timedwait"), P("lock_wait(que_thr_t*)"),
           P("x"));
    EXPECT("[wait: epoll]", "[wait: epoll]", C("epoll_wait"), P("WaitLatch"), P("lock_waiter_loop"));
    EXPECT("[wait: tcp 1.2.3.4:5]", "[wait: tcp 1.2.3.4:5]", C("recv"), P("ProcSleep"));
}

static void test_managed_runtimes(void **state)
{
    (void)state;
    EXPECT("[wait: condition]", "[wait: lock Cache.get]", C("pthread_cond_wait"),
           {"ObjectMonitor::enter(JavaThread*)", "libjvm.so"}, J("Cache.get"));
    EXPECT("[wait: condition]", "[wait: task]", C("pthread_cond_wait"), {"Park", "libcoreclr.so"},
           J("bool [System.Private.CoreLib] System.Threading.Tasks.Task::SpinThenBlockingWait(int32)"),
           J("Handle"));
    EXPECT("[wait: condition]", "[wait: task]", C("pthread_cond_wait"),
           J("java.util.concurrent.FutureTask.awaitDone"), J("app.Main.run"));
}

static void test_other_waits_stay(void **state)
{
    (void)state;
    EXPECT("[wait: tcp 10.0.0.5:80]", "[wait: tcp 10.0.0.5:80]", C("recv"), C("pthread_cond_wait"));
    EXPECT("[wait: locked]", "[wait: locked]", P("main"));
    expect_frames(NULL, 0, "[wait: lock]", "[wait: lock]");
}

static void test_long_names_are_cut(void **state)
{
    char name[2000];
    char refined[WAIT_TEXT_BYTES];
    const struct wait_function frames[] = {C("pthread_mutex_lock"), {name, "srv"}};

    (void)state;
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    wait_refine("[wait: lock]", frames, 2, refined, sizeof refined);
    assert_int_equal(refined[strlen(refined) - 1], ']');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks_are_named),           cmocka_unit_test(test_conditions_and_their_like),
        cmocka_unit_test(test_other_languages),           cmocka_unit_test(test_managed_runtimes),
        cmocka_unit_test(test_locks_of_database_servers), cmocka_unit_test(test_other_waits_stay),
        cmocka_unit_test(test_long_names_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
