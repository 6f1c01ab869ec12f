/* Folded stacks, as flamegraph.pl, inferno and speedscope read them; one line a stack, microseconds at its
 * end:
 *
 *   srv;worker-*;start_thread;handle;PQexec;poll;[wait: tcp 10.0.0.5:5432 postgresql] 1234567
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/exporter.h"
#include "exporters/output.h"
#include "exporters/text_safe.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

struct folded_line {
    char *path; /* owned */
    uint64_t self_us;
};

struct folded {
    const struct call_tree *tree;
    char **names; /* of the tree's strings, made safe; NULL = not yet */
    VEC_OF(struct folded_line) lines;
    VEC_OF(uint32_t) nodes; /* scratch */
    VEC_OF(char) text;      /* scratch */
};

static const char *safe_name(struct folded *folded, uint32_t string)
{
    if (folded->names[string] == NULL)
        folded->names[string] = text_safe(string_table_get(folded->tree->strings, string), TEXT_FOLDED);
    return folded->names[string];
}

static char *path_of_node(struct folded *folded, uint32_t node)
{
    folded->nodes.count = 0;
    folded->text.count = 0;
    for (uint32_t n = node; n != 0; n = folded->tree->nodes[n].parent)
        VEC_PUSH(&folded->nodes, n);
    for (size_t i = folded->nodes.count; i-- > 0;) {
        const char *name = safe_name(folded, folded->tree->nodes[folded->nodes.items[i]].name);
        size_t size = strlen(name);

        VEC_RESERVE(&folded->text, folded->text.count + size + 1);
        memcpy(folded->text.items + folded->text.count, name, size);
        folded->text.count += size;
        folded->text.items[folded->text.count++] = i > 0 ? ';' : '\0';
    }
    return string_copy(folded->text.items);
}

static int compare_lines(const void *left, const void *right)
{
    const struct folded_line *a = left;
    const struct folded_line *b = right;

    return strcmp(a->path, b->path);
}

static void finish(struct folded *folded)
{
    for (size_t i = 0; i < folded->lines.count; i++)
        free(folded->lines.items[i].path);
    for (uint32_t i = 0; i < string_table_count(folded->tree->strings); i++)
        free(folded->names[i]);
    free(folded->names);
    free(folded->lines.items);
    free(folded->nodes.items);
    free(folded->text.items);
}

static int folded_write(const struct profile *profile, const struct export_options *options, FILE *out,
                        struct error *err)
{
    struct call_tree *tree = call_tree_build(profile, &options->tree);
    struct folded folded = {.tree = tree};

    folded.names = memory_zeroed(string_table_count(tree->strings), sizeof *folded.names);
    for (uint32_t node = 1; node < tree->count; node++) {
        if (tree->nodes[node].self_us == 0)
            continue;
        VEC_PUSH(&folded.lines,
                 ((struct folded_line){path_of_node(&folded, node), tree->nodes[node].self_us}));
    }
    if (folded.lines.count > 0)
        qsort(folded.lines.items, folded.lines.count, sizeof *folded.lines.items, compare_lines);

    /* Paths that differ only in what was made safe, or in their modules, are one line. */
    for (size_t i = 0; i < folded.lines.count;) {
        const char *path = folded.lines.items[i].path;
        uint64_t sum_us = 0;

        for (; i < folded.lines.count && strcmp(folded.lines.items[i].path, path) == 0; i++)
            sum_us += folded.lines.items[i].self_us;
        fprintf(out, "%s %" PRIu64 "\n", path, sum_us);
    }
    finish(&folded);
    call_tree_destroy(tree);
    return output_check(out, err);
}

const struct exporter exporter_folded = {
    .name = "folded",
    .extension = ".folded",
    .help = "folded stacks in microseconds, for flamegraph.pl, inferno and others",
    .write = folded_write,
};
