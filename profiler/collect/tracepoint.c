#include "profiler/collect/tracepoint.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"

enum { FORMAT_LIMIT_BYTES = 64 * 1024, ID_LIMIT_BYTES = 64, TRACEPOINT_PATH_BYTES = 64 };

/* "offset:24;" within the line: the number behind the key, at most 16 bits of it. */
static bool line_number(const char *line, size_t length, const char *key, uint16_t *ret_number)
{
    const char *found = memmem(line, length, key, strlen(key));
    if (found == NULL)
        return false;
    const char *at = found + strlen(key);
    const char *end = line + length;
    uint32_t number = 0;
    bool digits = false;
    for (; at < end && isdigit((unsigned char)*at); at++) {
        number = number * 10 + (uint32_t)(*at - '0');
        digits = true;
        if (number > UINT16_MAX)
            return false;
    }
    *ret_number = (uint16_t)number;
    return digits && at < end && *at == ';';
}

static bool name_character(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* "field:char prev_comm[16];" declares prev_comm: the last word before '[' or ';'. */
static bool declares(const char *line, size_t length, const char *name)
{
    static const char key[] = "field:";
    const char *field = memmem(line, length, key, sizeof key - 1);
    if (field == NULL)
        return false;
    const char *end = memchr(field, ';', (size_t)(line + length - field));
    if (end == NULL)
        return false;
    const char *bracket = memchr(field, '[', (size_t)(end - field));
    if (bracket != NULL)
        end = bracket;
    const char *start = end;
    while (start > field && name_character(start[-1]))
        start--;
    return (size_t)(end - start) == strlen(name) && memcmp(start, name, strlen(name)) == 0;
}

int tracepoint_find_field(const char *text, size_t length, const char *name,
                          struct tracepoint_field *ret_field)
{
    struct tracepoint_field field;
    while (length > 0) {
        const char *newline = memchr(text, '\n', length);
        size_t line_length = newline != NULL ? (size_t)(newline - text) : length;
        if (declares(text, line_length, name)) {
            if (!line_number(text, line_length, "offset:", &field.offset) ||
                !line_number(text, line_length, "size:", &field.size_bytes))
                return -EBADMSG;
            *ret_field = field;
            return 0;
        }
        size_t step = newline != NULL ? line_length + 1 : line_length;
        text += step;
        length -= step;
    }
    return -ENOENT;
}

/* fsopen(2) and fsmount(2) give a mount that is attached nowhere and ends with its descriptor. Returns an fd
 * or -errno. */
static int mount_detached(void)
{
    AUTO_CLOSE int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
    if (context < 0)
        return -errno;
    if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    int mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSUID);
    return mount < 0 ? -errno : mount;
}

/* Returns an fd of tracefs' folder "events/sched", or -errno. */
static int open_sched_folder(void)
{
    static const char *const places[] = {"/sys/kernel/tracing/events/sched",
                                         "/sys/kernel/debug/tracing/events/sched"};
    static const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int refusal = -ENOENT;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int fd = open(places[i], flags);
        if (fd >= 0)
            return fd;
        if (errno != ENOENT)
            refusal = -errno;
    }
    AUTO_CLOSE int mount = mount_detached();
    if (mount < 0)
        return refusal != -ENOENT ? refusal : mount;
    int fd = openat(mount, "events/sched", flags);
    return fd < 0 ? -errno : fd;
}

static int read_id(int folder_fd, const char *event, uint64_t *ret_id)
{
    char path[TRACEPOINT_PATH_BYTES];
    AUTO_FREE char *text = NULL;
    size_t length;
    snprintf(path, sizeof path, "%s/id", event);
    int r = file_read(folder_fd, path, ID_LIMIT_BYTES, &text, &length);
    if (r < 0)
        return r;
    char *end;
    errno = 0;
    unsigned long long id = strtoull(text, &end, 10);
    if (end == text || errno != 0)
        return -EBADMSG;
    *ret_id = id;
    return 0;
}

static int find_sized(const char *text, size_t length, const char *name, uint16_t *ret_offset,
                      uint16_t *ret_size)
{
    struct tracepoint_field field;
    int r = tracepoint_find_field(text, length, name, &field);
    if (r < 0)
        return r;
    bool wide = ret_size != NULL && field.size_bytes == sizeof(int64_t);
    if (field.size_bytes != sizeof(int32_t) && !wide)
        return -EBADMSG;
    *ret_offset = field.offset;
    if (ret_size != NULL)
        *ret_size = field.size_bytes;
    return 0;
}

static int read_format(int folder_fd, const char *event, char **ret_text, size_t *ret_length)
{
    char path[TRACEPOINT_PATH_BYTES];
    snprintf(path, sizeof path, "%s/format", event);
    return file_read(folder_fd, path, FORMAT_LIMIT_BYTES, ret_text, ret_length);
}

static int read_switch_layout(int folder_fd, struct perf_tracepoint_layout *layout)
{
    AUTO_FREE char *text = NULL;
    size_t length;
    int r = read_format(folder_fd, "sched_switch", &text, &length);
    if (r == 0)
        r = find_sized(text, length, "prev_pid", &layout->switch_prev_pid, NULL);
    if (r == 0)
        r = find_sized(text, length, "prev_state", &layout->switch_prev_state,
                       &layout->switch_prev_state_size);
    if (r == 0)
        r = find_sized(text, length, "next_pid", &layout->switch_next_pid, NULL);
    return r;
}

static int read_wakeup_offset(int folder_fd, const char *event, uint16_t *ret_offset)
{
    AUTO_FREE char *text = NULL;
    size_t length;
    int r = read_format(folder_fd, event, &text, &length);
    return r == 0 ? find_sized(text, length, "pid", ret_offset, NULL) : r;
}

static int read_all(int folder_fd, struct tracepoint_ids *ids, struct perf_tracepoint_layout *layout)
{
    uint16_t new_pid = 0;
    int r = read_id(folder_fd, "sched_switch", &ids->sched_switch);
    if (r == 0)
        r = read_id(folder_fd, "sched_wakeup", &ids->sched_wakeup);
    if (r == 0)
        r = read_id(folder_fd, "sched_wakeup_new", &ids->sched_wakeup_new);
    if (r == 0)
        r = read_switch_layout(folder_fd, layout);
    if (r == 0)
        r = read_wakeup_offset(folder_fd, "sched_wakeup", &layout->wakeup_pid);
    if (r == 0)
        r = read_wakeup_offset(folder_fd, "sched_wakeup_new", &new_pid);
    if (r == 0 && new_pid != layout->wakeup_pid) /* one template makes both */
        r = -EBADMSG;
    return r;
}

int tracepoint_read(struct tracepoint_ids *ret_ids, struct perf_tracepoint_layout *ret_layout,
                    struct error *err)
{
    struct tracepoint_ids ids;
    struct perf_tracepoint_layout layout;
    AUTO_CLOSE int folder_fd = open_sched_folder();
    if (folder_fd < 0)
        return error_set(err, folder_fd, "tracefs cannot be read");
    int r = read_all(folder_fd, &ids, &layout);
    if (r < 0)
        return error_set(err, r, "tracefs: events/sched");
    *ret_ids = ids;
    *ret_layout = layout;
    return 0;
}
