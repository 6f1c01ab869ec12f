#include "profiler/collect/perf_task_events.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "profiler/base/cleanup.h"
#include "profiler/collect/proc_task.h"

enum {
    MAX_ROUNDS = 64,   /* listings of a process's threads, until one shows none that is new */
    SPARE_FILES = 128, /* for everything else that the program opens */
    WHAT_BYTES = 64,
};

struct opening {
    struct perf_event_set *set;
    const struct perf_task_plan *plan;
    struct id_map *opened_tids;
    size_t opened, refused;
    int refusal; /* the first one's code */
};

/* Returns 0 or -errno with a message. */
static int raise_file_limit(rlim_t needed, struct error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= needed)
        return 0; /* enough; or the open that fails will tell */
    if (limit.rlim_max < needed)
        return perf_refusal_explain_files(err, needed, limit.rlim_max);
    limit.rlim_cur = needed;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? error_set(err, -errno, "raise the limit of open files") : 0;
}

static rlim_t files_needed(const struct opening *opening, size_t thread_count)
{
    return opening->set->events.count + SPARE_FILES +
           thread_count * opening->set->cpu_count * opening->plan->event_count;
}

/* Returns 0, -ESRCH when the thread is gone, or another -errno. */
static int open_thread(const struct opening *opening, pid_t tid)
{
    for (size_t cpu = 0; cpu < opening->set->cpu_count; cpu++) {
        for (size_t i = 0; i < opening->plan->event_count; i++) {
            const struct perf_task_event *event = &opening->plan->events[i];
            int fd = perf_event_set_add(opening->set, &event->spec, tid, cpu, event->ring_class, tid);
            if (fd < 0 && fd != -ENODEV && fd != -ENXIO) /* those two: the CPU went offline */
                return fd;
        }
    }
    return 0;
}

static int explain_files(rlim_t needed, struct error *err)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    return perf_refusal_explain_files(err, needed, limit.rlim_cur);
}

/* Returns how many threads were new, or -errno with a message. */
static int open_new_threads(struct opening *opening, pid_t pid, struct error *err)
{
    AUTO_FREE pid_t *tids = NULL;
    size_t count;
    uint32_t ignored;
    int news = 0;
    int r = proc_list_threads(pid, &tids, &count);
    if (r < 0) {
        opening->refusal = opening->refusal != 0 ? opening->refusal : r;
        return 0;
    }
    r = raise_file_limit(files_needed(opening, opening->opened + count), err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        if (id_map_get(opening->opened_tids, (uint64_t)tids[i], &ignored))
            continue;
        news++;
        r = open_thread(opening, tids[i]);
        if (r == -EMFILE)
            return explain_files(files_needed(opening, opening->opened + count), err);
        if (r == 0) {
            id_map_put(opening->opened_tids, (uint64_t)tids[i], PERF_THREAD_OWN);
            opening->opened++;
        } else if (r != -ESRCH) {
            id_map_put(opening->opened_tids, (uint64_t)tids[i], PERF_THREAD_REFUSED);
            opening->refused++;
            opening->refusal = opening->refusal != 0 ? opening->refusal : r;
        }
    }
    return news;
}

int perf_task_events_open(struct perf_event_set *set, const struct perf_task_plan *plan,
                          const struct perf_privileges *privileges, struct id_map *opened_tids,
                          size_t *ret_refused, struct error *err)
{
    struct opening opening = {.set = set, .plan = plan, .opened_tids = opened_tids};
    for (size_t i = 0; i < plan->pid_count; i++) {
        int news = 1;
        for (int round = 0; round < MAX_ROUNDS && news > 0; round++)
            news = open_new_threads(&opening, plan->pids[i], err);
        if (news < 0)
            return news;
    }
    if (opening.opened == 0) {
        char what[WHAT_BYTES];
        snprintf(what, sizeof what, "sample process %d", plan->pid_count > 0 ? plan->pids[0] : 0);
        return perf_refusal_explain(err, opening.refusal != 0 ? opening.refusal : -ESRCH, privileges, what);
    }
    *ret_refused = opening.refused;
    return 0;
}
