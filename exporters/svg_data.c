#include "exporters/svg_data.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "exporters/reason.h"
#include "exporters/text_safe.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

struct label {
    uint32_t name;   /* of "strings" */
    uint32_t module; /* of "strings" */
    uint32_t kind;
};

struct tables {
    FILE *out;
    const struct profile *profile;
    const struct call_tree *tree;
    struct id_map label_ids;      /* (name, frame) of a node -> index of labels */
    struct string_table *strings; /* safe texts; id 0 is "" */
    VEC_OF(struct label) labels;
    uint32_t *label_of_node;
};

static const char element_begin[] = "<script type=\"application/json\" class=\"data\">";
static const char element_end[] = "}</script>\n";

enum { DIGITS_MAX = 20, MODULE_NONE = 0 };

/* Hundreds of thousands of numbers: fprintf takes four times as long. */
static void put_uint(FILE *out, uint64_t value)
{
    char digits[DIGITS_MAX];
    size_t first = sizeof digits;

    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    fwrite_unlocked(digits + first, 1, sizeof digits - first, out);
}

/* A JSON string that is XML text too, and HTML text where somebody pastes the picture into a page: no character in it means
 * anything to those. safe: from text_safe(.., TEXT_XML). */
static void put_string(FILE *out, const char *safe)
{
    putc_unlocked('"', out);
    for (const char *c = safe; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;

        if (byte < 0x20 || byte == 0x7f || byte == '<' || byte == '>' || byte == '&' || byte == '"' ||
            byte == '\\' || byte == '\'')
            fprintf(out, "\\u%04x", byte);
        else
            putc_unlocked(byte, out);
    }
    putc_unlocked('"', out);
}

static void put_key_text(FILE *out, const char *key, const char *raw)
{
    AUTO_FREE char *safe = raw[0] != '\0' ? text_safe(raw, TEXT_XML) : string_copy("");

    fprintf(out, ",\"%s\":", key);
    put_string(out, safe);
}

static uint32_t intern_safe(struct tables *tables, const char *raw)
{
    AUTO_FREE char *safe = text_safe(raw, TEXT_XML);

    return string_table_intern(tables->strings, safe);
}

static uint32_t label_of(struct tables *tables, const struct call_node *node)
{
    uint64_t key = (uint64_t)node->name << 32 | node->frame;
    struct label label = {.module = MODULE_NONE};
    uint32_t id = 0;

    if (id_map_get(&tables->label_ids, key, &id))
        return id;
    label.name = intern_safe(tables, string_table_get(tables->tree->strings, node->name));
    if (node->frame != CALL_NODE_GROUP) {
        const struct frame *frame = &tables->profile->frames[node->frame];

        label.kind = (uint32_t)frame->kind + 1;
        if (frame->module != 0)
            label.module = intern_safe(tables, string_table_get(tables->profile->strings, frame->module));
    }
    id = (uint32_t)tables->labels.count;
    VEC_PUSH(&tables->labels, label);
    id_map_put(&tables->label_ids, key, id);
    return id;
}

static void put_tables(struct tables *tables)
{
    fputs(",\n\"strings\":[\"\"", tables->out);
    for (uint32_t id = 1; id < string_table_count(tables->strings); id++) {
        putc_unlocked(',', tables->out);
        put_string(tables->out, string_table_get(tables->strings, id));
    }
    fputs("],\n\"frames\":[", tables->out);
    for (size_t i = 0; i < tables->labels.count; i++) {
        const struct label *label = &tables->labels.items[i];

        if (i > 0)
            putc_unlocked(',', tables->out);
        put_uint(tables->out, label->name);
        putc_unlocked(',', tables->out);
        put_uint(tables->out, label->module);
        putc_unlocked(',', tables->out);
        put_uint(tables->out, label->kind);
    }
    putc_unlocked(']', tables->out);
}

static void put_nodes(struct tables *tables)
{
    int64_t depth = -1;

    fputs("{\"nodes\":[", tables->out);
    for (size_t i = 0; i < tables->tree->count; i++) {
        if (i > 0)
            putc_unlocked(',', tables->out);
        int64_t up = depth + 1 - (int64_t)tables->tree->nodes[i].depth;

        if (up > 0) {
            putc_unlocked('-', tables->out);
            put_uint(tables->out, (uint64_t)up);
            putc_unlocked(',', tables->out);
        }
        depth = tables->tree->nodes[i].depth;
        put_uint(tables->out, tables->label_of_node[i]);
    }
    putc_unlocked(']', tables->out);
}

static void put_selves(struct tables *tables)
{
    size_t last = 0;
    bool first = true;

    fputs("{\"selves\":[", tables->out);
    for (size_t i = 0; i < tables->tree->count; i++) {
        const struct call_node *node = &tables->tree->nodes[i];
        enum wait_kind wait =
            node->frame == CALL_NODE_GROUP ? WAIT_NONE : tables->profile->frames[node->frame].wait;
        uint64_t reason_ns[REASON_COUNT] = {0};
        uint64_t reason_us[REASON_COUNT];

        if (node->self_us == 0)
            continue;
        for (int state = 0; state < STATE_COUNT; state++)
            reason_ns[reason_of((enum thread_state)state, wait)] += node->self_ns[state];
        share_by_largest_remainder(reason_ns, REASON_COUNT, node->self_us, reason_us);
        for (unsigned reason = 0; reason < REASON_COUNT; reason++) {
            if (reason_us[reason] == 0)
                continue;
            if (!first)
                putc_unlocked(',', tables->out);
            put_uint(tables->out, i - last);
            putc_unlocked(',', tables->out);
            put_uint(tables->out, reason);
            putc_unlocked(',', tables->out);
            put_uint(tables->out, reason_us[reason]);
            last = i;
            first = false;
        }
    }
    putc_unlocked(']', tables->out);
}

static const char *threads_name(enum thread_grouping threads)
{
    switch (threads) {
    case THREADS_POOL:
        return "pool";
    case THREADS_EACH:
        return "each";
    case THREADS_MERGE:
        break;
    }
    return "merge";
}

void svg_data_write(FILE *out, const struct profile *profile, const struct call_tree *tree,
                    const struct call_tree_options *options, const struct svg_texts *texts)
{
    struct tables tables = {.out = out, .profile = profile, .tree = tree, .strings = string_table_create()};

    tables.label_of_node = memory_zeroed(tree->count, sizeof *tables.label_of_node);
    for (size_t i = 0; i < tree->count; i++)
        tables.label_of_node[i] = label_of(&tables, &tree->nodes[i]);
    fputs(element_begin, out);
    fputs("{\"version\":1", out);
    put_key_text(out, "title", profile->meta.title);
    put_key_text(out, "facts", texts->facts);
    put_key_text(out, "loss", texts->loss != NULL ? texts->loss : "");
    fprintf(out, ",\"durationUs\":%" PRIu64 ",\"totalUs\":%" PRIu64, profile->meta.duration_ns / NS_PER_US,
            tree->nodes[0].total_us);
    fputs(",\n\"reasons\":[", out);
    for (int reason = 0; reason < REASON_COUNT; reason++)
        fprintf(out, "%s[\"%s\",\"%s\"]", reason > 0 ? "," : "", reason_name((enum reason)reason),
                reason_label((enum reason)reason));
    fprintf(out, "],\"threads\":\"%s\",\"idleNode\":%" PRIu32, threads_name(options->threads),
            tree->idle_node);
    put_tables(&tables);
    fputs(element_end, out);
    fputs(element_begin, out);
    put_nodes(&tables);
    fputs(element_end, out);
    fputs(element_begin, out);
    put_selves(&tables);
    fputs(element_end, out);
    free(tables.label_of_node);
    free(tables.labels.items);
    id_map_finish(&tables.label_ids);
    string_table_destroy(tables.strings);
}
