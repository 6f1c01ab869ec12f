#include "exporters/svg_label.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "exporters/text_safe.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"

static const char ellipsis[] = "\xE2\x80\xA6";

/* Wide by UAX #11, roughly: Hangul, CJK, full-width forms, emoji. Counting one too many only shortens a
 * label. */
static size_t columns_of(uint32_t code_point)
{
    bool wide =
        (code_point >= 0x1100 && code_point <= 0x115F) || (code_point >= 0x2E80 && code_point <= 0xA4CF) ||
        (code_point >= 0xAC00 && code_point <= 0xD7A3) || (code_point >= 0xF900 && code_point <= 0xFAFF) ||
        (code_point >= 0xFE30 && code_point <= 0xFE6F) || (code_point >= 0xFF00 && code_point <= 0xFFE6) ||
        code_point >= 0x1F000 || code_point == TEXT_REPLACEMENT;

    return wide ? 2 : 1;
}

size_t svg_label_columns(const char *text)
{
    size_t columns = 0;

    for (uint32_t code_point; (code_point = text_decode(&text)) != 0;)
        columns += columns_of(code_point);
    return columns;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "[wait: poll]" -> "poll": the colour says that it is a wait. NULL when it is none. */
static char *without_wait(const char *name)
{
    size_t length = strlen(name);

    if (!starts_with(name, "[wait: ") || name[length - 1] != ']')
        return NULL;
    return string_copy_length(name + strlen("[wait: "), length - strlen("[wait: ]"));
}

/* "a<b<c>>::d(int) const" -> "a<…>::d(…)". NULL where brackets do not pair up, or could be an operator's
 * name. */
static char *without_arguments(const char *name)
{
    static const char const_suffix[] = " const";
    char *short_name = memory_zeroed(strlen(name) * 3 + 1, 1);
    size_t size = 0;
    size_t depth = 0;

    if (strstr(name, "operator") != NULL || strstr(name, "->") != NULL)
        goto fail;
    for (const char *c = name; *c != '\0'; c++) {
        bool opens = *c == '<' || *c == '(';
        bool closes = *c == '>' || *c == ')';

        if (closes && depth-- == 0)
            goto fail;
        if (depth == 0)
            short_name[size++] = *c;
        if (!opens)
            continue;
        bool empty = c[1] == '>' || c[1] == ')';

        if (depth++ == 0 && !empty) {
            memcpy(short_name + size, ellipsis, sizeof ellipsis - 1);
            size += sizeof ellipsis - 1;
        }
    }
    if (depth != 0)
        goto fail;
    if (size > sizeof const_suffix &&
        memcmp(short_name + size - strlen(const_suffix), const_suffix, strlen(const_suffix)) == 0)
        size -= strlen(const_suffix);
    short_name[size] = '\0';
    return short_name;
fail:
    cleanup_free(&short_name);
    return NULL;
}

/* The rest behind the next "::" or, in a path-like name, '/'. NULL at the last part. */
static const char *next_part(const char *name)
{
    const char *scope = strstr(name, "::");
    const char *slash = strchr(name, '/');

    if (slash != NULL && slash[1] != '\0' && (scope == NULL || slash < scope))
        return slash + 1;
    return scope != NULL && scope[2] != '\0' ? scope + 2 : NULL;
}

/* "a::b::c" -> "…::b::c", "…::c": as many trailing parts as fit. NULL where not even the last one does. */
static char *last_parts(const char *name, size_t columns)
{
    for (const char *part = next_part(name); part != NULL; part = next_part(part)) {
        bool is_path = part[-1] == '/';

        if (svg_label_columns(part) + (is_path ? 2 : 3) <= columns)
            return string_format("%s%s%s", ellipsis, is_path ? "/" : "::", part);
    }
    return NULL;
}

static char *cut_right(const char *name, size_t columns)
{
    const char *end = name;
    size_t used = 1; /* the ellipsis */

    for (const char *next = name;;) {
        uint32_t code_point = text_decode(&next);

        if (code_point == 0)
            return string_copy(name);
        used += columns_of(code_point);
        if (used > columns)
            break;
        end = next;
    }
    AUTO_FREE char *head = string_copy_length(name, (size_t)(end - name));

    return string_format("%s%s", head, ellipsis);
}

char *svg_label_fit(const char *name, size_t columns)
{
    AUTO_FREE char *wait = NULL;
    AUTO_FREE char *bare = NULL;
    const char *last = NULL;

    if (columns < SVG_LABEL_MIN_COLUMNS)
        return NULL;
    if (svg_label_columns(name) <= columns)
        return string_copy(name);
    wait = without_wait(name);
    if (wait != NULL)
        return svg_label_columns(wait) <= columns ? string_copy(wait) : cut_right(wait, columns);
    bare = without_arguments(name);
    if (bare != NULL && svg_label_columns(bare) <= columns)
        return string_copy(bare);
    if (name[0] == '[')
        return cut_right(name, columns);

    const char *shortest = bare != NULL ? bare : name;
    char *parts = last_parts(shortest, columns);

    if (parts != NULL)
        return parts;
    last = shortest;
    for (const char *part = shortest; part != NULL; part = next_part(part))
        last = part;
    return cut_right(last, columns);
}
