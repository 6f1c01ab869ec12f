#include "profiler/wait/wait_refine.h"

#include <stdio.h>
#include <string.h>

#include "profiler/model/library_code.h"

/* Parts of names of functions that wait, most telling first: within a condition's wait a mutex may be taken
 * again, and the nearest to the leaf counts. */
static const struct {
    const char *part;
    const char *what;
} waits[] = {
    {"pthread_join", "join"},
    {"pthread_timedjoin", "join"},
    {"pthread_clockjoin", "join"},
    {"thrd_join", "join"},
    {"pthread_barrier_wait", "barrier"},
    {"sem_wait", "semaphore"},
    {"sem_timedwait", "semaphore"},
    {"sem_clockwait", "semaphore"},
    {"cond_wait", "condition"},
    {"cond_timedwait", "condition"},
    {"cond_clockwait", "condition"},
    {"cnd_wait", "condition"},
    {"cnd_timedwait", "condition"},
    {"condition_variable", "condition"},
    {"ondvar", "condition"},
    {"thread::park", "condition"},
    {"thread_parker", "condition"},
    {"runtime.notesleep", "condition"},
    {"runtime.notetsleep", "condition"},
    {"mutex_lock", "lock"},
    {"mutex_timedlock", "lock"},
    {"mutex_clocklock", "lock"},
    {"mutex_cond_lock", "lock"},
    {"lll_lock_wait", "lock"},
    {"mtx_lock", "lock"},
    {"mtx_timedlock", "lock"},
    {"rwlock", "lock"},
    {"lock_contended", "lock"},
    {"runtime.lock2", "lock"},
};

/* Whatever it is made of in the end: a monitor that is entered is a lock, a task that is waited for is a
 * task. */
static const struct {
    const char *part;
    const char *what;
} managed_waits[] = {
    {"ObjectMonitor::enter", "lock"},
    {"ObjectSynchronizer::enter", "lock"},
    {"AwareLock::Enter", "lock"},
    {"System.Threading.Tasks.Task::Wait", "task"},
    {"System.Threading.Tasks.Task::InternalWait", "task"},
    {"System.Threading.Tasks.Task::SpinThenBlockingWait", "task"},
    {"Tasks.Task.InternalWait", "task"},
    {"Tasks.Task.SpinThenBlockingWait", "task"},
    {"TaskAwaiter::HandleNonSuccess", "task"},
    {"concurrent.CompletableFuture.get", "task"},
    {"concurrent.CompletableFuture.join", "task"},
    {"concurrent.CompletableFuture.waitingGet", "task"},
    {"concurrent.FutureTask.get", "task"},
    {"concurrent.FutureTask.awaitDone", "task"},
};

/* Locks of database servers, which wait for them by other means: a latch and epoll, a semaphore, a condition. By the
 * functions that take them, the most telling first. */
static const struct {
    const char *function;
    const char *lock;
} server_locks[] = {
    {"XactLockTableWait", "row"},        {"heap_acquire_tuplock", "row"},
    {"LockRelationOid", "table"},        {"ProcSleep", "postgresql"},
    {"LWLockAcquire", "LWLock"},         {"LWLockAcquireOrWait", "LWLock"},
    {"LWLockWaitForVar", "LWLock"},      {"lock_wait", "row"},
    {"lock_wait_suspend_thread", "row"}, {"MDL_wait::timed_wait", "metadata"},
};

bool wait_function_is_library(const struct wait_function *function)
{
    return library_code_is_runtime(function->name, function->module);
}

/* "lock_wait" is "lock_wait(que_thr_t*)" and "lock_wait.cold" too. */
static bool is_function(const char *name, const char *function)
{
    size_t length = strlen(function);

    return strncmp(name, function, length) == 0 &&
           (name[length] == '\0' || name[length] == '(' || name[length] == '.');
}

static const char *find_server_lock(const struct wait_function *frames, size_t count)
{
    for (size_t w = 0; w < sizeof server_locks / sizeof server_locks[0]; w++)
        for (size_t i = 0; i < count; i++)
            if (is_function(frames[i].name, server_locks[w].function))
                return server_locks[w].lock;
    return NULL;
}

/* Waits that may be for such a lock. */
static bool may_be_server_lock(const char *text)
{
    static const char *const texts[] = {"[wait: epoll]",     "[wait: poll]",      "[wait: events]",
                                        "[wait: semaphore]", "[wait: condition]", "[wait: futex]",
                                        "[wait: lock]"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(text, texts[i]) == 0)
            return true;
    return false;
}

static const char *find_managed(const struct wait_function *frames, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t w = 0; w < sizeof managed_waits / sizeof managed_waits[0]; w++)
            if (strstr(frames[i].name, managed_waits[w].part) != NULL)
                return managed_waits[w].what;
    return NULL;
}

/* Among the library's frames next to the leaf, and the one that called them. */
static const char *find_wait(const struct wait_function *frames, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t w = 0; w < sizeof waits / sizeof waits[0]; w++)
            if (strstr(frames[i].name, waits[w].part) != NULL)
                return waits[w].what;
        if (!wait_function_is_library(&frames[i]))
            return NULL;
    }
    return NULL;
}

/* The first function that is not the library's and not a lock's own. */
static const char *find_taker(const struct wait_function *frames, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!wait_function_is_library(&frames[i]) && frames[i].name[0] != '\0')
            return frames[i].name;
    return NULL;
}

void wait_refine(const char *text, const struct wait_function *frames, size_t count, char *ret_text,
                 size_t size)
{
    bool is_unknown = strcmp(text, "[wait: futex]") == 0;
    bool is_nameless = strcmp(text, "[wait: lock]") == 0;
    bool is_lock = is_nameless || strncmp(text, "[wait: lock ", 12) == 0;
    const char *what;
    const char *taker;

    snprintf(ret_text, size, "%s", text);
    what = may_be_server_lock(text) ? find_server_lock(frames, count) : NULL;
    if (what != NULL) {
        snprintf(ret_text, size, "[wait: lock %s]", what);
        return;
    }
    if (!is_unknown && strcmp(text, "[wait: condition]") != 0 && !is_lock)
        return;
    what = find_managed(frames, count);
    if (what == NULL)
        what = find_wait(frames, count);
    if (what == NULL)
        what = is_unknown ? NULL : is_lock ? "lock" : "condition";
    if (what == NULL)
        return;
    if (strcmp(what, "lock") != 0) {
        snprintf(ret_text, size, "[wait: %s]", what);
        return;
    }
    if (is_lock && !is_nameless)
        return;
    taker = find_taker(frames, count);
    snprintf(ret_text, size, "[wait: lock%s%.*s]", taker != NULL ? " " : "", (int)size - 32,
             taker != NULL ? taker : "");
}
