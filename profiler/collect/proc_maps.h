/* /proc/PID/maps: proc(5). Pure parser; a line:
 *   7f0e4c028000-7f0e4c17d000 r-xp 00028000 fe:00 1835103 /usr/lib/x86_64-linux-gnu/libc.so.6 */
#ifndef STALLGRAPH_COLLECT_PROC_MAPS_H
#define STALLGRAPH_COLLECT_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proc_maps_line {
    uint64_t start, end, file_offset;
    bool executable;
    uint64_t device; /* makedev(major, minor) */
    uint64_t inode;
    const char *path; /* not NUL-terminated; points into the text; the kernel's octal escapes (\012) are left
                         as they are */
    size_t path_length;
    bool deleted; /* " (deleted)" stood behind the path and is not part of it */
};

/* Parses the line that begins at text. Returns its length with the newline (which the last may lack), or
 * -EBADMSG for a line that is none, or 0 at the end. */
long proc_maps_parse_line(const char *text, size_t length, struct proc_maps_line *ret_line);

#endif
