/* Ways to walk a user stack. A backend is a const struct; adding one is one file, one row in unwinders[], one
 * test.
 *
 *   const struct unwinder_backend *backend = unwinder_find("dwarf");
 *   struct unwinder *unwinder = backend->create(binaries);
 *   backend->walk(unwinder, &request, &stack);
 */
#ifndef STALLGRAPH_UNWIND_UNWINDER_H
#define STALLGRAPH_UNWIND_UNWINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/model/address_space.h"
#include "profiler/model/binary.h"
#include "profiler/model/raw_sample.h"

enum { UNWIND_MAX_FRAMES = 2048 };

/* What a backend wants in the sample. */
enum unwind_need {
    UNWIND_NEEDS_STACK_COPY = 1, /* user registers and a copy of the stack */
    UNWIND_NEEDS_USER_CHAIN = 2, /* the kernel's frame-pointer chain */
};

/* More of the target's memory than the sample holds, for a thread that is known not to run. May be NULL.
 * Returns 0, or -errno when the bytes cannot be had. */
typedef int (*unwind_read_memory)(void *context, uint64_t address, void *bytes, size_t size_bytes);

struct unwind_request {
    const struct raw_sample *sample;
    const struct address_space *space;
    unwind_read_memory read_memory;
    void *read_context;
};

enum unwind_end {
    UNWIND_REACHED_START, /* the thread's or the program's first function */
    UNWIND_NO_REGISTERS,  /* nothing to begin with: no frame at all */
    UNWIND_COPY_ENDED,    /* the stack copy is too short */
    UNWIND_NO_RULE,       /* no unwind information for an address, and no usable frame pointer */
    UNWIND_BAD_STACK,     /* the chain does not move upwards, or a read gave nonsense */
    UNWIND_TOO_DEEP,      /* UNWIND_MAX_FRAMES */
};

/* Leaf first. Addresses are look-up addresses: those of callers are their return addresses minus 1, except
 * above a signal frame, where the interrupted instruction itself is meant. */
struct unwound_stack {
    uint64_t addresses[UNWIND_MAX_FRAMES];
    size_t count;
    enum unwind_end end;
};

struct unwinder; /* a backend's own state */

struct unwinder_backend {
    const char *name;                                                /* as --call-graph spells it */
    unsigned needs;                                                  /* unwind_need bits */
    struct unwinder *(*create)(const struct binary_table *binaries); /* borrows binaries; NULL on failure */
    /* Always fills ret_stack; what it holds is right as far as it goes. */
    void (*walk)(struct unwinder *unwinder, const struct unwind_request *request,
                 struct unwound_stack *ret_stack);
    void (*destroy)(struct unwinder *unwinder); /* NULL allowed */
};

extern const struct unwinder_backend
    unwind_libunwind;                           /* "dwarf": CFI first, frame pointers where there is no CFI */
extern const struct unwinder_backend unwind_fp; /* "fp": the kernel's chain, from the sample */

/* All backends, NULL-terminated. */
extern const struct unwinder_backend *const unwinder_backends[];
const struct unwinder_backend *unwinder_find(const char *name); /* NULL when there is none of that name */

#endif
