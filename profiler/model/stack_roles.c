#include "profiler/model/stack_roles.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/model/library_code.h"

enum code { CODE_NONE, CODE_LIBRARY, CODE_OWN };

static enum code code_of(const struct profile *profile, const struct frame *frame)
{
    const char *name = string_table_get(profile->strings, frame->name);
    const char *module = string_table_get(profile->strings, frame->module);

    if (frame->kind != FRAME_USER)
        return CODE_NONE;
    return library_code_is_library(name, module) ? CODE_LIBRARY : CODE_OWN;
}

/* The first frame of a stack that was not walked to its start says so. */
static bool is_cut(const struct profile *profile, const struct frame *frame)
{
    return frame->kind == FRAME_SYNTHETIC &&
           strcmp(string_table_get(profile->strings, frame->name), "[truncated]") == 0;
}

struct stack_role *stack_roles_create(const struct profile *profile)
{
    uint32_t count = stack_table_count(profile->stacks);
    struct stack_role *roles = memory_zeroed(count, sizeof *roles);
    AUTO_FREE bool *own = memory_zeroed(count, sizeof *own); /* role.function is the program's own */
    AUTO_FREE bool *cut = memory_zeroed(count, sizeof *cut);

    roles[STACK_EMPTY] = (struct stack_role){STACK_ROLE_NONE, STACK_ROLE_NONE, STACK_ROLE_NONE};
    for (uint32_t s = 1; s < count; s++) { /* parent < child */
        struct stack_node node = stack_table_get(profile->stacks, s);
        const struct frame *frame = &profile->frames[node.frame];
        enum code code = code_of(profile, frame);

        roles[s] = roles[node.parent];
        own[s] = own[node.parent];
        cut[s] = cut[node.parent] || is_cut(profile, frame);
        roles[s].leaf = node.frame;
        if (code == CODE_OWN) {
            roles[s].function = node.frame;
            own[s] = true;
            if (roles[s].start == STACK_ROLE_NONE && !cut[s])
                roles[s].start = node.frame;
        } else if (code == CODE_LIBRARY && !own[s]) {
            roles[s].function = node.frame;
        }
    }
    return roles;
}
