/* Which threads of a profile belong together: those of one program that began in one function and whose names differ
 * only in digits, main threads apart (those of several processes of one program together). */
#ifndef STALLGRAPH_MODEL_POOL_FINDER_H
#define STALLGRAPH_MODEL_POOL_FINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/model/profile.h"
#include "profiler/model/stack_roles.h"

struct thread_pool {
    uint32_t process; /* string id of the profile */
    uint32_t start;   /* frame, or STACK_ROLE_NONE: no stack of its threads reaches it */
    bool is_main;
    char *name; /* "worker-*"; of main threads that of the program; owned */
};

struct pool_finder {
    struct thread_pool *items;
    size_t count;
    size_t capacity;
    uint32_t *pool_of_thread; /* by thread of the profile */
};

/* What was in the finder is overwritten. */
void pool_finder_init(struct pool_finder *finder, const struct profile *profile,
                      const struct stack_role *roles);
void pool_finder_finish(struct pool_finder *finder);

#endif
