#include "profiler/collect/proc_maps.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "profiler/base/scanner.h"

static const char deleted_mark[] = " (deleted)";

/* "r-xp" */
static bool take_permissions(struct scanner *in, bool *ret_executable)
{
    if (in->end - in->at < 4)
        return false;
    if ((in->at[0] != 'r' && in->at[0] != '-') || (in->at[1] != 'w' && in->at[1] != '-') ||
        (in->at[2] != 'x' && in->at[2] != '-') || (in->at[3] != 'p' && in->at[3] != 's'))
        return false;
    *ret_executable = in->at[2] == 'x';
    in->at += 4;
    return true;
}

/* "fe:00", in hexadecimal */
static bool take_device(struct scanner *in, uint64_t *ret_device)
{
    uint64_t major_number;
    uint64_t minor_number;

    if (!scanner_take_hex(in, &major_number) || !scanner_take_char(in, ':') ||
        !scanner_take_hex(in, &minor_number))
        return false;
    if (major_number > UINT32_MAX || minor_number > UINT32_MAX)
        return false;
    *ret_device = makedev((unsigned)major_number, (unsigned)minor_number);
    return true;
}

/* "7f0e4c028000-7f0e4c17d000 r-xp 00028000 fe:00 1835103" */
static bool take_numbers(struct scanner *in, struct proc_maps_line *line)
{
    return scanner_take_hex(in, &line->start) && scanner_take_char(in, '-') &&
           scanner_take_hex(in, &line->end) && line->start < line->end && scanner_take_char(in, ' ') &&
           take_permissions(in, &line->executable) && scanner_take_char(in, ' ') &&
           scanner_take_hex(in, &line->file_offset) && scanner_take_char(in, ' ') &&
           take_device(in, &line->device) && scanner_take_char(in, ' ') &&
           scanner_take_decimal(in, &line->inode);
}

/* What follows the inode: nothing, or spaces and a path. */
static bool take_path(struct scanner *in, struct proc_maps_line *line)
{
    const size_t mark_length = sizeof deleted_mark - 1;
    const char *after_inode = in->at;

    scanner_skip_spaces(in);
    line->path = in->at;
    line->path_length = (size_t)(in->end - in->at);
    if (line->path_length == 0)
        return true;
    if (in->at == after_inode || memchr(line->path, '\0', line->path_length) != NULL)
        return false;
    if (line->path_length > mark_length && memcmp(in->end - mark_length, deleted_mark, mark_length) == 0) {
        line->path_length -= mark_length;
        line->deleted = true;
    }
    return true;
}

long proc_maps_parse_line(const char *text, size_t length, struct proc_maps_line *ret_line)
{
    struct proc_maps_line line = {0};
    const char *newline;
    struct scanner in;

    if (length == 0)
        return 0;
    if (length > LONG_MAX)
        return -EBADMSG;
    newline = memchr(text, '\n', length);
    in = (struct scanner){.at = text, .end = newline != NULL ? newline : text + length};
    if (!take_numbers(&in, &line) || !take_path(&in, &line))
        return -EBADMSG;
    *ret_line = line;
    return (long)(in.end - text) + (newline != NULL ? 1 : 0);
}
