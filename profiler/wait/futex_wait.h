/* What a thread that is blocked in futex(2) waits for, told from the call's operation and value, and for
 * mutexes from glibc's layout where it can be verified in the target's memory. Seen with glibc 2.36:
 *
 *   mutex 0x80 or 0x189, val 2, owner's tid at +8, kind at +16    priority-inheriting 0x86, robust val = tid
 * | bit 31 condition, semaphore 0x189 val 0    pthread_join 0x109 val = the tid    rwlock 0x189 val 3 barrier
 * 0x80 val 0
 *
 * Other libraries use other values: what is not known is a lock, until the functions above tell better. */
#ifndef STALLGRAPH_WAIT_FUTEX_WAIT_H
#define STALLGRAPH_WAIT_FUTEX_WAIT_H

#include <stdint.h>
#include <sys/types.h>

#include "profiler/wait/target_memory.h"

enum futex_wait_kind {
    FUTEX_WAIT_LOCK,
    FUTEX_WAIT_CONDITION, /* or a semaphore, or a barrier */
    FUTEX_WAIT_JOIN,
};

struct futex_wait {
    enum futex_wait_kind kind;
    uint64_t lock_address; /* of the lock itself, which need not be that of the futex word; 0 = none */
    pid_t owner;           /* a number of the target's own pid namespace; 0 = not known */
};

/* memory may be NULL. */
void futex_wait_read(const uint64_t arguments[6], const struct target_memory *memory,
                     struct futex_wait *ret_wait);

#endif
