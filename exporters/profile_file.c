#include "exporters/profile_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "exporters/speedscope_read.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"

enum { PIECE_BYTES = 1 << 16 };

static int open_path(const char *path, gzFile *ret_packed, struct error *err)
{
    int fd =
        strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_set(err, -errno, "open %s", path);
    *ret_packed = gzdopen(fd, "rb"); /* reads what is not gzip as it is */
    if (*ret_packed == NULL) {
        close(fd);
        return error_set(err, -ENOMEM, "read %s", path);
    }
    return 0;
}

static int say_where(const char *path, int code, struct error *err)
{
    struct error inner = *err;

    return error_say(err, code, "%s: %.600s", path, inner.message);
}

static int feed_all(gzFile packed, const char *path, struct speedscope_file *file, struct error *err)
{
    AUTO_FREE char *piece = memory_zeroed(PIECE_BYTES, 1);
    uint64_t total = 0;
    int got;
    int r;

    while ((got = gzread(packed, piece, PIECE_BYTES)) > 0) {
        total += (uint64_t)got;
        if (total > PROFILE_FILE_MAX_BYTES)
            return error_set(err, -EFBIG, "read %s", path);
        r = speedscope_file_feed(file, piece, (size_t)got, err);
        if (r < 0)
            return say_where(path, r, err);
    }
    if (got < 0) {
        int code;
        const char *why = gzerror(packed, &code);

        return code == Z_ERRNO ? error_set(err, -errno, "read %s", path)
                               : error_say(err, -EBADMSG, "%s: %s", path, why);
    }
    if (total == 0)
        return error_say(err, -EBADMSG, "%s: it is empty", path);
    r = speedscope_file_end(file, err);
    return r < 0 ? say_where(path, r, err) : 0;
}

int profile_file_read(const char *path, struct profile **ret_profile, struct error *err)
{
    struct speedscope_file *file;
    gzFile packed = NULL;
    int r = open_path(path, &packed, err);

    if (r < 0)
        return r;
    file = speedscope_file_create();
    r = feed_all(packed, path, file, err);
    if (gzclose(packed) == Z_BUF_ERROR && r == 0) /* it told so only now that the last piece is missing */
        r = error_say(err, -EBADMSG, "%s: it ends in the middle", path);
    if (r == 0) {
        r = speedscope_read(file, path, ret_profile, err);
        if (r < 0)
            say_where(path, r, err);
    }
    speedscope_file_destroy(file);
    return r;
}
