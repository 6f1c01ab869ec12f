/* For each stack of a profile: where its thread began, and which function of the program's own waits or runs at its
 * end. What libraries lie between, nobody wants to read in a summary.
 *
 *   clone3; start_thread; worker_main; handle_time; query_database; PQexec; poll; [wait: tcp ...]
 *                         ^ start                   ^ function
 */
#ifndef STALLGRAPH_MODEL_STACK_ROLES_H
#define STALLGRAPH_MODEL_STACK_ROLES_H

#include <stdint.h>

#include "profiler/model/profile.h"

enum { STACK_ROLE_NONE = UINT32_MAX };

struct stack_role {
    uint32_t start;    /* frame; STACK_ROLE_NONE: the stack does not reach its start */
    uint32_t function; /* frame: the program's own nearest to the leaf, else any user code nearest to it */
    uint32_t leaf;     /* frame; STACK_ROLE_NONE for STACK_EMPTY */
};

/* By stack id. The caller frees. */
struct stack_role *stack_roles_create(const struct profile *profile);

#endif
