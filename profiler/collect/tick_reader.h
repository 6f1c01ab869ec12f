/* A process of our own that reads iterators, and memory of the target, into shared memory: a read of the
 * target's memory can hang for ever (userfaultfd, FUSE), and a process can be given up where a thread could
 * not.
 *
 *   tick_reader_start(&reader, 4 << 20, &err);
 *   tick_reader_begin(&reader, iterator_fds, count);    // returns at once
 *   ...
 *   r = tick_reader_end(&reader, timeout_ms, &answer);  // bytes now at reader.bytes
 *   r = tick_reader_read_memory(&reader, &(struct tick_memory){pid, sp, 16384}, offset, timeout_ms);
 *   if (r == -ETIMEDOUT) tick_reader_restart(&reader, &err);
 */
#ifndef STALLGRAPH_COLLECT_TICK_READER_H
#define STALLGRAPH_COLLECT_TICK_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/base/error.h"
#include "profiler/collect/process_memory.h"
#include "profiler/collect/thread_look.h"

/* How far the process is; where it hangs, that is in the descriptor behind those that are done. */
struct tick_answer {
    size_t filled_bytes;
    size_t done; /* descriptors that were read to their end */
};

struct tick_reader {
    uint8_t *bytes; /* shared with the process */
    size_t capacity_bytes;
    volatile struct tick_answer *progress; /* shared too: it tells how far a process came that hangs */
    struct thread_look *look;              /* shared too */
    bool asked;                            /* begun, and not ended */
    pid_t pid;                             /* 0 = none */
    int request_fd;
    int reply_fd;
    int child_request_fd, child_reply_fd; /* the process's ends */
    uint64_t ended_cpu_ns;                /* of processes that were given up */
};

int tick_reader_start(struct tick_reader *reader, size_t capacity_bytes, struct error *err);
/* Ends the process, wherever it hangs, and starts another. */
int tick_reader_restart(struct tick_reader *reader, struct error *err);
void tick_reader_stop(struct tick_reader *reader); /* zeroed allowed */

/* Most descriptors in one question, and the room that one read wants: a seq file gives out 32 KiB at most, or one
 * larger record. */
enum { TICK_READER_FDS = 32, TICK_READER_ROOM_BYTES = 64 * 1024 };

/* Asks for all that the descriptors give (they are of our own table: the process shares it), one after the other, each
 * to its end or first error, at bytes from 0 on. One question for all, and no waiting here: each answer that is waited
 * for costs both sides a switch, which is dearer than looking at a dozen threads. Returns 0 or -errno. */
int tick_reader_begin(struct tick_reader *reader, const int *fds, size_t count);

/* The same with a BPF program that is run once; it tells in its own maps what it found. tick_reader_end gives its errors
 * too. */
int tick_reader_begin_program(struct tick_reader *reader, int program_fd);

/* Waits for that. Where not all descriptors are done there was no room: ask again for the others. Returns 0, or
 * -ETIMEDOUT or -EPIPE: then the process hangs or is gone, the answer says how far it came, and it must be restarted.
 */
int tick_reader_end(struct tick_reader *reader, int timeout_ms, struct tick_answer *ret_answer);

/* Most that can be read of a process's memory at once. */
enum { TICK_READER_MEMORY_BYTES = PROCESS_MEMORY_MAX_BYTES };

struct tick_memory {
    pid_t pid;
    uint64_t address;
    size_t size_bytes;
};

/* Copies memory of another process to bytes + offset, as far as it is mapped from its address upwards (whole
 * pages but for the ends). Returns how much that was, -errno when nothing could be had (-EPERM: not without
 * ptrace rights; -EFAULT; -ESRCH), or -ETIMEDOUT as above. Not between begin and end. */
ssize_t tick_reader_read_memory(struct tick_reader *reader, const struct tick_memory *memory, size_t offset,
                                int timeout_ms);

/* Has the process take a look at a thread, its stack to bytes + offset: it is not switched away from meanwhile to tell us
 * something, and may hang in the thread's memory. Returns 0, -EINVAL, or -ETIMEDOUT or -EPIPE as above. Not between
 * begin and end. */
int tick_reader_look(struct tick_reader *reader, const struct thread_look_request *request, size_t offset,
                     int timeout_ms, struct thread_look *ret_look);

/* CPU time of the processes so far. */
uint64_t tick_reader_cpu_ns(const struct tick_reader *reader);

#endif
