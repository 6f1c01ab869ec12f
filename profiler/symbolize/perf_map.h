/* Names of JIT-compiled code from /tmp/perf-PID.map files (tools/perf/Documentation/jit-interface.txt in the
 * Linux source): lines "START SIZE NAME", hexadecimal with or without 0x.
 *
 *   struct perf_map *map = perf_map_create();
 *   perf_map_read(map, fd);                   // again, later: what is read later wins
 *   const char *name = perf_map_find(map, pc);
 *
 * Where lines overlap the latest wins, except that a .NET stub block never beats a method. */
#ifndef STALLGRAPH_SYMBOLIZE_PERF_MAP_H
#define STALLGRAPH_SYMBOLIZE_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_map_line {
    uint64_t start;
    uint64_t end;     /* > start: a size of 0 is taken as 1 */
    const char *name; /* the rest of the line, any bytes; not NUL-terminated */
    size_t name_length;
    bool is_stub;
};

/* A line without its line end. Returns false for one that is no such line. name points into it. */
bool perf_map_parse_line(const char *line, size_t length_bytes, struct perf_map_line *ret_line);

struct perf_map;

struct perf_map *perf_map_create(void);
void perf_map_destroy(struct perf_map *map); /* NULL allowed */

/* Reads the file from its beginning, at most 256 MiB, however it changes meanwhile. Returns 0; 1 where the
 * file holds more than is taken (1 million ranges, 64 MiB of names); -errno: -EINVAL for what is no regular
 * file. fd stays the caller's. */
int perf_map_read(struct perf_map *map, int fd);

/* NULL where no line holds the address. Valid until the next read. map may be NULL. */
const char *perf_map_find(const struct perf_map *map, uint64_t address);
size_t perf_map_count(const struct perf_map *map); /* ranges */

#endif
