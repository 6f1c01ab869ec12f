#include "profiler/collect/proc_task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"
#include "profiler/base/memory.h"
#include "profiler/base/scanner.h"
#include "profiler/base/vec.h"

enum {
    TASK_PATH_BYTES = 64,             /* "/proc/2147483647/task/2147483647/schedstat" and room */
    SHORT_FILE_LIMIT_BYTES = 4096,    /* stat, schedstat, syscall, comm: one line each */
    STATUS_LIMIT_BYTES = 1024 * 1024, /* its Groups line lists up to 65536 groups */
    KERNEL_THREAD_FLAG = 0x00200000,  /* PF_KTHREAD, include/linux/sched.h */
};

/* Takes " NUMBER". */
static bool take_field(struct scanner *in, int64_t *ret_value)
{
    return scanner_take_char(in, ' ') && scanner_take_signed(in, ret_value);
}

static bool skip_fields(struct scanner *in, int count)
{
    int64_t ignored;

    while (count-- > 0)
        if (!take_field(in, &ignored))
            return false;
    return true;
}

static bool take_count(struct scanner *in, uint64_t *ret_value)
{
    return scanner_take_char(in, ' ') && scanner_take_decimal(in, ret_value);
}

/* "1234 (a) b\n) S 1 1234 1234 34816 5678 4194304 ...": the fields behind comm, numbered from 3 in proc(5).
 */
static bool parse_stat_fields(struct scanner *in, struct proc_stat *stat)
{
    int64_t parent = 0;
    uint64_t flags = 0;

    if (!scanner_take_char(in, ' ') || in->at == in->end)
        return false;
    stat->state = *in->at++;
    if (!take_field(in, &parent) || parent < 0 || parent > INT_MAX)
        return false;
    if (!skip_fields(in, 4) /* 5 to 8 */ || !take_count(in, &flags) || !skip_fields(in, 4) /* 10 to 13 */)
        return false;
    if (!take_count(in, &stat->user_ticks) || !take_count(in, &stat->system_ticks))
        return false;
    if (!skip_fields(in, 4) /* 16 to 19 */ || !take_count(in, &stat->thread_count) || !skip_fields(in, 1))
        return false;
    stat->parent_pid = (pid_t)parent;
    stat->kernel_thread = (flags & KERNEL_THREAD_FLAG) != 0;
    return take_count(in, &stat->start_time_ticks);
}

int proc_stat_parse(const char *text, size_t length, struct proc_stat *ret_stat)
{
    struct scanner in = {.at = text, .end = text + length};
    struct proc_stat stat = {0};
    const char *comm_end;
    uint64_t pid = 0;
    size_t comm_length;

    if (!scanner_take_decimal(&in, &pid) || !scanner_take_text(&in, " ("))
        return -EBADMSG;
    comm_end = memrchr(in.at, ')', (size_t)(in.end - in.at));
    if (comm_end == NULL)
        return -EBADMSG;
    comm_length = (size_t)(comm_end - in.at);
    if (comm_length > sizeof stat.comm - 1)
        comm_length = sizeof stat.comm - 1;
    memcpy(stat.comm, in.at, comm_length);
    in.at = comm_end + 1;
    if (!parse_stat_fields(&in, &stat))
        return -EBADMSG;
    *ret_stat = stat;
    return 0;
}

int proc_schedstat_parse(const char *text, size_t length, struct proc_schedstat *ret_schedstat)
{
    struct scanner in = {.at = text, .end = text + length};
    struct proc_schedstat counters = {0};

    if (!scanner_take_decimal(&in, &counters.on_cpu_ns) || !take_count(&in, &counters.runnable_ns) ||
        !take_count(&in, &counters.switches_in))
        return -EBADMSG;
    *ret_schedstat = counters;
    return 0;
}

/* The value behind "\nKEY:"; the kernel escapes line breaks in the Name line, so that it cannot forge one. */
static bool find_status_value(const char *text, size_t length, const char *key, struct scanner *ret_value)
{
    const char *line = memmem(text, length, key, strlen(key));

    if (line == NULL)
        return false;
    *ret_value = (struct scanner){.at = line + strlen(key), .end = text + length};
    scanner_skip_spaces(ret_value);
    return ret_value->at < ret_value->end;
}

/* "Name:\tx\n...\nState:\tS
 * (sleeping)\n...\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n"
 */
int proc_status_parse(const char *text, size_t length, struct proc_status *ret_status)
{
    struct proc_status status = {0};
    struct scanner value;

    if (!find_status_value(text, length, "\nState:", &value))
        return -EBADMSG;
    status.state = *value.at;
    if (!find_status_value(text, length, "\nvoluntary_ctxt_switches:", &value) ||
        !scanner_take_decimal(&value, &status.voluntary_switches))
        return -EBADMSG;
    if (!find_status_value(text, length, "\nnonvoluntary_ctxt_switches:", &value) ||
        !scanner_take_decimal(&value, &status.involuntary_switches))
        return -EBADMSG;
    *ret_status = status;
    return 0;
}

static bool take_hex_field(struct scanner *in, uint64_t *ret_value)
{
    return scanner_take_text(in, " 0x") && scanner_take_hex(in, ret_value);
}

int proc_syscall_parse(const char *text, size_t length, struct proc_syscall *ret_syscall)
{
    struct scanner in = {.at = text, .end = text + length};
    struct proc_syscall call = {.number = -1};

    if (scanner_take_text(&in, "running")) {
        call.running = true;
        *ret_syscall = call;
        return 0;
    }
    if (!scanner_take_signed(&in, &call.number))
        return -EBADMSG;
    if (call.number >= 0)
        for (size_t i = 0; i < sizeof call.arguments / sizeof call.arguments[0]; i++)
            if (!take_hex_field(&in, &call.arguments[i]))
                return -EBADMSG;
    if (!take_hex_field(&in, &call.sp) || !take_hex_field(&in, &call.pc))
        return -EBADMSG;
    *ret_syscall = call;
    return 0;
}

static void task_path(char path[TASK_PATH_BYTES], pid_t pid, pid_t tid, const char *file)
{
    if (tid == 0)
        snprintf(path, TASK_PATH_BYTES, "/proc/%d/%s", pid, file);
    else
        snprintf(path, TASK_PATH_BYTES, "/proc/%d/task/%d/%s", pid, tid, file);
}

/* -ENOENT says that the process is gone only if its folder is gone too: a kernel may be built without the
 * file. */
static int why_missing(pid_t pid, pid_t tid, int code)
{
    char folder[TASK_PATH_BYTES];

    if (code != -ENOENT)
        return code;
    task_path(folder, pid, tid, "");
    return access(folder, F_OK) == 0 ? -ENOENT : -ESRCH;
}

static int read_task_file(pid_t pid, pid_t tid, const char *file, size_t limit_bytes, char **ret_text,
                          size_t *ret_length)
{
    char path[TASK_PATH_BYTES];

    task_path(path, pid, tid, file);
    return why_missing(pid, tid, file_read(AT_FDCWD, path, limit_bytes, ret_text, ret_length));
}

int proc_read_stat(pid_t pid, pid_t tid, struct proc_stat *ret_stat)
{
    AUTO_FREE char *text = NULL;
    size_t length = 0;
    int r = read_task_file(pid, tid, "stat", SHORT_FILE_LIMIT_BYTES, &text, &length);

    return r < 0 ? r : proc_stat_parse(text, length, ret_stat);
}

int proc_read_schedstat(pid_t pid, pid_t tid, struct proc_schedstat *ret_schedstat)
{
    AUTO_FREE char *text = NULL;
    size_t length = 0;
    int r = read_task_file(pid, tid, "schedstat", SHORT_FILE_LIMIT_BYTES, &text, &length);

    return r < 0 ? r : proc_schedstat_parse(text, length, ret_schedstat);
}

int proc_read_syscall(pid_t pid, pid_t tid, struct proc_syscall *ret_syscall)
{
    AUTO_FREE char *text = NULL;
    size_t length = 0;
    int r = read_task_file(pid, tid, "syscall", SHORT_FILE_LIMIT_BYTES, &text, &length);

    return r < 0 ? r : proc_syscall_parse(text, length, ret_syscall);
}

int proc_read_comm(pid_t pid, pid_t tid, char ret_comm[16])
{
    AUTO_FREE char *text = NULL;
    size_t length = 0;
    int r = read_task_file(pid, tid, "comm", SHORT_FILE_LIMIT_BYTES, &text, &length);

    if (r < 0)
        return r;
    if (length > 0 && text[length - 1] == '\n')
        length--;
    if (length > 15)
        length = 15; /* only kernel threads have longer ones */
    memset(ret_comm, 0, 16);
    memcpy(ret_comm, text, length);
    return 0;
}

/* "/usr/sbin/nginx (deleted)" -> "nginx"; NULL when nothing is left. */
static char *executable_base_name(char *link)
{
    static const char deleted_mark[] = " (deleted)";
    const size_t mark_length = sizeof deleted_mark - 1;
    size_t length = strlen(link);
    const char *slash;

    if (length > mark_length && strcmp(link + length - mark_length, deleted_mark) == 0)
        link[length - mark_length] = '\0';
    slash = strrchr(link, '/');
    if (slash == NULL || slash[1] == '\0')
        return NULL;
    return string_copy(slash + 1);
}

int proc_read_executable(pid_t pid, char **ret_name)
{
    char path[TASK_PATH_BYTES];
    char link[PATH_MAX];
    char comm[16];
    char *name = NULL;
    ssize_t length;
    int r;

    task_path(path, pid, 0, "exe");
    length = readlink(path, link, sizeof link - 1);
    if (length > 0) {
        link[length] = '\0';
        name = executable_base_name(link);
    }
    if (name == NULL) {
        r = proc_read_comm(pid, pid, comm);
        if (r < 0)
            return r;
        name = string_copy(comm);
    }
    *ret_name = name;
    return 0;
}

pid_t proc_read_inner_pid(pid_t pid)
{
    AUTO_FREE char *text = NULL;
    size_t length = 0;
    uint64_t inner = (uint64_t)pid;
    struct scanner in;
    const char *line;

    if (read_task_file(pid, 0, "status", STATUS_LIMIT_BYTES, &text, &length) < 0)
        return pid;
    /* "NSpid:\t4711\t3\n", outermost first. The Name line is escaped by the kernel and cannot forge this one.
     */
    line = memmem(text, length, "\nNSpid:", strlen("\nNSpid:"));
    if (line == NULL)
        return pid;
    in = (struct scanner){.at = line + strlen("\nNSpid:"), .end = text + length};
    do
        scanner_skip_spaces(&in);
    while (scanner_take_decimal(&in, &inner));
    return inner > 0 && inner <= INT_MAX ? (pid_t)inner : pid;
}

static int compare_pids(const void *a, const void *b)
{
    pid_t left;
    pid_t right;

    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left > right) - (left < right);
}

/* The entries of a folder whose names are numbers. */
static int list_numbers(const char *path, pid_t **ret_ids, size_t *ret_count)
{
    AUTO_CLOSEDIR DIR *dir = opendir(path);
    VEC_OF(pid_t) ids = {0};
    const struct dirent *entry;

    if (dir == NULL)
        return -errno;
    while ((entry = readdir(dir)) != NULL) {
        struct scanner in = {.at = entry->d_name, .end = entry->d_name + strlen(entry->d_name)};
        uint64_t id;

        if (scanner_take_decimal(&in, &id) && in.at == in.end && id > 0 && id <= INT_MAX)
            VEC_PUSH(&ids, (pid_t)id);
    }
    if (ids.count == 0)
        return -ESRCH;
    qsort(ids.items, ids.count, sizeof *ids.items, compare_pids);
    *ret_ids = ids.items;
    *ret_count = ids.count;
    return 0;
}

int proc_list_threads(pid_t pid, pid_t **ret_ids, size_t *ret_count)
{
    char path[TASK_PATH_BYTES];

    task_path(path, pid, 0, "task");
    return why_missing(pid, 0, list_numbers(path, ret_ids, ret_count));
}

int proc_list_processes(pid_t **ret_ids, size_t *ret_count)
{
    return list_numbers("/proc", ret_ids, ret_count);
}

struct family_member {
    pid_t parent;
    pid_t pid;
    bool taken;
};

static int compare_parents(const void *a, const void *b)
{
    const struct family_member *left = a;
    const struct family_member *right = b;

    if (left->parent != right->parent)
        return left->parent < right->parent ? -1 : 1;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

/* A main thread that has called pthread_exit() is a zombie too, but its process lives on in the other
 * threads. */
static bool is_live_process(const struct proc_stat *stat)
{
    bool main_thread_ended = stat->state == 'Z' || stat->state == 'X';

    return !stat->kernel_thread && (!main_thread_ended || stat->thread_count > 1);
}

/* Every live process with its parent, sorted by parent. Those that vanish meanwhile are left out. */
static int list_family(struct family_member **ret_members, size_t *ret_count)
{
    AUTO_FREE pid_t *pids = NULL;
    VEC_OF(struct family_member) members = {0};
    size_t pid_count = 0;
    int r = proc_list_processes(&pids, &pid_count);

    if (r < 0)
        return r;
    for (size_t i = 0; i < pid_count; i++) {
        struct proc_stat stat;

        if (proc_read_stat(pids[i], 0, &stat) == 0 && is_live_process(&stat))
            VEC_PUSH(&members, ((struct family_member){.parent = stat.parent_pid, .pid = pids[i]}));
    }
    if (members.count > 0)
        qsort(members.items, members.count, sizeof *members.items, compare_parents);
    *ret_members = members.items;
    *ret_count = members.count;
    return 0;
}

/* Index of the first member with this parent, or with a greater one. */
static size_t first_child(const struct family_member *members, size_t count, pid_t parent)
{
    size_t low = 0;

    while (count > 0) {
        size_t half = count / 2;

        if (members[low + half].parent < parent) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

static bool is_among(const pid_t *pids, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

int proc_list_descendants(const pid_t *roots, size_t root_count, pid_t **ret_ids, size_t *ret_count)
{
    AUTO_FREE struct family_member *members = NULL;
    VEC_OF(pid_t) found = {0};
    size_t member_count = 0;
    int r = list_family(&members, &member_count);

    if (r < 0)
        return r;
    for (size_t i = 0; i < member_count; i++) {
        members[i].taken = is_among(roots, root_count, members[i].pid);
        if (members[i].taken)
            VEC_PUSH(&found, members[i].pid);
    }
    /* The list grows while it is walked: each one found brings its children. */
    for (size_t i = 0; i < found.count; i++) {
        pid_t parent = found.items[i];

        for (size_t child = first_child(members, member_count, parent);
             child < member_count && members[child].parent == parent; child++) {
            if (!members[child].taken)
                VEC_PUSH(&found, members[child].pid);
            members[child].taken = true;
        }
    }
    if (found.count == 0)
        return -ESRCH;
    qsort(found.items, found.count, sizeof *found.items, compare_pids);
    *ret_ids = found.items;
    *ret_count = found.count;
    return 0;
}
