/* Names what a blocked thread waits for, from its system call, the call's arguments and the descriptors,
 * sockets and futexes that they lead to.
 *
 *   struct wait_namer *namer = wait_namer_create();
 *   wait_namer_name(namer, &question, &answer);          // "[wait: tcp 10.0.0.5:5432<mark>]"
 *   ...
 *   wait_namer_settle(namer);
 *   wait_namer_finish_text(namer, answer.text, text, sizeof text);      // "[wait: tcp 10.0.0.5:5432
 * postgresql]"
 *
 * The service at the far end is looked for beside the sampling; until then a text carries a mark in its
 * place: control bytes, which no name from the target can hold.
 *
 * A call takes 5 to 10 us for a descriptor that was seen before, 50 to 200 us for one that was not. It never
 * reads memory of the target but by the function that it is given. */
#ifndef STALLGRAPH_WAIT_WAIT_NAMER_H
#define STALLGRAPH_WAIT_WAIT_NAMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/model/wait_role.h"
#include "profiler/wait/target_memory.h"
#include "profiler/wait/wait_name.h"

struct wait_question {
    uint32_t process; /* a number of the caller's: small, and never used for another process */
    pid_t pid, tid;
    int pid_fd;      /* -1 = none */
    int64_t syscall; /* -1 = none: a page fault */
    uint64_t arguments[6];
    bool uninterruptible;               /* state D */
    const struct target_memory *memory; /* may be NULL */
    /* The name of a variable at an address of the process: false where there is none. May be NULL. */
    bool (*name_address)(void *context, uint64_t address, char *ret_name, size_t size);
    void *name_context;
};

struct wait_answer {
    enum wait_kind kind;
    enum wait_role role;
    char text[WAIT_TEXT_BYTES];
    uint64_t lock_address; /* WAIT_ROLE_LOCK; 0 = not known */
    pid_t lock_owner;      /* thread number in the target's own pid namespace; 0 = not known */
};

struct wait_namer;

struct wait_namer *wait_namer_create(void);
void wait_namer_destroy(struct wait_namer *namer); /* NULL allowed */

void wait_namer_name(struct wait_namer *namer, const struct wait_question *question,
                     struct wait_answer *ret_answer);

/* Lets go of what is held of a process that has ended. */
void wait_namer_forget(struct wait_namer *namer, uint32_t process);

/* Waits a moment for the services that are still looked for. */
void wait_namer_settle(struct wait_namer *namer);

/* Puts the service where the mark is. */
void wait_namer_finish_text(struct wait_namer *namer, const char *text, char *ret_text, size_t size);

#endif
