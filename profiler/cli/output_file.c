#include "profiler/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/gzip_file.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"

static bool is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

static bool ends_in_gz(const char *path)
{
    size_t length = strlen(path);

    return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

/* Beside the goal, hidden, and told apart from other runs. */
static char *temporary_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t folder_length = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    AUTO_FREE char *folder = string_copy_length(path, folder_length);

    return string_format("%s.%s.%d.part", folder, path + folder_length, getpid());
}

static bool is_special(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

int output_file_check(const char *path, struct error *err)
{
    AUTO_FREE char *temporary = NULL;
    AUTO_CLOSE int fd = -1;
    struct stat st;

    if (is_stdout(path) || is_special(path))
        return 0;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        error_set(err, -EISDIR, "write %s", path);
        return error_hint(err, "give the name of a file with -o");
    }
    temporary = temporary_path(path);
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        error_set(err, -errno, "write %s", path);
        return error_hint(err, "give another place with -o");
    }
    unlink(temporary);
    return 0;
}

static int write_stream(FILE *plain, bool compress, int (*write)(void *context, FILE *out, struct error *err),
                        void *context, const char *path, struct error *err)
{
    FILE *packed;
    int r;

    if (!compress)
        return write(context, plain, err);
    packed = gzip_wrap(plain);
    if (packed == NULL)
        return error_set(err, -errno, "compress %s", path);
    r = write(context, packed, err);
    if (fclose(packed) != 0 && r == 0)
        r = error_set(err, -errno, "write %s", path);
    return r;
}

static int write_and_close(FILE *file, const char *path, bool packs_itself,
                           int (*write)(void *context, FILE *out, struct error *err), void *context,
                           struct error *err)
{
    int r = write_stream(file, ends_in_gz(path) && !packs_itself, write, context, path, err);

    if (fclose(file) != 0 && r == 0)
        r = error_set(err, -errno, "write %s", path);
    return r;
}

/* A second Ctrl-C ends the program at once: not while there is a file that nobody asked for. */
static void hold_signals(sigset_t *ret_before)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, ret_before);
}

static int write_and_rename(const char *path, bool packs_itself,
                            int (*write)(void *context, FILE *out, struct error *err), void *context,
                            struct error *err)
{
    AUTO_FREE char *temporary = temporary_path(path);
    FILE *file = fopen(temporary, "wxe");
    int r;

    if (file == NULL)
        return error_set(err, -errno, "write %s", path);
    r = write_and_close(file, path, packs_itself, write, context, err);
    if (r == 0 && rename(temporary, path) < 0)
        r = error_set(err, -errno, "write %s", path);
    if (r < 0)
        unlink(temporary);
    return r;
}

int output_file_write(const char *path, bool packs_itself,
                      int (*write)(void *context, FILE *out, struct error *err), void *context,
                      struct error *err)
{
    sigset_t before;
    FILE *file;
    int r;

    if (is_stdout(path)) {
        r = write_stream(stdout, false, write, context, "stdout", err);
        if (fflush(stdout) != 0 && r == 0)
            r = error_set(err, -errno, "write to stdout");
        return r;
    }
    if (is_special(path)) {
        file = fopen(path, "we");
        return file == NULL ? error_set(err, -errno, "write %s", path)
                            : write_and_close(file, path, packs_itself, write, context, err);
    }
    hold_signals(&before);
    r = write_and_rename(path, packs_itself, write, context, err);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}
