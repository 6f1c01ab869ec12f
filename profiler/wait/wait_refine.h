/* Names a futex wait, or a database server's wait for a lock, by the functions that lead to it, which are known only after sampling: a condition from
 * a mutex, a managed runtime's task, and a lock that has no name of its own by the function that takes it.
 * Pure.
 *
 *   leaf first: "__futex_abstimed_wait_common64", "pthread_mutex_lock", "cache_get", "worker_main"
 *   "[wait: lock]" -> "[wait: lock cache_get]" */
#ifndef STALLGRAPH_WAIT_WAIT_REFINE_H
#define STALLGRAPH_WAIT_WAIT_REFINE_H

#include <stdbool.h>
#include <stddef.h>

struct wait_function {
    const char *name;
    const char *module; /* base name of its file, "[jit]", "" */
};

/* Texts of other waits are copied as they are. frames: the user's, leaf first. */
void wait_refine(const char *text, const struct wait_function *frames, size_t count, char *ret_text,
                 size_t size);

/* Code of the C library, of the C++ or Go or Rust runtime, that stands between a program and the kernel. */
bool wait_function_is_library(const struct wait_function *function);

#endif
