#include "profiler/collect/process_memory.h"

#include <errno.h>
#include <sys/uio.h>

enum { PAGE_BYTES = 4096 };

ssize_t process_memory_read(pid_t pid, uint64_t address, uint8_t *bytes, size_t size_bytes)
{
    struct iovec local = {.iov_base = bytes, .iov_len = size_bytes};
    struct iovec remote[PROCESS_MEMORY_MAX_BYTES / PAGE_BYTES + 1];
    unsigned long pages = 0;
    ssize_t got;

    if (size_bytes > PROCESS_MEMORY_MAX_BYTES)
        return -EINVAL;
    /* A transfer is whole up to the first range that fails: so each page is a range of its own. */
    for (size_t done = 0; done < size_bytes; pages++) {
        size_t step = PAGE_BYTES - (address + done) % PAGE_BYTES;

        if (step > size_bytes - done)
            step = size_bytes - done;
        remote[pages] = (struct iovec){.iov_base = (void *)(uintptr_t)(address + done), .iov_len = step};
        done += step;
    }
    got = process_vm_readv(pid, &local, 1, remote, pages, 0);
    return got < 0 ? -errno : got;
}
