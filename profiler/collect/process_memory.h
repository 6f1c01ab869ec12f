/* Memory of another process, by process_vm_readv(2). It may hang for ever (userfaultfd, FUSE): only where that can be
 * given up. */
#ifndef STALLGRAPH_COLLECT_PROCESS_MEMORY_H
#define STALLGRAPH_COLLECT_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_MEMORY_MAX_BYTES = 64 * 1024 };

/* As far as it is mapped from address upwards, in whole pages but for the ends; at most PROCESS_MEMORY_MAX_BYTES.
 * Returns how much that was, or -errno when nothing could be had: -EPERM (no ptrace rights), -EFAULT, -ESRCH. */
ssize_t process_memory_read(pid_t pid, uint64_t address, uint8_t *bytes, size_t size_bytes);

#endif
