#include "profiler/wait/proc_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/scanner.h"

/* A word of an address has eight digits, whatever its value; the scanner takes all digits there are. */
static bool take_word(struct scanner *in, uint32_t *ret_word)
{
    struct scanner word = {.at = in->at, .end = in->at + 8};
    uint64_t value;

    if (in->end - in->at < 8 || !scanner_take_hex(&word, &value) || word.at != word.end)
        return false;
    in->at += 8;
    *ret_word = (uint32_t)value;
    return true;
}

static bool take_address(struct scanner *in, struct socket_address *ret_address)
{
    uint32_t words[4];
    size_t count = 0;
    uint64_t port;

    while (count < 4 && take_word(in, &words[count]))
        count++;
    if ((count != 1 && count != 4) || !scanner_take_char(in, ':') || !scanner_take_hex(in, &port) ||
        port > UINT16_MAX)
        return false;
    socket_address_from_ip(words, count * sizeof words[0], (uint16_t)port, ret_address);
    return true;
}

static bool skip_fields(struct scanner *in, int count)
{
    for (int i = 0; i < count; i++) {
        const char *before;

        scanner_skip_spaces(in);
        before = in->at;
        while (in->at < in->end && *in->at != ' ' && *in->at != '\n')
            in->at++;
        if (in->at == before)
            return false;
    }
    scanner_skip_spaces(in);
    return true;
}

int proc_net_parse_line(const char *line, size_t length, struct proc_net_socket *ret_socket)
{
    struct scanner in = {.at = line, .end = line + length};
    struct proc_net_socket parsed = {0};
    uint64_t number;
    uint64_t state;

    scanner_skip_spaces(&in);
    if (!scanner_take_decimal(&in, &number) || !scanner_take_char(&in, ':'))
        return -EBADMSG;
    scanner_skip_spaces(&in);
    if (!take_address(&in, &parsed.local))
        return -EBADMSG;
    scanner_skip_spaces(&in);
    if (!take_address(&in, &parsed.remote))
        return -EBADMSG;
    scanner_skip_spaces(&in);
    if (!scanner_take_hex(&in, &state) || state > UINT8_MAX || !skip_fields(&in, 5) ||
        !scanner_take_decimal(&in, &parsed.inode))
        return -EBADMSG;
    parsed.state = (unsigned)state;
    *ret_socket = parsed;
    return 0;
}

/* Gives all whole lines of the text to visit; *ret_used is how much of it they are. */
static int visit_lines(const char *text, size_t size, proc_net_visit *visit, void *context, size_t *ret_used)
{
    size_t used = 0;
    int r = 0;

    while (r == 0 && used < size) {
        const char *end = memchr(text + used, '\n', size - used);
        struct proc_net_socket socket;

        if (end == NULL)
            break;
        if (proc_net_parse_line(text + used, (size_t)(end - text) - used, &socket) == 0)
            r = visit(context, &socket);
        used = (size_t)(end - text) + 1;
    }
    *ret_used = used;
    return r;
}

int proc_net_walk(int proc_fd, const char *table, size_t limit_bytes, proc_net_visit *visit, void *context)
{
    AUTO_CLOSE int fd = -1;
    char path[32];
    char text[8192];
    size_t kept = 0;
    size_t total = 0;

    snprintf(path, sizeof path, "net/%s", table);
    fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (total < limit_bytes) {
        ssize_t got = read(fd, text + kept, sizeof text - kept);
        size_t used;
        int r;

        if (got < 0)
            return -errno;
        if (got == 0)
            return 0;
        total += (size_t)got;
        r = visit_lines(text, kept + (size_t)got, visit, context, &used);
        if (r != 0)
            return r;
        kept = kept + (size_t)got - used;
        if (kept == sizeof text) /* no such line exists */
            return -EBADMSG;
        memmove(text, text + used, kept);
    }
    return 0;
}
