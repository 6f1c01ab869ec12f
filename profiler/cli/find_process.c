#include "profiler/cli/find_process.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/collect/proc_task.h"

static bool has_name(pid_t pid, const char *name)
{
    AUTO_FREE char *executable = NULL;
    char comm[16];

    if (proc_read_comm(pid, pid, comm) == 0 && strcmp(comm, name) == 0)
        return true;
    return proc_read_executable(pid, &executable) == 0 && strcmp(executable, name) == 0;
}

static bool contains(const pid_t *pids, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* Keeps those whose parent does not match as well: the workers of a server come with it. */
static size_t drop_workers(pid_t *pids, size_t count)
{
    AUTO_FREE pid_t *all = memory_copy(pids, count * sizeof *pids);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct proc_stat stat;

        if (proc_read_stat(all[i], all[i], &stat) == 0 && !contains(all, count, stat.parent_pid))
            pids[kept++] = all[i];
    }
    return kept;
}

static int several(const char *name, const pid_t *pids, size_t count, struct error *err)
{
    char list[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < count && used < sizeof list - 16; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", i > 0 ? ", " : "", pids[i]);
    error_say(err, -EINVAL, "%zu processes are called %s: %s%s", count, name, list,
              used >= sizeof list - 16 ? " ..." : "");
    return error_hint(err, "choose with -p");
}

int find_process_by_name(const char *name, pid_t *ret_pid, struct error *err)
{
    AUTO_FREE pid_t *pids = NULL;
    size_t count = 0;
    size_t matches = 0;
    int r = proc_list_processes(&pids, &count);

    if (r < 0)
        return error_set(err, r, "list processes");
    for (size_t i = 0; i < count; i++)
        if (pids[i] != getpid() && has_name(pids[i], name))
            pids[matches++] = pids[i];
    matches = drop_workers(pids, matches);
    if (matches == 0) {
        error_say(err, -ESRCH, "no process is called %s", name);
        return error_hint(err, "the name must be the comm or the executable's base name, whole");
    }
    if (matches > 1)
        return several(name, pids, matches, err);
    *ret_pid = pids[0];
    return 0;
}

char *process_display_name(pid_t pid)
{
    char *name = NULL;

    return proc_read_executable(pid, &name) == 0 ? name : string_copy("process");
}
