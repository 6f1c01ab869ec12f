/* How code that names waits reads memory of the target: through a function that its caller gives, since such
 * a read can hang for ever (userfaultfd, FUSE) and must be one that can be given up. */
#ifndef STALLGRAPH_WAIT_TARGET_MEMORY_H
#define STALLGRAPH_WAIT_TARGET_MEMORY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

struct target_memory {
    void *context;
    /* All of the bytes at the address of the process that is asked about: 0, or -errno. */
    int (*read)(void *context, uint64_t address, void *ret_bytes, size_t size_bytes);
};

/* -EFAULT where there is no memory to read. memory may be NULL. */
static inline int target_memory_read(const struct target_memory *memory, uint64_t address, void *ret_bytes,
                                     size_t size_bytes)
{
    if (memory == NULL || memory->read == NULL || address == 0)
        return -EFAULT;
    return memory->read(memory->context, address, ret_bytes, size_bytes);
}

#endif
