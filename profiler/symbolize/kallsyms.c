#include "profiler/symbolize/kallsyms.h"

#include <fcntl.h>
#include <string.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/file.h"
#include "profiler/base/scanner.h"

enum { TEXT_MAX_BYTES = 128 << 20, FUNCTION_MAX_BYTES = 1 << 20, LINE_MAX_BYTES = 4096 };

/* Marks of the linker script that stand at the address of a function: "_stext", "__sched_text_start". */
static bool is_section_mark(const char *name, size_t length)
{
    static const char *const ends[] = {"text", "text_start", "text_end"};

    for (size_t i = 0; name[0] == '_' && i < sizeof ends / sizeof ends[0]; i++) {
        size_t end_length = strlen(ends[i]);

        if (length > end_length && memcmp(name + length - end_length, ends[i], end_length) == 0)
            return true;
    }
    return false;
}

static uint8_t rank_line(char type, const char *name, size_t length)
{
    int rank;

    switch (type) {
    case 'T':
        rank = SYMBOL_RANK_GLOBAL;
        break;
    case 'W':
    case 'w':
        rank = SYMBOL_RANK_WEAK;
        break;
    case 't':
        rank = SYMBOL_RANK_LOCAL;
        break;
    default:
        return SYMBOL_RANK_STOP;
    }
    if (is_section_mark(name, length))
        rank += SYMBOL_RANK_UNTYPED;
    return (uint8_t)rank;
}

/* ffffffff8139a2f0 T vfs_read
 * ffffffffc05411a0 t ext4_sync_file	[ext4] */
static void add_line(struct symbol_table_builder *builder, const char *line, size_t length)
{
    struct symbol_candidate candidate = {.size_bytes = FUNCTION_MAX_BYTES};
    struct scanner in = {.at = line, .end = line + length};
    const char *tab;
    size_t length_to_tab;
    char type;

    if (length > LINE_MAX_BYTES || !scanner_take_hex(&in, &candidate.address) || candidate.address == 0)
        return;
    if (in.end - in.at < 4 || in.at[0] != ' ' || in.at[2] != ' ')
        return;
    type = in.at[1];
    candidate.name = in.at + 3;
    candidate.name_length = (uint32_t)(in.end - candidate.name);
    tab = memchr(candidate.name, '\t', candidate.name_length);
    length_to_tab = tab != NULL ? (size_t)(tab - candidate.name) : candidate.name_length;
    candidate.rank = rank_line(type, candidate.name, length_to_tab);
    symbol_table_add(builder, &candidate);
}

struct symbol_table *kallsyms_parse(const char *text, size_t length_bytes)
{
    struct symbol_table_builder builder = {0};

    while (length_bytes > 0) {
        const char *end = memchr(text, '\n', length_bytes);
        size_t length = end != NULL ? (size_t)(end - text) : length_bytes;

        add_line(&builder, text, length);
        length += end != NULL;
        text += length;
        length_bytes -= length;
    }
    return symbol_table_build(&builder);
}

struct symbol_table *kallsyms_load(const char *path)
{
    AUTO_FREE char *text = NULL;
    size_t size = 0;

    if (file_read(AT_FDCWD, path, TEXT_MAX_BYTES, &text, &size) < 0)
        size = 0;
    return kallsyms_parse(text, size);
}

size_t kallsyms_split(const char *entry, const char **ret_module)
{
    const char *tab = strchr(entry, '\t');

    *ret_module = tab != NULL ? tab + 1 : "";
    return tab != NULL ? (size_t)(tab - entry) : strlen(entry);
}
