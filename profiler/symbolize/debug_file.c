#include "profiler/symbolize/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"
#include "profiler/base/memory.h"

enum { CRC_CHUNK_BYTES = 256 * 1024, TARGETS_MAX = 4 };
#define CRC_FILE_MAX_BYTES (UINT64_C(2) << 30)

struct search {
    const struct symbolizer_context *context;
    const struct binary *binary;
    uint32_t targets[TARGETS_MAX]; /* processes in whose root it may lie */
    size_t target_count;
};

static bool maps_binary(const struct process *process, uint32_t binary)
{
    for (size_t i = 0; i < process->space.count; i++)
        if (process->space.mappings[i].binary == binary)
            return true;
    return false;
}

/* Processes may have ended, so several are tried; those that have the binary mapped come first. */
static void find_targets(struct search *search)
{
    const struct process_table *processes = search->context->processes;
    uint32_t count = processes != NULL ? process_table_process_count(processes) : 0;

    if (search->context->open_in_target == NULL)
        return;
    for (int wanted = 1; wanted >= 0; wanted--)
        for (uint32_t id = 0; id < count && search->target_count < TARGETS_MAX; id++)
            if (maps_binary(process_table_process(processes, id), search->binary->id) == (wanted == 1))
                search->targets[search->target_count++] = id;
}

static bool crc_matches(int fd, uint32_t crc)
{
    AUTO_FREE uint8_t *chunk = memory_resize(NULL, CRC_CHUNK_BYTES, 1);
    uLong sum = crc32(0, NULL, 0);

    for (uint64_t at = 0; at < CRC_FILE_MAX_BYTES; at += CRC_CHUNK_BYTES) {
        ssize_t got = file_read_at(fd, chunk, CRC_CHUNK_BYTES, (off_t)at);

        if (got < 0)
            return false;
        sum = crc32(sum, chunk, (uInt)got);
        if (got < CRC_CHUNK_BYTES)
            return sum == crc;
    }
    return false;
}

/* crc NULL: found by build id. Takes over fd. */
static bool accept_file(const struct search *search, int fd, const uint32_t *crc, struct elf_file *ret_debug)
{
    uint8_t build_id[BINARY_BUILD_ID_MAX_BYTES];
    struct elf_file debug;
    bool is_right;

    if (fd < 0)
        return false;
    if (elf_file_open(&debug, fd) < 0) {
        close(fd);
        return false;
    }
    /* The build id first: it costs nothing, the CRC a read of the whole file. */
    is_right = elf_file_build_id(&debug, build_id) == search->binary->build_id_size_bytes &&
               memcmp(build_id, search->binary->build_id, search->binary->build_id_size_bytes) == 0 &&
               (crc == NULL || crc_matches(fd, *crc));
    close(fd);
    if (is_right)
        *ret_debug = debug;
    else
        elf_file_close(&debug);
    return is_right;
}

static bool try_path(const struct search *search, const char *path, const uint32_t *crc,
                     struct elf_file *ret_debug)
{
    const struct symbolizer_context *context = search->context;
    AUTO_CLOSE int host_root = -1;

    for (size_t i = 0; i < search->target_count; i++) {
        int fd = context->open_in_target(context->open_context, search->targets[i], path);

        if (accept_file(search, fd, crc, ret_debug))
            return true;
    }
    /* The path is made of the target's words: no devices, no FIFOs. */
    host_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return host_root >= 0 && accept_file(search, file_open_in_root(host_root, path), crc, ret_debug);
}

static bool find_by_build_id(const struct search *search, struct elf_file *ret_debug)
{
    char hex[BINARY_BUILD_ID_MAX_BYTES * 2 + 1] = "";
    AUTO_FREE char *path = NULL;

    if (search->binary->build_id_size_bytes < 2)
        return false;
    for (size_t i = 0; i < search->binary->build_id_size_bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", search->binary->build_id[i]);
    path = string_format("/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
    return try_path(search, path, NULL, ret_debug);
}

static bool find_by_link(const struct search *search, const struct elf_debug_link *link,
                         struct elf_file *ret_debug)
{
    static const char *const places[][2] = {{"", ""}, {"", "/.debug"}, {"/usr/lib/debug", ""}};
    const char *path = search->binary->path;
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *folder = NULL;

    if (path[0] != '/' || slash == NULL)
        return false;
    folder = string_copy_length(path, (size_t)(slash - path));
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        AUTO_FREE char *candidate =
            string_format("%s%s%s/%s", places[i][0], folder, places[i][1], link->name);

        if (try_path(search, candidate, &link->crc, ret_debug))
            return true;
    }
    return false;
}

int debug_file_open(const struct symbolizer_context *context, const struct binary *binary,
                    struct elf_file *file, struct elf_file *ret_debug)
{
    struct search search = {.context = context, .binary = binary};
    struct elf_debug_link link;

    find_targets(&search);
    if (find_by_build_id(&search, ret_debug))
        return 0;
    if (elf_file_debug_link(file, &link) && find_by_link(&search, &link, ret_debug))
        return 0;
    return -ENOENT;
}
