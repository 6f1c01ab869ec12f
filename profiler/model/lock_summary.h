/* For each lock that was waited for, what its holders did meanwhile: "cache_mu was waited for 44 s, of these 41 s while its
 * holder waited for postgresql in refresh_cache". Pure. */
#ifndef STALLGRAPH_MODEL_LOCK_SUMMARY_H
#define STALLGRAPH_MODEL_LOCK_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/model/profile.h"
#include "profiler/model/stack_roles.h"

struct lock_summary {
    uint32_t frame;      /* the wait frame */
    uint64_t waited_ns;  /* by all who waited, while the holder was looked for */
    uint64_t unknown_ns; /* part of it: who held it, or what that thread did, is not known */
    uint64_t owner_ns;   /* part of it: while the holder did what follows, which it did for longest */
    enum thread_state owner_state; /* matters where owner_ns > 0 */
    uint32_t owner_leaf;     /* frame: what it waited for, or where it ran; STACK_ROLE_NONE = not known */
    uint32_t owner_function; /* frame, or STACK_ROLE_NONE */
    uint32_t owner;          /* thread: one of those */
};

/* The longest waited for first. The caller frees. */
struct lock_summary *lock_summary_list(const struct profile *profile, const struct stack_role *roles,
                                       size_t *ret_count);

#endif
