#include "profiler/wait/fd_link.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/base/scanner.h"

static const struct {
    const char *name; /* as it stands in brackets, or without them */
    enum fd_kind kind;
} anonymous[] = {
    {"eventpoll", FD_KIND_EPOLL},   {"eventfd", FD_KIND_EVENTFD}, {"timerfd", FD_KIND_TIMERFD},
    {"signalfd", FD_KIND_SIGNALFD}, {"inotify", FD_KIND_INOTIFY}, {"fanotify", FD_KIND_INOTIFY},
    {"io_uring", FD_KIND_IO_URING},
};

/* The end of a long path tells more than its beginning. */
static void keep_path(const char *text, size_t length, struct fd_link *link)
{
    size_t room = sizeof link->path - 1;
    size_t skip = length > room ? length - room : 0;

    length -= skip;
    memcpy(link->path, text + skip, length);
    link->path[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)link->path[i] < ' ' || link->path[i] == 0x7f)
            link->path[i] = '?';
    if (skip > 0)
        memcpy(link->path, "...", 3);
}

static void parse_anonymous(const char *text, size_t length, struct fd_link *link)
{
    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    link->kind = FD_KIND_ANON;
    for (size_t i = 0; i < sizeof anonymous / sizeof anonymous[0]; i++)
        if (strlen(anonymous[i].name) == length && memcmp(anonymous[i].name, text, length) == 0)
            link->kind = anonymous[i].kind;
    keep_path(text, length, link);
}

static bool parse_inode(struct scanner in, const char *prefix, uint64_t *ret_inode)
{
    uint64_t inode;

    if (!scanner_take_text(&in, prefix) || !scanner_take_decimal(&in, &inode) ||
        !scanner_take_char(&in, ']') || in.at != in.end)
        return false;
    *ret_inode = inode;
    return true;
}

void fd_link_parse(const char *text, size_t length, struct fd_link *ret_link)
{
    struct scanner in = {.at = text, .end = text + length};

    *ret_link = (struct fd_link){.kind = FD_KIND_UNKNOWN};
    if (parse_inode(in, "socket:[", &ret_link->inode)) {
        ret_link->kind = FD_KIND_SOCKET;
    } else if (parse_inode(in, "pipe:[", &ret_link->inode)) {
        ret_link->kind = FD_KIND_PIPE;
    } else if (scanner_take_text(&in, "anon_inode:")) {
        parse_anonymous(in.at, (size_t)(in.end - in.at), ret_link);
    } else if (length > 0 && text[0] == '/') {
        ret_link->kind = FD_KIND_PATH;
        keep_path(text, length, ret_link);
    }
}

int fd_link_read(int proc_fd, int fd, struct fd_link *ret_link)
{
    char path[32];
    char text[PATH_MAX];
    ssize_t length;

    snprintf(path, sizeof path, "fd/%d", fd);
    length = readlinkat(proc_fd, path, text, sizeof text);
    if (length < 0)
        return -errno;
    fd_link_parse(text, (size_t)length, ret_link);
    return 0;
}
