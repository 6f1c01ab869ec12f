#include "profiler/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"

enum { READ_CHUNK_BYTES = 16384 };

int file_read(int dir_fd, const char *path, size_t limit_bytes, char **ret_bytes, size_t *ret_size)
{
    AUTO_CLOSE int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    AUTO_FREE char *bytes = NULL;
    size_t size = 0;
    size_t capacity = 0;

    if (fd < 0)
        return -errno;
    for (;;) {
        ssize_t got;

        if (capacity - size < READ_CHUNK_BYTES) {
            capacity = capacity * 2 + READ_CHUNK_BYTES;
            bytes = memory_resize(bytes, capacity + 1, 1);
        }
        got = read(fd, bytes + size, capacity - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        size += (size_t)got;
        if (size > limit_bytes)
            return -EFBIG;
    }
    bytes[size] = '\0';
    *ret_bytes = bytes;
    *ret_size = size;
    bytes = NULL;
    return 0;
}

ssize_t file_read_at(int fd, void *bytes, size_t size_bytes, off_t offset)
{
    size_t done = 0;

    while (done < size_bytes) {
        ssize_t got = pread(fd, (char *)bytes + done, size_bytes - done, offset + (off_t)done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int file_open_in_root(int root_fd, const char *path)
{
    /* O_PATH first: opening a device or a FIFO for real may already do something. */
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    AUTO_CLOSE int path_fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    char self_path[32];
    struct stat st;
    int fd;

    if (path_fd < 0)
        return -errno;
    if (fstat(path_fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    snprintf(self_path, sizeof self_path, "/proc/self/fd/%d", path_fd);
    fd = open(self_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : fd;
}
