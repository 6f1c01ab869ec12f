#include "profiler/collect/thread_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/file.h"

enum {
    PATH_BYTES = 40,
    STATUS_BYTES = 4096,
    STATUS_LIMIT_BYTES = 1024 * 1024, /* its Groups line lists up to 65536 groups */
};

static int open_file(const struct thread_files *files, const char *name)
{
    char path[PATH_BYTES];
    int fd;

    snprintf(path, sizeof path, "%d/%s", files->tid, name);
    fd = openat(files->task_fd, path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Returns the length, or -errno. */
static ssize_t read_file(const struct thread_files *files, const char *name, char *text, size_t size_bytes)
{
    AUTO_CLOSE int fd = open_file(files, name);
    size_t length = 0;

    if (fd < 0)
        return fd;
    while (length < size_bytes) {
        ssize_t got = read(fd, text + length, size_bytes - length);

        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        length += (size_t)got;
    }
    return (ssize_t)length;
}

bool thread_files_keep_open(struct thread_files *files)
{
    int fd = open_file(files, "schedstat");

    files->schedstat_fd = fd < 0 ? -1 : fd;
    return fd >= 0;
}

void thread_files_close(struct thread_files *files)
{
    if (files->schedstat_fd >= 0)
        close(files->schedstat_fd);
    files->schedstat_fd = -1;
}

int thread_files_schedstat(const struct thread_files *files, struct proc_schedstat *ret_schedstat)
{
    char text[128];
    ssize_t length;

    if (files->schedstat_fd < 0) {
        length = read_file(files, "schedstat", text, sizeof text);
    } else {
        length = pread(files->schedstat_fd, text, sizeof text, 0);
        if (length < 0)
            length = -errno;
    }
    return length < 0 ? (int)length : proc_schedstat_parse(text, (size_t)length, ret_schedstat);
}

int thread_files_status(const struct thread_files *files, struct proc_status *ret_status)
{
    char text[STATUS_BYTES];
    char path[PATH_BYTES];
    ssize_t length = read_file(files, "status", text, sizeof text);
    AUTO_FREE char *whole = NULL;
    size_t whole_length = 0;
    int r;

    if (length < 0)
        return (int)length;
    if ((size_t)length < sizeof text)
        return proc_status_parse(text, (size_t)length, ret_status);
    snprintf(path, sizeof path, "%d/status", files->tid);
    r = file_read(files->task_fd, path, STATUS_LIMIT_BYTES, &whole, &whole_length);
    return r < 0 ? r : proc_status_parse(whole, whole_length, ret_status);
}

int thread_files_start_time(const struct thread_files *files, uint64_t *ret_ns)
{
    char text[1024];
    struct proc_stat stat;
    ssize_t length = read_file(files, "stat", text, sizeof text);
    int r = length < 0 ? (int)length : proc_stat_parse(text, (size_t)length, &stat);

    if (r < 0)
        return r;
    *ret_ns = stat.start_time_ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
    return 0;
}

int thread_files_syscall(const struct thread_files *files, struct proc_syscall *ret_syscall)
{
    char text[512];
    ssize_t length = read_file(files, "syscall", text, sizeof text);

    return length < 0 ? (int)length : proc_syscall_parse(text, (size_t)length, ret_syscall);
}

/* "hrtimer_nanosleep", without a newline; "0" when there is none, or none that may be known. */
int thread_files_wait_channel(const struct thread_files *files, char *ret_name, size_t size_bytes)
{
    ssize_t length = read_file(files, "wchan", ret_name, size_bytes - 1);

    if (length < 0)
        return (int)length;
    ret_name[length] = '\0';
    if (strcmp(ret_name, "0") == 0)
        ret_name[0] = '\0';
    return 0;
}
