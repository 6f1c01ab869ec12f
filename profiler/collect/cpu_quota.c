#include "profiler/collect/cpu_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/file.h"
#include "profiler/base/memory.h"
#include "profiler/base/scanner.h"

enum {
    MOUNTS_LIMIT_BYTES = 4 << 20, /* a host of many containers has thousands of mounts */
    GROUP_LIMIT_BYTES = 256 << 10,
    STAT_BYTES = 4096,
};

static bool is_text(struct text_view view, const char *text)
{
    return view.length == strlen(text) && memcmp(view.text, text, view.length) == 0;
}

/* Up to the separator, which is taken too, or the end; false at the end. */
static bool take_field(struct scanner *in, char separator, struct text_view *ret_field)
{
    const char *found;

    if (in->at == in->end)
        return false;
    found = memchr(in->at, separator, (size_t)(in->end - in->at));
    ret_field->text = in->at;
    ret_field->length = (size_t)((found != NULL ? found : in->end) - in->at);
    in->at = found != NULL ? found + 1 : in->end;
    return true;
}

static bool has_controller(struct text_view list, const char *wanted)
{
    struct scanner in = {.at = list.text, .end = list.text + list.length};
    struct text_view name;

    while (take_field(&in, ',', &name))
        if (is_text(name, wanted))
            return true;
    return false;
}

/* The kernel writes a blank within a path as \040: such a place is not looked at. */
static bool is_plain_path(struct text_view path)
{
    return path.length > 0 && path.text[0] == '/' && memchr(path.text, '\\', path.length) == NULL &&
           memchr(path.text, '\0', path.length) == NULL;
}

int cpu_quota_parse_mount(const char *line, size_t length, struct cpu_quota_mount *ret_mount)
{
    struct scanner in = {.at = line, .end = line + length};
    struct cpu_quota_mount mount = {0};
    struct text_view field;
    struct text_view type;

    if (length > 0 && line[length - 1] == '\n')
        in.end--;
    for (int i = 0; i < 3; i++) /* id, parent's id, device */
        if (!take_field(&in, ' ', &field))
            return -EBADMSG;
    if (!take_field(&in, ' ', &mount.root) || !take_field(&in, ' ', &mount.point))
        return -EBADMSG;
    do { /* options, and a number of optional fields */
        if (!take_field(&in, ' ', &field))
            return -EBADMSG;
    } while (!is_text(field, "-"));
    if (!take_field(&in, ' ', &type) || !take_field(&in, ' ', &field) || !take_field(&in, ' ', &field))
        return -EBADMSG;
    mount.version_2 = is_text(type, "cgroup2");
    if (!mount.version_2 && (!is_text(type, "cgroup") || !has_controller(field, "cpu")))
        return -ENOENT;
    if (!is_plain_path(mount.root) || !is_plain_path(mount.point))
        return -ENOENT;
    *ret_mount = mount;
    return 0;
}

static bool leads_out(struct text_view path)
{
    struct scanner in = {.at = path.text, .end = path.text + path.length};
    struct text_view name;

    while (take_field(&in, '/', &name))
        if (is_text(name, ".."))
            return true;
    return false;
}

int cpu_quota_parse_group(const char *text, size_t length, bool *ret_version_2, struct text_view *ret_path)
{
    struct scanner in = {.at = text, .end = text + length};
    struct text_view line;
    struct text_view found = {0};
    bool version_2 = true;

    while (take_field(&in, '\n', &line)) {
        struct scanner at = {.at = line.text, .end = line.text + line.length};
        struct text_view controllers = {0};
        uint64_t hierarchy;

        if (!scanner_take_decimal(&at, &hierarchy) || !scanner_take_char(&at, ':') ||
            !take_field(&at, ':', &controllers) || at.at == at.end)
            return -EBADMSG;
        if (has_controller(controllers, "cpu"))
            version_2 = false;
        else if (hierarchy != 0 || !version_2)
            continue;
        found = (struct text_view){.text = at.at, .length = (size_t)(at.end - at.at)};
    }
    if (found.length == 0 || found.text[0] != '/' || memchr(found.text, '\0', found.length) != NULL ||
        leads_out(found))
        return -ENOENT;
    *ret_version_2 = version_2;
    *ret_path = found;
    return 0;
}

int cpu_quota_parse_stat(const char *text, size_t length, struct cpu_quota_stat *ret_stat)
{
    struct scanner in = {.at = text, .end = text + length};
    struct cpu_quota_stat stat = {0};
    struct text_view line;
    unsigned found = 0;

    while (take_field(&in, '\n', &line)) {
        struct scanner at = {.at = line.text, .end = line.text + line.length};

        if (scanner_take_text(&at, "nr_periods "))
            found |= scanner_take_decimal(&at, &stat.periods) ? 1 : 0;
        else if (scanner_take_text(&at, "nr_throttled "))
            found |= scanner_take_decimal(&at, &stat.throttled_periods) ? 2 : 0;
        else if (scanner_take_text(&at, "throttled_time "))
            found |= scanner_take_decimal(&at, &stat.throttled_ns) ? 4 : 0;
        else if (scanner_take_text(&at, "throttled_usec ") && scanner_take_decimal(&at, &stat.throttled_ns) &&
                 !__builtin_mul_overflow(stat.throttled_ns, NS_PER_US, &stat.throttled_ns))
            found |= 4;
    }
    if (found != 7)
        return -ENODATA;
    *ret_stat = stat;
    return 0;
}

static bool us_to_ns(uint64_t us, uint64_t *ret_ns)
{
    return !__builtin_mul_overflow(us, NS_PER_US, ret_ns);
}

int cpu_quota_parse_max(const char *text, size_t length, struct cpu_quota_limit *ret_limit)
{
    struct scanner in = {.at = text, .end = text + length};
    struct cpu_quota_limit limit;
    uint64_t quota_us = 0;
    uint64_t period_us;

    if (!scanner_take_text(&in, "max") && !scanner_take_decimal(&in, &quota_us))
        return -EBADMSG;
    if (!scanner_take_char(&in, ' ') || !scanner_take_decimal(&in, &period_us) ||
        !us_to_ns(quota_us, &limit.quota_ns) || !us_to_ns(period_us, &limit.period_ns))
        return -EBADMSG;
    *ret_limit = limit;
    return 0;
}

static void keep_mount(struct cpu_quota_mounts *mounts, const struct cpu_quota_mount *mount)
{
    char **root = &mounts->root[mount->version_2];
    char **point = &mounts->point[mount->version_2];

    /* A container may see a part of the hierarchy beside the whole. */
    if (*root != NULL && strlen(*root) <= mount->root.length)
        return;
    free(*root);
    free(*point);
    *root = string_copy_length(mount->root.text, mount->root.length);
    *point = string_copy_length(mount->point.text, mount->point.length);
}

void cpu_quota_find_mounts(struct cpu_quota_mounts *mounts)
{
    AUTO_FREE char *text = NULL;
    struct cpu_quota_mount mount;
    struct text_view line;
    size_t length = 0;

    *mounts = (struct cpu_quota_mounts){0};
    if (file_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_LIMIT_BYTES, &text, &length) < 0)
        return;
    for (struct scanner in = {.at = text, .end = text + length}; take_field(&in, '\n', &line);)
        if (cpu_quota_parse_mount(line.text, line.length, &mount) == 0)
            keep_mount(mounts, &mount);
}

void cpu_quota_free_mounts(struct cpu_quota_mounts *mounts)
{
    for (int i = 0; i < 2; i++) {
        free(mounts->root[i]);
        free(mounts->point[i]);
    }
    *mounts = (struct cpu_quota_mounts){0};
}

/* The part of path that lies below the mounted group; false when it does not. */
static bool strip_root(struct text_view *path, const char *root)
{
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (path->length < length || memcmp(path->text, root, length) != 0 ||
        (path->length > length && path->text[length] != '/'))
        return false;
    path->text += length;
    path->length -= length;
    while (path->length > 0 && path->text[path->length - 1] == '/')
        path->length--;
    return true;
}

int cpu_quota_find_folder(const struct cpu_quota_mounts *mounts, pid_t pid, char **ret_folder,
                          size_t *ret_top_length)
{
    AUTO_FREE char *file = string_format("/proc/%d/cgroup", (int)pid);
    AUTO_FREE char *text = NULL;
    struct text_view path;
    bool version_2 = false;
    size_t length;
    int r = file_read(AT_FDCWD, file, GROUP_LIMIT_BYTES, &text, &length);

    if (r < 0)
        return r;
    r = cpu_quota_parse_group(text, length, &version_2, &path);
    if (r < 0)
        return r;
    if (mounts->root[version_2] == NULL || !strip_root(&path, mounts->root[version_2]))
        return -ENOENT;
    *ret_top_length = strlen(mounts->point[version_2]);
    *ret_folder = string_format("%s%.*s", mounts->point[version_2], (int)path.length, path.text);
    return 0;
}

int cpu_quota_open_stat(const char *folder)
{
    AUTO_FREE char *path = string_format("%s/cpu.stat", folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int cpu_quota_read_stat(int fd, struct cpu_quota_stat *ret_stat)
{
    char text[STAT_BYTES];
    ssize_t length = file_read_at(fd, text, sizeof text, 0);

    return length < 0 ? (int)length : cpu_quota_parse_stat(text, (size_t)length, ret_stat);
}

/* -1 = no limit. */
static int read_number(const char *folder, const char *name, int64_t *ret_number)
{
    AUTO_FREE char *path = string_format("%s/%s", folder, name);
    AUTO_FREE char *text = NULL;
    size_t length = 0;
    int r = file_read(AT_FDCWD, path, STAT_BYTES, &text, &length);
    struct scanner in = {.at = text, .end = text + length};

    if (r < 0)
        return r;
    return scanner_take_signed(&in, ret_number) ? 0 : -EBADMSG;
}

static int read_limit_version_1(const char *folder, struct cpu_quota_limit *ret_limit)
{
    struct cpu_quota_limit limit;
    int64_t quota_us;
    int64_t period_us;
    int r = read_number(folder, "cpu.cfs_quota_us", &quota_us);

    if (r == 0)
        r = read_number(folder, "cpu.cfs_period_us", &period_us);
    if (r < 0)
        return r;
    if (period_us < 0 || !us_to_ns(quota_us > 0 ? (uint64_t)quota_us : 0, &limit.quota_ns) ||
        !us_to_ns((uint64_t)period_us, &limit.period_ns))
        return -EBADMSG;
    *ret_limit = limit;
    return 0;
}

int cpu_quota_read_limit(const char *folder, struct cpu_quota_limit *ret_limit)
{
    AUTO_FREE char *path = string_format("%s/cpu.max", folder);
    AUTO_FREE char *text = NULL;
    size_t length = 0;
    int r = file_read(AT_FDCWD, path, STAT_BYTES, &text, &length);

    if (r == -ENOENT)
        return read_limit_version_1(folder, ret_limit);
    return r < 0 ? r : cpu_quota_parse_max(text, length, ret_limit);
}
