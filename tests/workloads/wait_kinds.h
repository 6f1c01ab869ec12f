/* What the programs share that start one thread for each kind of wait, each for ever in one place. They print what each
 * of them waits for, and whether that is idle: {"threads": 2}, then so many lines
 * {"tid": 1, "name": "naps", "kind": "sleep", "wait": "[wait: sleep]", "idle": true}. A wait text that ends in "*" is a
 * beginning. */
#ifndef STALLGRAPH_WORKLOADS_WAIT_KINDS_H
#define STALLGRAPH_WORKLOADS_WAIT_KINDS_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "truth.h"

struct waiter {
    const char *name, *kind;
    void (*run)(void *);
    char wait[160];
    bool idle;
    pid_t tid;
};

enum { MAX_WAITERS = 64 };

static struct waiter waiters[MAX_WAITERS];
static int waiter_count;
static const char *kind_now; /* of those that are added next */

static inline void fail(const char *what)
{
    perror(what);
    exit(1);
}

static inline int checked(int r, const char *what)
{
    if (r < 0)
        fail(what);
    return r;
}

/* For ever: enough of it for the records of signalfds and inotify. */
static inline __attribute__((always_inline)) void read_some(int fd)
{
    char bytes[4096];

    if (read(fd, bytes, sizeof bytes) < 0)
        fail("read");
    NO_TAIL_CALL();
}

__attribute__((format(printf, 4, 5))) static inline void add(const char *name, void (*run)(void *), bool idle,
                                                             const char *wait, ...)
{
    struct waiter *waiter = &waiters[waiter_count++];
    va_list arguments;

    *waiter = (struct waiter){.name = name, .kind = kind_now, .run = run, .idle = idle};
    va_start(arguments, wait);
    vsnprintf(waiter->wait, sizeof waiter->wait, wait, arguments);
    va_end(arguments);
}

/* Starts them all, tells, and returns when a line comes in. */
static inline void run_waiters(void)
{
    for (int i = 0; i < waiter_count; i++) {
        truth_thread(waiters[i].name, waiters[i].run, NULL, &waiters[i].tid);
        truth_sleep_ms(5); /* so that they do not accept each other's connections */
    }
    truth_sleep_ms(200);
    truth_line("{\"threads\": %d}", waiter_count);
    for (int i = 0; i < waiter_count; i++)
        truth_line("{\"tid\": %d, \"name\": \"%s\", \"kind\": \"%s\", \"wait\": \"%s\", \"idle\": %s}",
                   waiters[i].tid, waiters[i].name, waiters[i].kind, waiters[i].wait,
                   waiters[i].idle ? "true" : "false");
    truth_wait_for_line();
}

#endif
