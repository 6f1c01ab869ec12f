/* Fixed profiles that the exporters' tests write, and that tests/golden/ keeps the files of. All times are
 * made up, and the same on every run. */
#ifndef STALLGRAPH_TESTS_GOLDEN_FIXTURES_H
#define STALLGRAPH_TESTS_GOLDEN_FIXTURES_H

#include <stdio.h>
#include <string.h>

#include "profiler/base/clock.h"
#include "profiler/model/profile.h"

/* A symbol, a thread's name and others with every byte that has broken some format. */
#define FIXTURE_HOSTILE_SYMBOL "a;b<c>\"&\n\xff d"
#define FIXTURE_HOSTILE_COMM "a b;c\n\xff\"<&"
enum { FIXTURE_LONG_NAME_LENGTH = 1500, FIXTURE_ANGLES = 300 };

static inline uint32_t fixture_frame(struct profile *profile, enum frame_kind kind, const char *name,
                                     const char *module)
{
    struct frame frame = {.name = string_table_intern(profile->strings, name),
                          .module = string_table_intern(profile->strings, module),
                          .kind = kind};

    if (module[0] != '\0' && module[0] != '[')
        frame.build_id = string_table_intern(profile->strings, "00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee");
    return profile_intern_frame(profile, &frame);
}

static inline uint32_t fixture_wait(struct profile *profile, enum wait_kind wait, const char *name)
{
    struct frame frame = {
        .name = string_table_intern(profile->strings, name), .kind = FRAME_WAIT, .wait = wait};

    return profile_intern_frame(profile, &frame);
}

/* A stack of user frames, names separated by '|', below parent. */
static inline uint32_t fixture_stack(struct profile *profile, uint32_t parent, const char *names,
                                     const char *module)
{
    char name[64];

    while (*names != '\0') {
        size_t length = strcspn(names, "|");

        if (length >= sizeof name)
            length = sizeof name - 1;
        memcpy(name, names, length);
        name[length] = '\0';
        parent = stack_table_push(profile->stacks, parent, fixture_frame(profile, FRAME_USER, name, module));
        names += length + (names[length] == '|');
    }
    return parent;
}

static inline void fixture_sample(struct profile *profile, uint32_t thread, uint64_t start_ns,
                                  uint64_t weight_ns, uint32_t stack, enum thread_state state)
{
    struct sample sample = {.start_ns = start_ns, .weight_ns = weight_ns, .stack = stack, .state = state};

    profile_add_sample(profile, thread, &sample);
}

static inline void fixture_lifetime(struct profile *profile, uint32_t thread, uint64_t begin_ns,
                                    uint64_t end_ns)
{
    profile->threads[thread].begin_ns = begin_ns;
    profile->threads[thread].end_ns = end_ns;
    profile->threads[thread].ledger.lifetime_ns = end_ns - begin_ns;
}

static inline struct profile *fixture_new(const char *title, uint64_t duration_ns)
{
    struct profile *profile = profile_create();

    profile_set_text(&profile->meta.title, title);
    profile_set_text(&profile->meta.command_line,
                     "stallgraph collect -p 1234 --format speedscope,folded,svg");
    profile_set_text(&profile->meta.host, "db-host");
    profile_set_text(&profile->meta.kernel, "6.1.0");
    profile_set_text(&profile->meta.engines, "on-CPU: cpu-clock, CPU-wide; blocked: trace");
    profile->meta.frequency_hz = 99;
    profile->meta.start_unix_ns = INT64_C(1767225600123456789); /* 2026-01-01 00:00:00 UTC */
    profile->meta.duration_ns = duration_ns;
    return profile;
}

static inline struct profile *fixture_empty(void)
{
    return fixture_new("sleep (4321)", 20 * NS_PER_MS);
}

/* 75 % of the time is a parent's own, 25 % that of its one child. With a CPU quota. */
static inline struct profile *fixture_quarter(void)
{
    struct profile *profile = fixture_new("quarter (77)", NS_PER_S);
    uint32_t process = profile_add_process(profile, 77, "quarter");
    uint32_t thread = profile_add_thread(profile, process, 77, "quarter", true);
    uint32_t parent = fixture_stack(profile, STACK_EMPTY, "main|parent_fn", "quarter");
    uint32_t child = fixture_stack(profile, parent, "child_fn", "quarter");

    fixture_lifetime(profile, thread, 0, NS_PER_S);
    fixture_sample(profile, thread, 0, 500 * NS_PER_MS, parent, STATE_ON_CPU);
    fixture_sample(profile, thread, 500 * NS_PER_MS, 250 * NS_PER_MS, child, STATE_ON_CPU);
    fixture_sample(profile, thread, 750 * NS_PER_MS, 250 * NS_PER_MS, parent, STATE_ON_CPU);
    profile->quota = (struct profile_quota){.periods = 10,
                                            .throttled_periods = 3,
                                            .throttled_ns = 250 * NS_PER_MS,
                                            .quota_ns = 50 * NS_PER_MS,
                                            .period_ns = 100 * NS_PER_MS};
    return profile;
}

static inline struct profile *fixture_hostile(void)
{
    struct profile *profile = fixture_new("srv \x1b<&>\"' (1234)", 3 * NS_PER_S);
    uint32_t process = profile_add_process(profile, 1234, "srv<&>\x1b;x");
    uint32_t first = profile_add_thread(profile, process, 1234, FIXTURE_HOSTILE_COMM, true);
    uint32_t second = profile_add_thread(profile, process, 1235, "worker-1", false);
    uint32_t third = profile_add_thread(profile, process, 1240, "worker-22", false);
    uint32_t silent = profile_add_thread(profile, process, 1241, "worker-3", false);
    uint32_t hot = fixture_stack(profile, STACK_EMPTY, "main|mid_fn", "srv");
    char angles[FIXTURE_ANGLES + 1];
    char long_name[FIXTURE_LONG_NAME_LENGTH + 1];

    memset(angles, '<', FIXTURE_ANGLES);
    angles[FIXTURE_ANGLES] = '\0';
    memset(long_name, 'x', FIXTURE_LONG_NAME_LENGTH);
    memcpy(long_name, "begin", 5);
    memcpy(long_name + FIXTURE_LONG_NAME_LENGTH - 3, "end", 3);
    long_name[FIXTURE_LONG_NAME_LENGTH] = '\0';

    uint32_t leaf = stack_table_push(profile->stacks, hot,
                                     fixture_frame(profile, FRAME_USER, FIXTURE_HOSTILE_SYMBOL, "srv"));
    uint32_t angle =
        stack_table_push(profile->stacks, hot, fixture_frame(profile, FRAME_USER, angles, "srv"));
    uint32_t escape = stack_table_push(profile->stacks, angle,
                                       fixture_frame(profile, FRAME_USER, "esc\x1b[31m\x7f\xc2\x85", "srv"));
    uint32_t broken =
        stack_table_push(profile->stacks, leaf,
                         fixture_frame(profile, FRAME_USER,
                                       "\xc3(\xe2\x82|\xed\xa0\x80|\xf0\x9f\x98\x80|\xef\xbf\xbe", "b&d.so"));
    uint32_t too_long =
        stack_table_push(profile->stacks, broken, fixture_frame(profile, FRAME_USER, long_name, "srv"));
    uint32_t nameless = stack_table_push(profile->stacks, leaf, fixture_frame(profile, FRAME_USER, "", ""));
    uint32_t kernel = stack_table_push(profile->stacks, leaf,
                                       fixture_frame(profile, FRAME_KERNEL, "do_syscall_64", "[kernel]"));
    uint32_t database = stack_table_push(
        profile->stacks, leaf, fixture_wait(profile, WAIT_DATABASE, "[wait: tcp 10.0.0.5:5432 postgresql]"));
    uint32_t lock =
        stack_table_push(profile->stacks, angle, fixture_wait(profile, WAIT_LOCK, "[wait: lock \"m;u\"]"));
    uint32_t runnable =
        stack_table_push(profile->stacks, escape, fixture_wait(profile, WAIT_RUNNABLE, "[runnable]"));
    uint32_t accepting = stack_table_push(profile->stacks, hot,
                                          fixture_wait(profile, WAIT_NETWORK, "[wait: accept tcp :8080]"));
    uint32_t disk =
        stack_table_push(profile->stacks, hot, fixture_wait(profile, WAIT_DISK, "[wait: disk read]"));
    uint32_t lost =
        stack_table_push(profile->stacks, STACK_EMPTY, fixture_frame(profile, FRAME_SYNTHETIC, "[lost]", ""));

    /* Weights with odd nanoseconds: each would round up, their sum does not. */
    fixture_lifetime(profile, first, 0, 3 * NS_PER_S);
    fixture_sample(profile, first, 0, 700000700, leaf, STATE_ON_CPU);
    fixture_sample(profile, first, 700000700, 900, escape, STATE_ON_CPU);
    fixture_sample(profile, first, 700001600, 299998700, too_long, STATE_ON_CPU);
    fixture_sample(profile, first, 1000000300, 500000700, runnable, STATE_RUNNABLE);
    fixture_sample(profile, first, 1500001000, 1400000700, accepting, STATE_IDLE);
    fixture_sample(profile, first, 2900001700, 99998300, lost, STATE_UNKNOWN);
    profile->threads[first].ledger.lost_ns = 99998300;
    profile->threads[first].ledger.has_kernel_counters = true;
    profile->threads[first].ledger.kernel_on_cpu_ns = 1000000000;
    profile->threads[first].ledger.kernel_runnable_ns = 500000000;

    fixture_lifetime(profile, second, 250 * NS_PER_MS, 3 * NS_PER_S);
    fixture_sample(profile, second, 250 * NS_PER_MS, 1250 * NS_PER_MS, database, STATE_BLOCKED);
    fixture_sample(profile, second, 1500 * NS_PER_MS, 50 * NS_PER_MS, kernel, STATE_ON_CPU);
    fixture_sample(profile, second, 1550 * NS_PER_MS, 50 * NS_PER_MS, nameless, STATE_ON_CPU);
    fixture_sample(profile, second, 1600 * NS_PER_MS, 1400 * NS_PER_MS, database, STATE_BLOCKED);

    /* A gap in the middle: time that a filter took out. */
    fixture_lifetime(profile, third, 100 * NS_PER_MS, 1201 * NS_PER_MS);
    fixture_sample(profile, third, 100 * NS_PER_MS, 300 * NS_PER_MS, lock, STATE_BLOCKED);
    fixture_sample(profile, third, 600 * NS_PER_MS, 600 * NS_PER_MS, lock, STATE_BLOCKED);
    /* Shares too small for two decimals, which are written as "< 0.01". */
    fixture_sample(profile, third, 1200 * NS_PER_MS, 150 * NS_PER_US, disk, STATE_BLOCKED);
    fixture_lifetime(profile, silent, 2990 * NS_PER_MS, 3 * NS_PER_S);
    profile->loss.lost_events = 12;
    profile->loss.unwound_stacks = 1400;
    profile->loss.truncated_stacks = 21;
    return profile;
}

enum { FIXTURE_WORKERS = 8 };

/* One request of a worker: parse, query the database, render; now and then a lock and a wait for a CPU.
 * Returns its end. */
static inline uint64_t fixture_request(struct profile *profile, uint32_t thread, uint64_t start_ns,
                                       uint32_t seed)
{
    uint32_t worker = fixture_stack(profile, STACK_EMPTY, "start_thread|worker_main|serve_connection", "");
    uint32_t handler = fixture_stack(profile, worker, "handle_request|handle_time", "dbserver");
    uint32_t parse =
        fixture_stack(profile, worker, "http::parse_headers(std::string_view, http::Headers&)", "dbserver");
    uint32_t query = fixture_stack(
        profile, handler,
        "db::Pool::query(std::string const&)|PQexec|PQexecFinish|PQgetResult|pqWait|pqSocketPoll|poll",
        "libpq.so.5");
    uint32_t render =
        fixture_stack(profile, handler, "render_json|json::Value::dump(std::ostream&) const", "dbserver");
    uint32_t mutex =
        fixture_stack(profile, handler, "cache_get|pthread_mutex_lock|lll_lock_wait", "libc.so.6");
    uint32_t database = stack_table_push(
        profile->stacks, query, fixture_wait(profile, WAIT_DATABASE, "[wait: tcp 10.0.0.5:5432 postgresql]"));
    uint32_t lock =
        stack_table_push(profile->stacks, mutex, fixture_wait(profile, WAIT_LOCK, "[wait: lock cache_mu]"));
    uint32_t runnable =
        stack_table_push(profile->stacks, render, fixture_wait(profile, WAIT_RUNNABLE, "[runnable]"));
    const struct {
        uint32_t stack;
        enum thread_state state;
        uint64_t weight_us;
    } steps[] = {
        {parse, STATE_ON_CPU, 900 + seed % 7 * 150},       {lock, STATE_BLOCKED, seed % 3 == 0 ? 9000 : 400},
        {database, STATE_BLOCKED, 50200 + seed % 13 * 70}, {runnable, STATE_RUNNABLE, 300 + seed % 5 * 90},
        {render, STATE_ON_CPU, 3100 + seed % 11 * 210},
    };

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        fixture_sample(profile, thread, start_ns, steps[i].weight_us * NS_PER_US, steps[i].stack,
                       steps[i].state);
        start_ns += steps[i].weight_us * NS_PER_US;
    }
    return start_ns;
}

/* A pool of workers that spends its time in a database; an idle main thread; a housekeeper that sleeps and
 * writes. */
static inline struct profile *fixture_server(void)
{
    struct profile *profile = fixture_new("dbserver (2000)", NS_PER_S);
    uint32_t process = profile_add_process(profile, 2000, "dbserver");
    uint32_t main_thread = profile_add_thread(profile, process, 2000, "dbserver", true);
    uint32_t loop = fixture_stack(profile, STACK_EMPTY, "_start|main|event_loop|epoll_wait", "dbserver");
    uint32_t epoll =
        stack_table_push(profile->stacks, loop, fixture_wait(profile, WAIT_OTHER, "[wait: epoll]"));
    uint32_t keeper = fixture_stack(profile, STACK_EMPTY, "start_thread|housekeeper", "dbserver");
    uint32_t nap = fixture_stack(profile, keeper, "nanosleep", "libc.so.6");
    uint32_t sync = fixture_stack(profile, keeper, "flush_log|fdatasync", "libc.so.6");
    uint32_t sleeping =
        stack_table_push(profile->stacks, nap, fixture_wait(profile, WAIT_SLEEP, "[wait: sleep]"));
    uint32_t disk =
        stack_table_push(profile->stacks, sync, fixture_wait(profile, WAIT_DISK, "[wait: disk write]"));

    fixture_lifetime(profile, main_thread, 0, NS_PER_S);
    fixture_sample(profile, main_thread, 0, 980 * NS_PER_MS, epoll, STATE_IDLE);
    fixture_sample(profile, main_thread, 980 * NS_PER_MS, 20 * NS_PER_MS, loop, STATE_ON_CPU);
    for (uint32_t i = 0; i < FIXTURE_WORKERS; i++) {
        char name[16];

        snprintf(name, sizeof name, "worker-%u", i + 1);
        uint32_t thread = profile_add_thread(profile, process, (pid_t)(2001 + i), name, false);
        uint64_t now_ns = i * 7 * NS_PER_MS;

        for (uint32_t request = 0; now_ns < 930 * NS_PER_MS; request++)
            now_ns = fixture_request(profile, thread, now_ns, i * 5 + request * 3);
        fixture_lifetime(profile, thread, i * 7 * NS_PER_MS, now_ns);
    }
    uint32_t thread = profile_add_thread(profile, process, 2100, "housekeeper", false);

    fixture_lifetime(profile, thread, 0, NS_PER_S);
    fixture_sample(profile, thread, 0, 850 * NS_PER_MS, sleeping, STATE_BLOCKED);
    fixture_sample(profile, thread, 850 * NS_PER_MS, 150 * NS_PER_MS, disk, STATE_BLOCKED);
    profile->loss.unwound_stacks = 700;
    return profile;
}

#endif
