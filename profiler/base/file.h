/* Files that belong to somebody else: bounded, never through a link that leads out, never blocking. */
#ifndef STALLGRAPH_BASE_FILE_H
#define STALLGRAPH_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "profiler/base/error.h"

/* Reads the whole file, at most limit_bytes of it (-EFBIG when it is longer); works for /proc files whose
 * size reads as 0. *ret_bytes is NUL-terminated, the caller frees it; *ret_size does not count the NUL. path
 * is relative to dir_fd, as in openat(2). Returns 0 or -errno. */
int file_read(int dir_fd, const char *path, size_t limit_bytes, char **ret_bytes, size_t *ret_size);

/* Reads at most size_bytes at offset, continuing over short reads. Returns how many (less only at the end),
 * or -errno. */
ssize_t file_read_at(int fd, void *bytes, size_t size_bytes, off_t offset);

/* Opens a regular file below root_fd (an O_PATH fd of a target's root directory) read-only, so that no link,
 * absolute or "..", leads out of it: openat2(2) with RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS. FIFOs, devices
 * and sockets are refused with -EINVAL, without blocking. Before Linux 5.6 the path is refused with -ENOSYS.
 * Returns an fd or -errno. */
int file_open_in_root(int root_fd, const char *path);

#endif
