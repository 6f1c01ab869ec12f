#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/file.h"
#include "profiler/base/memory.h"
#include "profiler/collect/proc_maps.h"
#include "profiler/session_internal.h"

enum { MAPS_LIMIT_BYTES = 64 * 1024 * 1024, PATH_LIMIT_BYTES = 4096 };

/* Processes of one mount namespace with one root directory share what is held of it: a descriptor each would be too many
 * where processes come and go. */
static void hold_root(struct session *session, pid_t pid, struct target *target)
{
    struct stat root;
    struct stat namespace;
    char path[64];
    uint64_t key;
    uint32_t sharer;

    snprintf(path, sizeof path, "/proc/%d/root", pid);
    target->root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    if (target->root_fd < 0 || fstat(target->root_fd, &root) < 0 || stat(path, &namespace) < 0)
        return;
    key = hash_mix(hash_mix(namespace.st_ino, root.st_dev), root.st_ino);
    if (!id_map_get(&session->root_fd_of_place, key, &sharer)) {
        id_map_put(&session->root_fd_of_place, key, (uint32_t)target->root_fd);
        return;
    }
    close(target->root_fd);
    target->root_fd = (int)sharer;
    target->root_is_shared = true;
}

static void hold_target(struct session *session, const struct process *process)
{
    struct target target = {.pid_fd = -1, .root_fd = -1, .inner_pid = process->pid};
    char path[64];
    struct stat st;

    target.pid_fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    hold_root(session, process->pid, &target);
    snprintf(path, sizeof path, "/proc/%d", process->pid);
    if (stat(path, &st) == 0)
        target.uid = st.st_uid;
    target.inner_pid = proc_read_inner_pid(process->pid);
    while (session->targets.count <= process->id)
        VEC_PUSH(&session->targets, ((struct target){.pid_fd = -1, .root_fd = -1}));
    session->targets.items[process->id] = target;
    session_counts_add_process(session, process->pid);
    session_backlog_add_process(session, process->pid);
}

void session_watch_process(struct session *session, pid_t pid)
{
    if (session->capture != NULL)
        perf_capture_add_process(session->capture, pid);
    if (session->tick.tick != NULL)
        session->tick.backend->add_process(session->tick.tick, pid);
}

void session_unwatch_process(struct session *session, pid_t pid)
{
    if (session->capture != NULL)
        perf_capture_remove_process(session->capture, pid);
    if (session->tick.tick != NULL)
        session->tick.backend->remove_process(session->tick.tick, pid);
}

void session_release_targets(struct session *session)
{
    for (size_t i = 0; i < session->targets.count; i++) {
        if (session->targets.items[i].pid_fd >= 0)
            close(session->targets.items[i].pid_fd);
        if (session->targets.items[i].root_fd >= 0 && !session->targets.items[i].root_is_shared)
            close(session->targets.items[i].root_fd);
        memory_ranges_finish(&session->targets.items[i].ranges);
    }
    free(session->targets.items);
    free(session->threads.items);
    id_map_finish(&session->last_ended_of_tid);
    id_map_finish(&session->root_fd_of_place);
}

int session_open_in_target(void *context, uint32_t process, const char *path)
{
    const struct session *session = context;
    const struct target *target = &session->targets.items[process];
    AUTO_CLOSE int fd = -1;
    struct stat st;
    int opened;

    if (process >= session->targets.count || target->root_fd < 0)
        return -EBADF;
    fd = file_open_in_root(target->root_fd, path);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_uid != target->uid && st.st_uid != 0)
        return -EPERM;
    opened = fd;
    fd = -1;
    return opened;
}

pid_t session_inner_pid(void *context, uint32_t process)
{
    const struct session *session = context;

    return process < session->targets.count ? session->targets.items[process].inner_pid : 0;
}

/* Without the rights to go through the process: its path may lead to the same file for us too. */
static int open_same_file_of_ours(const struct binary_key *key, const char *path)
{
    AUTO_CLOSE int own_root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    int fd;

    if (own_root_fd < 0 || path[0] != '/')
        return -1;
    fd = file_open_in_root(own_root_fd, path);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_ino == key->inode && st.st_dev == key->device)
        return fd;
    close(fd);
    return -1;
}

/* map_files first: it is the very file that is mapped, deleted or replaced since or not. By its path below
 * the process's root only when that leads to the same inode; overlayfs shows other inodes in maps than
 * stat(2) does. */
static int open_mapped_file(const struct session *session, const struct process *process,
                            const struct mapping *range, const struct binary_key *key, const char *path)
{
    const struct target *target = &session->targets.items[process->id];
    char map_file[96];
    struct statfs fs;
    struct stat st;
    int fd;

    snprintf(map_file, sizeof map_file, "/proc/%d/map_files/%llx-%llx", process->pid,
             (unsigned long long)range->start, (unsigned long long)range->end);
    fd = open(map_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        return fd;
    if (target->root_fd < 0 || path[0] != '/')
        return open_same_file_of_ours(key, path);
    fd = file_open_in_root(target->root_fd, path);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_ino == key->inode)
        return fd;
    if (fstatfs(fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC)
        return fd;
    close(fd);
    return -1;
}

static bool is_jit(const char *path, const struct binary_key *key)
{
    return key->inode == 0 || strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "//anon", 6) == 0 ||
           strncmp(path, "/dev/zero", 9) == 0 || strncmp(path, "[heap]", 6) == 0;
}

void session_add_mapping(struct session *session, struct process *process, const struct mapping *range,
                         const struct binary_key *key, const char *path)
{
    struct mapping mapping = *range;
    const struct binary *binary;

    if (strcmp(path, "[vdso]") == 0) {
        binary = binary_table_vdso(session->binaries);
        mapping.file_offset = 0;
    } else if (is_jit(path, key)) {
        binary = binary_table_jit(session->binaries, process->id);
        mapping.file_offset = mapping.start; /* of JIT memory the address itself is what is asked for */
    } else {
        binary = binary_table_find(session->binaries, key);
        if (binary == NULL)
            binary = binary_table_add_file(session->binaries, key, path,
                                           open_mapped_file(session, process, range, key, path));
    }
    if (binary == NULL)
        return;
    mapping.binary = binary->id;
    address_space_insert(&process->space, &mapping);
}

void session_read_mappings(struct session *session, struct process *process)
{
    struct target *target = &session->targets.items[process->id];
    AUTO_FREE char *text = NULL;
    char path[64];
    char mapped_path[PATH_LIMIT_BYTES];
    size_t size = 0;
    struct proc_maps_line line;
    size_t used = 0;
    uint64_t hash;

    snprintf(path, sizeof path, "/proc/%d/maps", process->pid);
    if (file_read(AT_FDCWD, path, MAPS_LIMIT_BYTES, &text, &size) < 0)
        return;
    hash = hash_bytes(text, size);
    if (hash == target->maps_hash)
        return;
    target->maps_hash = hash;
    address_space_clear(&process->space);
    while (used < size) {
        long length = proc_maps_parse_line(text + used, size - used, &line);

        if (length <= 0)
            return;
        used += (size_t)length;
        if (!line.executable || line.path_length >= sizeof mapped_path)
            continue;
        memcpy(mapped_path, line.path, line.path_length);
        mapped_path[line.path_length] = '\0';
        session_add_mapping(
            session, process,
            &(struct mapping){.start = line.start, .end = line.end, .file_offset = line.file_offset},
            &(struct binary_key){.device = line.device, .inode = line.inode}, mapped_path);
    }
}

struct thread *session_add_thread(struct session *session, struct process *process, pid_t tid,
                                  const char *comm, uint64_t begin_ns, enum thread_state likely, bool born)
{
    struct thread *thread = process_table_add_thread(session->processes, process, tid, comm, begin_ns);
    static const struct thread_counters zero = {0};
    struct thread_record known = {.found_ns = clock_now_ns(), .begin_known = true};

    /* A thread that was just born starts from zero; of one that was there before, what it has counted so far.
     * With the engine `tick` the first look says so. */
    if (!born)
        known.begin_known =
            session->timeline != NULL && proc_read_schedstat(process->pid, tid, &known.begin) == 0;
    while (session->threads.count <= thread->id)
        VEC_PUSH(&session->threads, ((struct thread_record){0}));
    session->threads.items[thread->id] = known;
    if (session->timeline != NULL)
        timeline_begin(session->timeline, thread->id, begin_ns, likely, born);
    else if (session->calibration != NULL)
        calibration_begin(session->calibration, thread->id, begin_ns, born ? &zero : NULL);
    return thread;
}

static enum thread_state likely_state(char state)
{
    switch (state) {
    case 'R':
        return STATE_ON_CPU;
    case 'T':
    case 't':
        return STATE_STOPPED;
    default:
        return STATE_BLOCKED;
    }
}

/* Of one that is found in the middle of the window, to the clock tick: no earlier than the window. */
static uint64_t begin_of(const struct session *session, const struct proc_stat *stat)
{
    uint64_t since_boot_ns = stat->start_time_ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
    uint64_t boot_offset_ns = clock_boot_offset_ns();
    uint64_t begin_ns = since_boot_ns > boot_offset_ns ? since_boot_ns - boot_offset_ns : 0;

    return begin_ns > session->window_start_ns ? begin_ns : session->window_start_ns;
}

static void add_existing_thread(struct session *session, struct process *process, pid_t tid)
{
    char comm[PROCESS_COMM_SIZE] = "";
    struct proc_stat stat;
    struct thread *thread;
    enum thread_state likely;
    uint64_t begin_ns;

    if (proc_read_stat(process->pid, tid, &stat) < 0 || proc_read_comm(process->pid, tid, comm) < 0 ||
        stat.state == 'Z' || stat.state == 'X')
        return;
    likely = likely_state(stat.state);
    begin_ns = begin_of(session, &stat);
    thread = session_add_thread(session, process, tid, comm, begin_ns, likely,
                                begin_ns > session->window_start_ns);
    if (likely == STATE_ON_CPU || session->timeline == NULL)
        return;
    timeline_initial_stack(session->timeline, thread->id, clock_now_ns(),
                           session_snapshot_blocked(session, process, tid));
}

struct process *session_add_found_process(struct session *session, pid_t pid, uint64_t begin_ns)
{
    AUTO_FREE char *executable = NULL;
    struct process *process;

    if (proc_read_executable(pid, &executable) < 0)
        return NULL;
    process = process_table_add_process(session->processes, pid, executable, begin_ns);
    hold_target(session, process);
    session_read_mappings(session, process);
    return process;
}

int session_add_existing_process(struct session *session, pid_t pid)
{
    struct proc_stat stat;
    struct process *process;
    int r = proc_read_stat(pid, 0, &stat);

    if (r < 0)
        return r;
    process = session_add_found_process(session, pid, begin_of(session, &stat));
    if (process == NULL)
        return -ESRCH;
    for (bool found_new = true; found_new;) {
        AUTO_FREE pid_t *tids = NULL;
        size_t count = 0;

        found_new = false;
        if (proc_list_threads(pid, &tids, &count) < 0)
            break;
        for (size_t i = 0; i < count; i++) {
            if (process_table_find_thread(session->processes, tids[i]) != NULL)
                continue;
            add_existing_thread(session, process, tids[i]);
            found_new = process_table_find_thread(session->processes, tids[i]) != NULL || found_new;
        }
    }
    return 0;
}

struct process *session_add_forked_process(struct session *session, const struct process *parent, pid_t pid,
                                           uint64_t time_ns)
{
    struct process *process = process_table_add_process(session->processes, pid, parent->executable, time_ns);

    address_space_copy(&process->space, &parent->space);
    hold_target(session, process);
    return process;
}

static bool has_ended(const struct target *target)
{
    struct pollfd poll_fd = {.fd = target->pid_fd, .events = POLLIN};

    return target->pid_fd >= 0 && poll(&poll_fd, 1, 0) > 0;
}

/* Of a process that has ended only its files are still asked for. */
static void let_go(struct session *session, uint32_t process)
{
    struct target *target = process < session->targets.count ? &session->targets.items[process] : NULL;

    if (target == NULL || target->pid_fd < 0)
        return;
    close(target->pid_fd);
    target->pid_fd = -1;
    session_waits_forget(session, process);
}

bool session_check_alive(struct session *session)
{
    uint32_t count = process_table_process_count(session->processes);
    bool any = false;

    for (uint32_t i = 0; i < count; i++) {
        struct process *process = process_table_process(session->processes, i);

        if (!process->alive) {
            let_go(session, i);
            continue;
        }
        if (process->live_threads == 0 ||
            (i < session->targets.count && has_ended(&session->targets.items[i]))) {
            uint64_t now_ns = clock_now_ns();

            /* Its last records may still be on their way: they are let in before the threads are ended. */
            if (session->capture != NULL)
                perf_capture_remove_process(session->capture, process->pid);
            if (process->live_threads == 0)
                process_table_end_process(session->processes, process, now_ns);
            continue;
        }
        any = true;
    }
    return any;
}

void session_read_end_counters(struct session *session)
{
    uint32_t count = process_table_thread_count(session->processes);

    for (uint32_t i = 0; i < count; i++) {
        const struct thread *thread = process_table_thread(session->processes, i);
        struct thread_record *known = &session->threads.items[i];

        if (thread->alive)
            known->end_known =
                proc_read_schedstat(process_table_process(session->processes, thread->process)->pid,
                                    thread->tid, &known->end) == 0;
    }
}
