/* Summary and verdict on profiles that are made by hand: each verdict where it is due, and where it is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/cli/summary_json.h"
#include "profiler/cli/summary_text.h"
#include "profiler/model/crowd.h"
#include "profiler/model/library_code.h"
#include "profiler/model/summary.h"
#include "profiler/model/verdict.h"
#include "tests/golden/fixtures.h"

enum { WORKERS = 10, SCREEN_LINES = 40 };

/* A server with a pool of workers, in a window of a second. */
struct server {
    struct profile *profile;
    uint32_t process;
    uint32_t database, condition, lock, runnable, throttled; /* stacks */
    uint32_t computing;
};

static uint32_t below(struct profile *profile, uint32_t stack, enum wait_kind wait, const char *text)
{
    return stack_table_push(profile->stacks, stack, fixture_wait(profile, wait, text));
}

static uint32_t call(struct profile *profile, uint32_t parent, const char *name, const char *module)
{
    return stack_table_push(profile->stacks, parent, fixture_frame(profile, FRAME_USER, name, module));
}

static struct server server_new(void)
{
    struct profile *profile = fixture_new("srv (7)", NS_PER_S);
    struct server server = {.profile = profile, .process = profile_add_process(profile, 7, "srv")};
    uint32_t start =
        call(profile, call(profile, STACK_EMPTY, "clone3", "libc.so.6"), "start_thread", "libc.so.6");
    uint32_t worker = call(profile, start, "worker_main", "srv");
    uint32_t handle = call(profile, worker, "handle", "srv");
    uint32_t query = call(profile, handle, "query", "srv");
    uint32_t library = call(profile, call(profile, query, "PQexec", "libpq.so.5"), "poll", "libc.so.6");

    profile->meta.cpu_count = 4;
    server.database = below(profile, library, WAIT_DATABASE, "[wait: tcp 10.0.0.5:5432 postgresql]");
    server.condition = below(profile, call(profile, worker, "pthread_cond_wait", "libc.so.6"), WAIT_LOCK,
                             "[wait: condition]");
    server.lock = below(profile, call(profile, handle, "pthread_mutex_lock", "libc.so.6"), WAIT_LOCK,
                        "[wait: lock cache_mu]");
    server.runnable = below(profile, handle, WAIT_RUNNABLE, "[runnable]");
    server.throttled = below(profile, handle, WAIT_RUNNABLE, "[throttled]");
    server.computing = call(profile, handle, "compute", "srv");
    return server;
}

static uint32_t add_worker(struct server *server, uint64_t begin_ns, uint64_t end_ns)
{
    char name[16];
    uint32_t thread;

    snprintf(name, sizeof name, "worker-%zu", server->profile->thread_count);
    thread = profile_add_thread(server->profile, server->process,
                                (pid_t)(100 + server->profile->thread_count), name, false);
    fixture_lifetime(server->profile, thread, begin_ns, end_ns);
    return thread;
}

/* Each worker is in the one stack for so many thousandths of the window, then in the other. */
static void fill(struct server *server, size_t workers, uint64_t permille, uint32_t stack,
                 enum thread_state state, uint32_t rest, enum thread_state rest_state)
{
    for (size_t i = 0; i < workers; i++) {
        uint32_t thread = add_worker(server, 0, NS_PER_S);

        fixture_sample(server->profile, thread, 0, permille * NS_PER_MS, stack, state);
        fixture_sample(server->profile, thread, permille * NS_PER_MS, (1000 - permille) * NS_PER_MS, rest,
                       rest_state);
    }
}

static void add_listener(struct server *server, uint64_t queue, uint64_t connections, uint64_t unread)
{
    profile_add_listener(server->profile,
                         &(struct profile_listener){
                             .address = string_table_intern(server->profile->strings, "tcp 0.0.0.0:80"),
                             .looks = 2,
                             .backlog = 128,
                             .queue_max = (uint32_t)queue,
                             .queue_sum = 2 * queue,
                             .connections_max = (uint32_t)connections,
                             .connections_sum = 2 * connections,
                             .unread_max = (uint32_t)unread,
                             .unread_sum = 2 * unread,
                         });
}

static size_t judge(struct server *server, struct summary **ret_summary,
                    struct verdict verdicts[VERDICTS_MAX])
{
    *ret_summary = summary_create(server->profile);
    return verdict_list(server->profile, *ret_summary, verdicts);
}

/* Whether there is such a verdict; ends the server. */
static bool has(struct server *server, enum verdict_kind kind)
{
    struct verdict verdicts[VERDICTS_MAX];
    struct summary *summary;
    size_t count = judge(server, &summary, verdicts);
    bool found = false;

    for (size_t i = 0; i < count; i++)
        found = found || verdicts[i].kind == kind;
    summary_destroy(summary);
    profile_destroy(server->profile);
    return found;
}

static char *print_summary(const struct profile *profile, void (*print)(FILE *, const struct profile *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    print(out, profile);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_figures(void **state)
{
    struct server server = server_new();
    uint32_t main_thread = profile_add_thread(server.profile, server.process, 7, "srv", true);
    const struct summary_wait *wait;
    struct summary *summary;

    (void)state;
    fixture_lifetime(server.profile, main_thread, 0, NS_PER_S);
    fixture_sample(server.profile, main_thread, 0, NS_PER_S, server.condition, STATE_IDLE);
    fill(&server, WORKERS, 600, server.database, STATE_BLOCKED, server.computing, STATE_ON_CPU);
    add_worker(&server, NS_PER_S / 2, NS_PER_S); /* of which nothing was seen */
    summary = summary_create(server.profile);
    assert_int_equal(summary->all_ns, 11 * NS_PER_S);
    assert_int_equal(summary_busy_ns(summary), 10 * NS_PER_S);
    wait = &summary->waits[0];
    assert_string_equal(summary_frame_name(server.profile, wait->frame),
                        "[wait: tcp 10.0.0.5:5432 postgresql]");
    assert_int_equal(wait->blocked_ns, 6 * NS_PER_S);
    assert_string_equal(summary_frame_name(server.profile, wait->function), "query");
    assert_int_equal(wait->function_ns, 6 * NS_PER_S);
    assert_int_equal(summary->waits[1].idle_ns, NS_PER_S);
    assert_string_equal(summary_frame_name(server.profile, summary->cpu_function), "compute");
    assert_int_equal(summary->pool_count, 2);
    assert_string_equal(summary->pools[0].name, "worker-*");
    assert_string_equal(summary_frame_name(server.profile, summary->pools[0].start), "worker_main");
    assert_int_equal(summary->pools[0].threads, WORKERS + 1);
    assert_int_equal(summary->pools[0].at_begin, WORKERS);
    assert_int_equal(summary->pools[0].at_end, WORKERS + 1);
    assert_int_equal(summary->pools[0].wait, 0);
    assert_true(summary->pools[1].is_main);
    summary_destroy(summary);
    profile_destroy(server.profile);
}

/* One name, two start functions: two pools. Threads whose start is not known join the first. */
static void test_pools_by_start_function(void **state)
{
    struct server server = server_new();
    uint32_t other = call(server.profile, STACK_EMPTY, "flusher_main", "srv");
    uint32_t truncated = stack_table_push(server.profile->stacks, STACK_EMPTY,
                                          fixture_frame(server.profile, FRAME_SYNTHETIC, "[truncated]", ""));
    struct summary *summary;

    (void)state;
    fill(&server, 3, 500, server.database, STATE_BLOCKED, server.condition, STATE_IDLE);
    fill(&server, 2, 500, other, STATE_ON_CPU, other, STATE_ON_CPU);
    fill(&server, 4, 500, call(server.profile, truncated, "deep", "srv"), STATE_ON_CPU,
         call(server.profile, truncated, "deep", "srv"), STATE_ON_CPU);
    summary = summary_create(server.profile);
    assert_int_equal(summary->pool_count, 2);
    assert_string_equal(summary_frame_name(server.profile, summary->pools[0].start), "worker_main");
    assert_int_equal(summary->pools[0].threads, 7);
    assert_string_equal(summary_frame_name(server.profile, summary->pools[1].start), "flusher_main");
    assert_int_equal(summary->pools[1].threads, 2);
    summary_destroy(summary);
    profile_destroy(server.profile);
}

static void test_crowd(void **state)
{
    struct crowd crowd = {0};

    (void)state;
    for (uint64_t i = 0; i < 10; i++)
        crowd_add(&crowd, CROWD_ALIVE, 0, 100);
    for (uint64_t i = 0; i < 10; i++)
        crowd_add(&crowd, CROWD_HELD, i, 50 + i);
    /* Nine or more from 8 to 51. */
    assert_int_equal(crowd_time_ns(&crowd, 90, 1), 43);
    assert_int_equal(crowd_time_ns(&crowd, 100, 1), 41);
    assert_int_equal(crowd_time_ns(&crowd, 0, 1), 59);
    /* Held on without a break, in two pieces. */
    crowd_finish(&crowd);
    crowd_add(&crowd, CROWD_HELD, 0, 10);
    crowd_add(&crowd, CROWD_HELD, 10, 20);
    assert_int_equal(crowd_time_ns(&crowd, 90, 1), 20);
    assert_int_equal(crowd_time_ns(&crowd, 0, 2), 0);
    crowd_finish(&crowd);
    assert_int_equal(crowd_time_ns(&crowd, 90, 1), 0);
}

static void test_starved_pool(void **state)
{
    struct server server = server_new();
    struct verdict verdicts[VERDICTS_MAX];
    struct summary *summary;

    (void)state;
    fill(&server, WORKERS, 950, server.database, STATE_BLOCKED, server.computing, STATE_ON_CPU);
    add_listener(&server, 0, 100, 0);
    assert_int_equal(judge(&server, &summary, verdicts), 1);
    assert_int_equal(verdicts[0].kind, VERDICT_POOL_STARVED);
    assert_int_equal(verdicts[0].wait, 0);
    assert_string_equal(summary_frame_name(server.profile, verdicts[0].function), "query");
    assert_true(fabs(verdicts[0].window_share - 0.95) < 0.001);
    assert_true(fabs(verdicts[0].wait_share - 1) < 0.001);
    assert_true(fabs(verdicts[0].backlog.connections_mean - 100) < 0.001);
    assert_int_equal(verdicts[0].threads_at_end, WORKERS);
    summary_destroy(summary);
    profile_destroy(server.profile);
}

static bool starved(uint64_t permille, enum thread_state state, uint64_t queue, uint64_t connections,
                    uint64_t unread)
{
    struct server server = server_new();

    fill(&server, WORKERS, permille, server.database, state, server.computing, STATE_ON_CPU);
    add_listener(&server, queue, connections, unread);
    return has(&server, VERDICT_POOL_STARVED);
}

static void test_starved_only_by_evidence(void **state)
{
    (void)state;
    assert_true(starved(950, STATE_BLOCKED, 3, 0, 0));
    assert_true(starved(950, STATE_BLOCKED, 0, 0, 2));
    assert_true(starved(950, STATE_BLOCKED, 0, WORKERS, 0));
    assert_false(starved(950, STATE_BLOCKED, 0, WORKERS - 1, 0)); /* nobody else waits */
    assert_false(starved(950, STATE_IDLE, 3, 100, 2));            /* they wait for work */
    assert_false(starved(700, STATE_BLOCKED, 3, 100, 2));         /* they run for a third of the time */
    assert_false(starved(950, STATE_RUNNABLE, 3, 100, 2));        /* they want a CPU */
}

/* Each blocked for 80 % of the time, but never nine of ten at once. */
static void test_busy_pool_is_not_starved(void **state)
{
    struct server server = server_new();

    (void)state;
    for (uint64_t i = 0; i < WORKERS; i++) {
        uint32_t thread = add_worker(&server, 0, NS_PER_S);
        uint64_t free_from = i * 100 % 1000;

        fixture_sample(server.profile, thread, 0, free_from * NS_PER_MS, server.database, STATE_BLOCKED);
        fixture_sample(server.profile, thread, free_from * NS_PER_MS, 100 * NS_PER_MS, server.condition,
                       STATE_IDLE);
        fixture_sample(server.profile, thread, (free_from + 100) * NS_PER_MS, (900 - free_from) * NS_PER_MS,
                       server.database, STATE_BLOCKED);
    }
    /* Two are free at any time. */
    fill(&server, 1, 1000, server.condition, STATE_IDLE, server.condition, STATE_IDLE);
    add_listener(&server, 5, 100, 5);
    assert_false(has(&server, VERDICT_POOL_STARVED));
}

static bool locked(uint64_t permille, size_t workers)
{
    struct server server = server_new();

    fill(&server, workers, permille, server.lock, STATE_BLOCKED, server.computing, STATE_ON_CPU);
    return has(&server, VERDICT_LOCK_SERIALISES);
}

static void test_lock(void **state)
{
    struct server server = server_new();

    (void)state;
    assert_true(locked(700, 4));
    assert_false(locked(300, 4)); /* free for most of the time */
    assert_false(locked(700, 1)); /* nobody queues */
    /* A queue of work is no lock. */
    fill(&server, 4, 700, server.condition, STATE_BLOCKED, server.computing, STATE_ON_CPU);
    assert_false(has(&server, VERDICT_LOCK_SERIALISES));
}

static void add_lock_wait(struct server *server, uint32_t owner, uint32_t owner_stack,
                          enum thread_state state, uint64_t waited_ns)
{
    profile_add_lock_wait(server->profile, &(struct lock_wait){.stack = server->lock,
                                                               .owner = owner,
                                                               .owner_stack = owner_stack,
                                                               .owner_state = state,
                                                               .waited_ns = waited_ns});
}

/* What holders did for longest, whichever thread it was. */
static void test_lock_owners(void **state)
{
    struct server server = server_new();
    struct summary *summary;
    AUTO_FREE char *text = NULL;

    (void)state;
    fill(&server, 4, 700, server.lock, STATE_BLOCKED, server.computing, STATE_ON_CPU);
    add_lock_wait(&server, 0, server.database, STATE_BLOCKED, 800 * NS_PER_MS);
    add_lock_wait(&server, 1, server.database, STATE_BLOCKED, 700 * NS_PER_MS);
    add_lock_wait(&server, 1, server.computing, STATE_ON_CPU, 1000 * NS_PER_MS);
    add_lock_wait(&server, LOCK_OWNER_UNKNOWN, STACK_EMPTY, STATE_UNKNOWN, 400 * NS_PER_MS);
    add_lock_wait(&server, 2, server.lock, STATE_BLOCKED, 100 * NS_PER_MS); /* it has got it since */
    summary = summary_create(server.profile);
    assert_int_equal(summary->lock_count, 1);
    assert_int_equal(summary->locks[0].waited_ns, 3 * NS_PER_S);
    assert_int_equal(summary->locks[0].unknown_ns, 500 * NS_PER_MS);
    assert_int_equal(summary->locks[0].owner_ns, 1500 * NS_PER_MS);
    summary_destroy(summary);
    text = print_summary(server.profile, summary_text_print);
    assert_non_null(
        strstr(text, "held:      [wait: lock cache_mu] waited for 3.0 s; 50 % while its holder was blocked "
                     "[wait: tcp 10.0.0.5:5432 postgresql] in query (worker-1); 17 % not known\n"));
    profile_destroy(server.profile);
}

static bool bound(size_t workers, uint64_t permille, uint32_t cpus, bool queued)
{
    struct server server = server_new();

    server.profile->meta.cpu_count = cpus;
    fill(&server, workers, permille, server.computing, STATE_ON_CPU,
         queued ? server.runnable : server.condition, queued ? STATE_RUNNABLE : STATE_BLOCKED);
    return has(&server, VERDICT_CPU_BOUND);
}

static void test_cpu_bound(void **state)
{
    (void)state;
    assert_true(bound(4, 950, 4, false)); /* all CPUs */
    assert_true(bound(1, 950, 8, false)); /* does nothing else, on one */
    assert_true(bound(8, 300, 2, true));  /* queues for them */
    assert_false(bound(2, 300, 8, false));
    assert_false(bound(4, 100, 4, false));
}

static void test_throttled(void **state)
{
    struct server server = server_new();

    (void)state;
    fill(&server, 4, 400, server.computing, STATE_ON_CPU, server.throttled, STATE_RUNNABLE);
    assert_true(has(&server, VERDICT_CPU_THROTTLED));
    server = server_new();
    fill(&server, 4, 950, server.computing, STATE_ON_CPU, server.throttled, STATE_RUNNABLE);
    assert_false(has(&server, VERDICT_CPU_THROTTLED));
    server = server_new();
    fill(&server, 4, 400, server.computing, STATE_ON_CPU, server.runnable, STATE_RUNNABLE);
    assert_false(has(&server, VERDICT_CPU_THROTTLED));
}

static bool depends(uint64_t permille, bool idle)
{
    struct server server = server_new();

    fill(&server, 4, permille, server.database, idle ? STATE_IDLE : STATE_BLOCKED, server.computing,
         STATE_ON_CPU);
    return has(&server, VERDICT_DEPENDENCY);
}

static void test_dependency(void **state)
{
    struct server server = server_new();

    (void)state;
    assert_true(depends(600, false));
    assert_false(depends(400, false));
    assert_false(depends(600, true));
    fill(&server, 4, 600, server.lock, STATE_BLOCKED, server.computing, STATE_ON_CPU);
    assert_false(has(&server, VERDICT_DEPENDENCY));
}

static bool growing(size_t at_begin, size_t later)
{
    struct server server = server_new();

    fill(&server, at_begin, 500, server.database, STATE_BLOCKED, server.condition, STATE_IDLE);
    for (uint64_t i = 0; i < later; i++) {
        uint64_t begin_ns = (i + 1) * NS_PER_S / (later + 1);
        uint32_t thread = add_worker(&server, begin_ns, NS_PER_S);

        fixture_sample(server.profile, thread, begin_ns, NS_PER_S - begin_ns, server.database, STATE_BLOCKED);
    }
    return has(&server, VERDICT_POOL_GROWING);
}

static void test_growing(void **state)
{
    (void)state;
    assert_true(growing(4, 4));
    assert_false(growing(4, 1));
    assert_false(growing(40, 4));
    assert_false(growing(0, 4)); /* it starts */
}

static bool many_calls(uint64_t calls, uint64_t requests, uint64_t call_ns)
{
    struct server server = server_new();
    struct histogram called = {.count = calls, .sum_ns = calls * call_ns};
    struct histogram taken = {.count = requests, .sum_ns = requests * NS_PER_MS};

    fill(&server, 4, 600, server.database, STATE_BLOCKED, server.condition, STATE_IDLE);
    profile_add_counted_wait(server.profile, server.database, &called);
    profile_add_counted_wait(server.profile, server.condition, &taken);
    return has(&server, VERDICT_MANY_CALLS);
}

static void test_many_calls(void **state)
{
    (void)state;
    assert_true(many_calls(2000, 100, NS_PER_MS));
    assert_false(many_calls(200, 100, NS_PER_MS));
    assert_false(many_calls(2000, 100, 50 * NS_PER_MS)); /* long ones: their number is not what is wrong */
    assert_false(many_calls(2000, 0, NS_PER_MS));        /* how many requests it were, nobody knows */
}

static void test_no_verdict_without_evidence(void **state)
{
    struct server server = server_new();
    struct verdict verdicts[VERDICTS_MAX];
    struct summary *summary;

    (void)state;
    assert_int_equal(judge(&server, &summary, verdicts), 0);
    assert_non_null(verdict_obstacle(server.profile, summary));
    summary_destroy(summary);
    /* What was filtered out may be what matters. */
    fill(&server, 4, 600, server.database, STATE_BLOCKED, server.computing, STATE_ON_CPU);
    for (size_t i = 0; i < server.profile->thread_count; i++)
        server.profile->threads[i].sample_count = 1;
    assert_int_equal(judge(&server, &summary, verdicts), 0);
    assert_non_null(verdict_obstacle(server.profile, summary));
    summary_destroy(summary);
    for (size_t i = 0; i < server.profile->thread_count; i++)
        server.profile->threads[i].sample_count = 2;
    assert_int_equal(judge(&server, &summary, verdicts), 1);
    summary_destroy(summary);
    server.profile->threads[0].ledger.lost_ns = NS_PER_S * 3 / 2;
    assert_int_equal(judge(&server, &summary, verdicts), 0);
    summary_destroy(summary);
    profile_destroy(server.profile);
}

static void test_library_code(void **state)
{
    (void)state;
    assert_true(library_code_is_runtime("poll", "libc.so.6"));
    assert_false(library_code_is_runtime("PQexec", "libpq.so.5"));
    assert_true(library_code_is_library("PQexec", "libpq.so.5"));
    assert_true(library_code_is_library("std::thread::join()", "srv"));
    assert_false(library_code_is_library("query", "srv"));
    assert_false(library_code_is_library("PQueue_pop", "srv"));
}

static void test_text_fits_on_a_screen(void **state)
{
    struct profile *profiles[] = {fixture_server(), fixture_hostile(), fixture_empty(), fixture_quarter()};

    (void)state;
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        AUTO_FREE char *text = print_summary(profiles[i], summary_text_print);
        size_t lines = 0;

        for (const char *at = text; *at != '\0'; at++) {
            lines += *at == '\n';
            assert_true(*at == '\n' || (unsigned char)*at >= ' ');
        }
        assert_in_range(lines, 2, SCREEN_LINES);
        assert_non_null(strstr(text, "verdict: "));
        profile_destroy(profiles[i]);
    }
}

static void test_text_says_the_verdict_first(void **state)
{
    struct server server = server_new();
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *json = NULL;

    (void)state;
    fill(&server, WORKERS, 950, server.database, STATE_BLOCKED, server.computing, STATE_ON_CPU);
    add_listener(&server, 2, 100, 0);
    text = print_summary(server.profile, summary_text_print);
    assert_ptr_equal(strstr(text, "\nverdict: "), strchr(text, '\n'));
    assert_non_null(strstr(text, "verdict: the pool worker-* of worker_main is STARVED by "
                                 "[wait: tcp 10.0.0.5:5432 postgresql] in query\n"));
    assert_non_null(strstr(text, "100 connections of clients for 10 threads"));
    json = print_summary(server.profile, summary_json_print);
    assert_non_null(
        strstr(json, "\"kind\":\"pool-starved\",\"pool\":0,\"wait\":0,\"poolName\":\"worker-*\""));
    profile_destroy(server.profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_pools_by_start_function),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_starved_pool),
        cmocka_unit_test(test_starved_only_by_evidence),
        cmocka_unit_test(test_busy_pool_is_not_starved),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_lock_owners),
        cmocka_unit_test(test_cpu_bound),
        cmocka_unit_test(test_throttled),
        cmocka_unit_test(test_dependency),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_many_calls),
        cmocka_unit_test(test_no_verdict_without_evidence),
        cmocka_unit_test(test_library_code),
        cmocka_unit_test(test_text_fits_on_a_screen),
        cmocka_unit_test(test_text_says_the_verdict_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
