/* What the kernel says of control groups: a line of mountinfo, /proc/PID/cgroup, cpu.stat, cpu.max. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collect/cpu_quota.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_view(struct text_view view, const char *text, size_t size)
{
    if (view.length == 0 || view.text < text || view.length > size ||
        (size_t)(view.text - text) > size - view.length || view.text[0] != '/' ||
        memchr(view.text, '\0', view.length) != NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct cpu_quota_mount mount;
    struct cpu_quota_limit limit;
    struct cpu_quota_stat stat;
    struct text_view path;
    bool version_2;

    if (cpu_quota_parse_mount(text, size, &mount) == 0) {
        check_view(mount.root, text, size);
        check_view(mount.point, text, size);
    }
    if (cpu_quota_parse_group(text, size, &version_2, &path) == 0) {
        check_view(path, text, size);
        if (memchr(path.text, '\n', path.length) != NULL)
            abort();
    }
    (void)cpu_quota_parse_stat(text, size, &stat);
    (void)cpu_quota_parse_max(text, size, &limit);
    return 0;
}
