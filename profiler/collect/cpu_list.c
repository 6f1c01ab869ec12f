#include "profiler/collect/cpu_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"
#include "profiler/base/memory.h"
#include "profiler/base/scanner.h"

enum { FILE_LIMIT_BYTES = 64 * 1024 };

int cpu_list_parse(const char *text, size_t length, int ret_cpus[CPU_LIST_MAX])
{
    struct scanner in = {.at = text, .end = text + length};
    int count = 0;
    do {
        uint64_t first, last;
        if (!scanner_take_decimal(&in, &first))
            return -EBADMSG;
        last = first;
        if (scanner_take_char(&in, '-') && !scanner_take_decimal(&in, &last))
            return -EBADMSG;
        if (last < first || last >= CPU_LIST_MAX)
            return -EBADMSG;
        for (uint64_t cpu = first; cpu <= last; cpu++) {
            if (count == CPU_LIST_MAX)
                return -EBADMSG;
            ret_cpus[count++] = (int)cpu;
        }
    } while (scanner_take_char(&in, ','));
    scanner_take_char(&in, '\n');
    return in.at == in.end ? count : -EBADMSG;
}

size_t cpu_list_read_online(int **ret_cpus)
{
    AUTO_FREE char *text = NULL;
    size_t length;
    int *cpus = memory_zeroed(CPU_LIST_MAX, sizeof *cpus);
    int count = 0;
    if (file_read(AT_FDCWD, "/sys/devices/system/cpu/online", FILE_LIMIT_BYTES, &text, &length) == 0)
        count = cpu_list_parse(text, length, cpus);
    if (count <= 0) { /* no /sys: then they are the first ones, as a rule */
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        count = online < 1 ? 1 : online > CPU_LIST_MAX ? CPU_LIST_MAX : (int)online;
        for (int i = 0; i < count; i++)
            cpus[i] = i;
    }
    *ret_cpus = memory_resize(cpus, (size_t)count, sizeof *cpus);
    return (size_t)count;
}
