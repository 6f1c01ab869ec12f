/* A process of our own that reads iterators into shared memory: a read of the target's memory can hang for
 * ever (userfaultfd, FUSE), and a process can be given up where a thread could not.
 *
 *   tick_reader_start(&reader, 4 << 20, &err);
 *   r = tick_reader_read(&reader, iterator_fd, offset, timeout_ms);   // bytes now at reader.bytes + offset
 *   if (r == -ETIMEDOUT) tick_reader_restart(&reader, &err);
 */
#ifndef STALLGRAPH_COLLECT_TICK_READER_H
#define STALLGRAPH_COLLECT_TICK_READER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/base/error.h"

struct tick_reader {
    uint8_t *bytes; /* shared with the process */
    size_t capacity_bytes;
    pid_t pid; /* 0 = none */
    int request_fd;
    int reply_fd;
    int child_request_fd, child_reply_fd; /* the process's ends */
    uint64_t ended_cpu_ns;                /* of processes that were given up */
};

int tick_reader_start(struct tick_reader *reader, size_t capacity_bytes, struct error *err);
/* Ends the process, wherever it hangs, and starts another. */
int tick_reader_restart(struct tick_reader *reader, struct error *err);
void tick_reader_stop(struct tick_reader *reader); /* zeroed allowed */

/* Reads once from fd (of our own table: the process shares it) to bytes + offset. Returns what read(2) did,
 * -errno, or -ETIMEDOUT: then the process hangs and must be restarted. */
ssize_t tick_reader_read(struct tick_reader *reader, int fd, size_t offset, int timeout_ms);

/* CPU time of the processes so far. */
uint64_t tick_reader_cpu_ns(const struct tick_reader *reader);

#endif
