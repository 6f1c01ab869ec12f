/* With STALLGRAPH_BPF=OFF tick_bpf_none.c stands in for tick_bpf.c, and nothing is needed here. */
#ifdef STALLGRAPH_HAVE_BPF

#include "profiler/collect/tick_bpf_iterators.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/collect/bpf/tick_record.h"
#include "tick.skel.h"

enum {
    MAX_PROCESS_LINKS =
        TICK_READER_FDS, /* a link costs 8 us a pass: beyond that one pass over everybody is cheaper */
    MANY_THREADS = 1000,
};

void tick_iterators_end(struct tick_iterators *iterators, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(iterators->fds[i]);
    iterators->count -= count;
    memmove(iterators->fds, iterators->fds + count, iterators->count * sizeof *iterators->fds);
}

/* pid 0 = every process. Returns NULL with errno. */
static struct bpf_link *attach(const struct tick_iterators *iterators, pid_t pid)
{
    union bpf_iter_link_info info = {.task.pid = (uint32_t)pid};
    LIBBPF_OPTS(bpf_iter_attach_opts, options);

    if (pid != 0) {
        options.link_info = &info;
        options.link_info_len = sizeof info;
    }
    return bpf_program__attach_iter(iterators->skeleton->progs.look, &options);
}

/* From a link a process to one for everybody, when there are too many. */
static int use_everybody(struct tick_iterators *iterators)
{
    if (iterators->everybody == NULL)
        iterators->everybody = attach(iterators, 0);
    if (iterators->everybody == NULL)
        return -errno;
    for (size_t i = 0; i < iterators->processes.count; i++) {
        bpf_link__destroy(iterators->processes.items[i].link);
        iterators->processes.items[i].link = NULL;
    }
    iterators->skeleton->bss->check_process = true;
    return 0;
}

int tick_iterators_add(struct tick_iterators *iterators, pid_t pid)
{
    struct tick_process_link entry = {.pid = pid};

    if (iterators->everybody == NULL && iterators->processes.count < MAX_PROCESS_LINKS) {
        entry.link = attach(iterators, pid);
        if (entry.link == NULL)
            return errno == ESRCH ? 0 : -errno;
    }
    VEC_PUSH(&iterators->processes, entry);
    return iterators->everybody == NULL && entry.link == NULL ? use_everybody(iterators) : 0;
}

void tick_iterators_remove(struct tick_iterators *iterators, pid_t pid)
{
    for (size_t i = 0; i < iterators->processes.count; i++) {
        if (iterators->processes.items[i].pid != pid)
            continue;
        bpf_link__destroy(iterators->processes.items[i].link);
        iterators->processes.items[i] = iterators->processes.items[--iterators->processes.count];
        return;
    }
}

void tick_iterators_finish(struct tick_iterators *iterators)
{
    tick_iterators_end(iterators, iterators->count);
    for (size_t i = 0; i < iterators->processes.count; i++)
        bpf_link__destroy(iterators->processes.items[i].link);
    bpf_link__destroy(iterators->everybody);
    free(iterators->processes.items);
    *iterators = (struct tick_iterators){0};
}

static void begin_iterator(struct tick_iterators *iterators, const struct bpf_link *link)
{
    int fd = bpf_iter_create(bpf_link__fd(link));

    if (fd >= 0) /* else it is gone since: its exit tells */
        iterators->fds[iterators->count++] = fd;
}

/* From the second field from the end of "0.20 0.18 0.12 1/80 11206", proc(5); 0 = not known. */
static unsigned long count_all_threads(void)
{
    char text[128] = "";
    int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    unsigned long count = 0;

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) > 0 && strchr(text, '/') != NULL)
        count = strtoul(strchr(text, '/') + 1, NULL, 10);
    close(fd);
    return count;
}

/* An iterator over everybody finds a thread with fewer cache misses than one over a process does (8 ms a pass for 14,
 * with 10,000 threads on a busy machine): it is the better one where most threads are the target's. */
static void choose_iterators(struct tick_iterators *iterators)
{
    uint64_t threads = iterators->skeleton->bss->threads_seen;

    iterators->skeleton->bss->threads_seen = 0;
    if (iterators->everybody == NULL && threads >= MANY_THREADS && threads > count_all_threads() / 2)
        use_everybody(iterators);
}

void tick_iterators_begin(struct tick_iterators *iterators)
{
    choose_iterators(iterators);
    if (iterators->everybody != NULL)
        begin_iterator(iterators, iterators->everybody);
    else
        for (size_t i = 0; i < iterators->processes.count; i++)
            begin_iterator(iterators, iterators->processes.items[i].link);
}

#endif
