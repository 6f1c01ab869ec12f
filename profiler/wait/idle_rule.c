#include "profiler/wait/idle_rule.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "profiler/base/memory.h"
#include "profiler/model/wait_role.h"

enum {
    HOME_FRAMES = 2,       /* the start function and one that it calls: the third is the one that waits */
    SLEEP_HOME_FRAMES = 1, /* a handler that sleeps looks the same otherwise */
    HOME_RETURNS = 2,
};

struct idle_rules {
    regex_t expressions[2 * IDLE_RULES_MAX_EXPRESSIONS]; /* idle ones first */
    size_t idle_count;
    size_t count;
};

static const char *const texts[IDLE_REASON_COUNT] = {
    [IDLE_BY_USER_RULE] = "--idle-rule matches",
    [BUSY_BY_USER_RULE] = "--busy-rule matches",
    [IDLE_NO_REQUEST] = "it waits for a request",
    [IDLE_EVENT_LOOP] = "an event loop with nothing due",
    [IDLE_POOL] = "it waits where its pool waits for work",
    [IDLE_AT_START] = "it waits next to its start function",
    [IDLE_RETURNS] = "it waits where it comes back to between one piece of work and the next",
    [BUSY_DEPENDENCY] = "it waits for a dependency",
    [BUSY_SLOW_CLIENT] = "it waits for a client to read",
    [BUSY_LOCK] = "it waits for a lock",
    [BUSY_ACQUIRE] = "it waits for its turn, or for a result",
    [BUSY_DISK] = "it waits for the disk",
    [BUSY_CHILD] = "it waits for a command",
    [BUSY_IN_WORK] = "it waits in the middle of its work",
    [BUSY_UNKNOWN] = "what it waits for is not known",
};

const char *idle_reason_text(enum idle_reason reason)
{
    return texts[reason];
}

static int add_expressions(struct idle_rules *rules, const char *const *expressions, size_t count,
                           struct error *err)
{
    if (count > IDLE_RULES_MAX_EXPRESSIONS)
        return error_say(err, -EINVAL, "more than %d expressions", IDLE_RULES_MAX_EXPRESSIONS);
    for (size_t i = 0; i < count; i++) {
        char message[128];
        int r = regcomp(&rules->expressions[rules->count], expressions[i], REG_EXTENDED | REG_NOSUB);

        if (r != 0) {
            regerror(r, &rules->expressions[rules->count], message, sizeof message);
            return error_say(err, -EINVAL, "\"%s\": %s", expressions[i], message);
        }
        rules->count++;
    }
    return 0;
}

int idle_rules_create(const char *const *idle, size_t idle_count, const char *const *busy, size_t busy_count,
                      struct idle_rules **ret_rules, struct error *err)
{
    struct idle_rules *rules = memory_zeroed(1, sizeof *rules);
    int r = add_expressions(rules, idle, idle_count, err);

    rules->idle_count = rules->count;
    if (r == 0)
        r = add_expressions(rules, busy, busy_count, err);
    if (r < 0) {
        idle_rules_destroy(rules);
        return r;
    }
    *ret_rules = rules;
    return 0;
}

void idle_rules_destroy(struct idle_rules *rules)
{
    if (rules == NULL)
        return;
    for (size_t i = 0; i < rules->count; i++)
        regfree(&rules->expressions[i]);
    free(rules);
}

static bool matches(const struct idle_rules *rules, size_t from, size_t to,
                    const struct idle_question *question)
{
    for (size_t e = from; e < to; e++) {
        if (regexec(&rules->expressions[e], question->wait_text, 0, NULL, 0) == 0)
            return true;
        for (size_t i = 0; i < question->count; i++)
            if (regexec(&rules->expressions[e], question->frames[i].name, 0, NULL, 0) == 0)
                return true;
    }
    return false;
}

/* Where the pools of widespread runtimes and libraries wait for work. */
static bool is_pool_home(const char *name)
{
    static const char *const parts[] = {
        "ThreadPoolExecutor.getTask",
        "ThreadPoolExecutor::getTask",
        "ForkJoinPool.awaitWork",
        "ForkJoinPool::awaitWork",
        "PortableThreadPool+WorkerThread",
        "LowLevelLifoSemaphore::WaitForSignal",
        "ThreadPoolMgr::WorkerThreadStart",
        "TimerThread.mainLoop",
        "ReferenceQueue.remove",
        "Finalizer$FinalizerThread.run",
        "VM_Exit::wait",
        "VMThread::wait_for_vm_thread",
        "GangWorker::wait_for_task",
        "CompileQueue::get",
        "FinalizerThread::WaitForFinalizerEvent",
        "runtime.findRunnable",
        "runtime.findrunnable",
        "runtime.stopm",
        "runtime.templateThread",
        "runtime.sysmon",
        "g_thread_pool_wait_for_new_task",
        "g_async_queue_pop",
        "DelayedTaskScheduler",
        "TaskQueue<v8::Task>::BlockingPop",
        "ThreadSafePriorityQueue",
        "rayon_core::sleep",
        "multi_thread::worker::Context::park",
        "blocking::pool::Inner::run",
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(name, parts[i]) != NULL)
            return true;
    return false;
}

/* A whole word of a name: "acquire" in "pool_acquire" and "poolAcquire", not "lock" in "block_reader" or "locker". */
static bool is_word(const char *name, const char *at, size_t length)
{
    bool begins = at == name || !isalnum((unsigned char)at[-1]) ||
                  (isupper((unsigned char)at[0]) && islower((unsigned char)at[-1]));

    return begins && !islower((unsigned char)at[length]);
}

static bool has_word(const char *name, const char *word)
{
    for (const char *at = strcasestr(name, word); at != NULL; at = strcasestr(at + 1, word))
        if (is_word(name, at, strlen(word)))
            return true;
    return false;
}

/* A name of which words say that something is waited for that others hold, or make. */
static bool is_acquire(const char *name)
{
    static const char *const words[] = {
        "acquire", "checkout", "check_out", "borrow", "getconnection", "get_connection", "pool_get",
        "mutex",   "rwlock",   "lock",      "future", "promise",       "await",          "countdownlatch",
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (has_word(name, words[i]))
            return true;
    return false;
}

static bool any_acquires(const struct idle_question *question)
{
    for (size_t i = 0; i < question->count; i++)
        if (!wait_function_is_library(&question->frames[i]) && is_acquire(question->frames[i].name))
            return true;
    return false;
}

static bool in_pool_home(const struct idle_question *question)
{
    for (size_t i = 0; i < question->count; i++)
        if (is_pool_home(question->frames[i].name))
            return true;
    return false;
}

static bool calls(const struct idle_question *question, const char *const *names, size_t count)
{
    for (size_t i = 0; i < question->count; i++)
        for (size_t n = 0; n < count; n++)
            if (strcmp(question->frames[i].name, names[n]) == 0)
                return true;
    return false;
}

/* The program's own functions, from the one that the thread starts with to the one that waits. */
static size_t own_frames(const struct idle_question *question)
{
    size_t own = 0;

    for (size_t i = 0; i < question->count; i++)
        if (!wait_function_is_library(&question->frames[i]))
            own++;
    return own;
}

static struct idle_verdict verdict(bool idle, enum idle_reason reason)
{
    return (struct idle_verdict){.idle = idle, .reason = reason};
}

/* A wait that may be anything: it is idle at the thread's home. */
static struct idle_verdict judge_by_place(const struct idle_question *question, size_t home_frames)
{
    if (in_pool_home(question))
        return verdict(true, IDLE_POOL);
    if (any_acquires(question))
        return verdict(false, BUSY_ACQUIRE);
    if (question->from_start && own_frames(question) <= home_frames)
        return verdict(true, IDLE_AT_START);
    if (question->returns >= HOME_RETURNS && question->outside_work)
        return verdict(true, IDLE_RETURNS);
    return verdict(false, BUSY_IN_WORK);
}

/* A command that is run is a dependency; a parent that minds its children is idle. */
static struct idle_verdict judge_child(const struct idle_question *question)
{
    static const char *const commands[] = {"system",         "do_system", "__libc_system", "pclose",
                                           "_IO_proc_close", "vfork",     "posix_spawn",   "__libc_vfork"};

    if (calls(question, commands, sizeof commands / sizeof commands[0]))
        return verdict(false, BUSY_CHILD);
    return judge_by_place(question, HOME_FRAMES);
}

struct idle_verdict idle_rules_judge(const struct idle_rules *rules, const struct idle_question *question)
{
    if (rules != NULL && matches(rules, rules->idle_count, rules->count, question))
        return verdict(false, BUSY_BY_USER_RULE);
    if (rules != NULL && matches(rules, 0, rules->idle_count, question))
        return verdict(true, IDLE_BY_USER_RULE);
    if (question->has_driver || strstr(question->wait_text, ", database: ") != NULL)
        return verdict(false, BUSY_DEPENDENCY);
    switch (wait_role_of_text(question->wait_text)) {
    case WAIT_ROLE_OUTBOUND:
        return verdict(false, BUSY_DEPENDENCY);
    case WAIT_ROLE_CLIENT:
    case WAIT_ROLE_ACCEPT:
        return verdict(true, IDLE_NO_REQUEST);
    case WAIT_ROLE_SEND_CLIENT:
        return verdict(false, BUSY_SLOW_CLIENT);
    case WAIT_ROLE_EVENT_LOOP:
        return verdict(true, IDLE_EVENT_LOOP);
    case WAIT_ROLE_LOCK:
        return verdict(false, BUSY_LOCK);
    case WAIT_ROLE_DISK:
        return verdict(false, BUSY_DISK);
    case WAIT_ROLE_TASK:
        return verdict(false, BUSY_ACQUIRE);
    case WAIT_ROLE_CHILD:
        return judge_child(question);
    case WAIT_ROLE_CONDITION:
    case WAIT_ROLE_QUEUE:
        return judge_by_place(question, HOME_FRAMES);
    case WAIT_ROLE_SLEEP:
        return judge_by_place(question, SLEEP_HOME_FRAMES);
    case WAIT_ROLE_UNKNOWN:
    case WAIT_ROLE_COUNT:
        break;
    }
    return verdict(false, BUSY_UNKNOWN);
}
