/* A flame graph as a picture of its own: no other file, and readable where no script is allowed. Where one is, the script at the
 * end of the file (viewer-assets/) replaces the still picture by one to zoom and search in, drawn from the whole tree.
 *
 * The root is at the top and callees hang below (an "icicle"): a page opens at its top, so that the legend
 * and the callers are seen at once however deep the stacks are, and the waits, which are leaves, hang out at
 * the lower edge where nothing covers them.
 *
 * The page has a fixed size in its viewBox and so scales as a picture does; inside it, frames are placed in
 * percent of their area, so that a script may give the area another width without touching the frames. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "exporters/exporter.h"
#include "exporters/human.h"
#include "exporters/output.h"
#include "exporters/svg_data.h"
#include "exporters/svg_label.h"
#include "exporters/svg_layout.h"
#include "exporters/text_safe.h"
#include "exporters/viewer_assets.h"
#include "exporters/xml_text.h"
#include "profiler/base/cleanup.h"
#include "profiler/base/clock.h"
#include "profiler/base/memory.h"

enum {
    PAGE_WIDTH = 1200, /* units of the viewBox; pixels where the picture is shown unscaled */
    MARGIN = 14,
    AREA_WIDTH = PAGE_WIDTH - 2 * MARGIN,
    LINE_HEIGHT = 16,

    ROW_HEIGHT = 18,
    LABEL_BASELINE = 13,
    LABEL_PADDING = 4,
    COLUMN_HUNDREDTHS =
        735, /* width of a monospaced character at 12 px; the widest of the usual fonts has 0.61 em */

    CARDS_A_LINE = 5,
    CARD_WIDTH = AREA_WIDTH / CARDS_A_LINE,
    CARD_HEIGHT = 43,
    CARD_HEIGHT_WITH_IDLE = 58, /* one line more: the share without idle time */
    BAR_HEIGHT = 14,

    FRAMES_MAX = 2400,            /* up to 4 elements each: the page stays below 10,000 */
    NARROWEST_SHARE = AREA_WIDTH, /* a pixel */
    ROWS_MAX = 2000,
    PERCENT_DIGITS = 6,
};

struct svg {
    FILE *out;
    const struct profile *profile;
    const struct call_tree *tree;
    struct svg_layout layout;
    uint64_t thread_count; /* that have samples */
    unsigned y;            /* how far down the page is filled */
    char *facts;
    char *loss; /* NULL: nothing was lost */
};

static uint64_t busy_us(const struct svg *svg)
{
    return svg->layout.total_us - svg->layout.reason_us[REASON_IDLE];
}

static uint64_t duration_us(const struct svg *svg)
{
    return svg->profile->meta.duration_ns / NS_PER_US;
}

/* A position in millionths of a percent, rounded down: positions stay in order, so that what lies inside
 * stays inside. */
static uint64_t position(const struct svg *svg, uint64_t time_us)
{
    return (uint64_t)((unsigned __int128)time_us * 100 * 1000000 / svg->layout.total_us);
}

static void write_percent(FILE *out, const char *attribute, uint64_t millionths)
{
    char digits[PERCENT_DIGITS + 1];
    int length = snprintf(digits, sizeof digits, "%06u", (unsigned)(millionths % 1000000));

    while (length > 0 && digits[length - 1] == '0')
        digits[--length] = '\0';
    fprintf(out, " %s=\"%" PRIu64 "%s%s%%\"", attribute, millionths / 1000000, length > 0 ? "." : "", digits);
}

static void begin_text(struct svg *svg, const char *class, unsigned x, unsigned y)
{
    fprintf(svg->out, "<text class=\"%s\" x=\"%u\" y=\"%u\">", class, x, y);
}

static void end_text(struct svg *svg)
{
    fputs("</text>\n", svg->out);
}

static void write_line(struct svg *svg, const char *class, const char *raw)
{
    svg->y += LINE_HEIGHT;
    begin_text(svg, class, MARGIN, svg->y - 4);
    xml_raw_text(svg->out, raw);
    end_text(svg);
}

static void write_card(struct svg *svg, enum reason reason, unsigned x, unsigned y)
{
    uint64_t time_us = svg->layout.reason_us[reason];

    fprintf(svg->out,
            "<g class=\"%s own\"><rect x=\"%u\" y=\"%u\" width=\"11\" height=\"11\" rx=\"2\"/></g>\n",
            reason_name(reason), x, y + 2);
    begin_text(svg, "label", x + 17, y + 12);
    xml_format(svg->out, "%s %s", reason_label(reason), human_percent(time_us, svg->layout.total_us).text);
    end_text(svg);
    begin_text(svg, "fact", x + 17, y + 28);
    xml_format(svg->out, "%s, %s threads on average", human_time_us(time_us).text,
               human_ratio(time_us, duration_us(svg)).text);
    end_text(svg);
    if (svg->layout.reason_us[REASON_IDLE] == 0 || reason == REASON_IDLE)
        return;
    begin_text(svg, "muted", x + 17, y + 43);
    xml_format(svg->out, "%s without idle", human_percent(time_us, busy_us(svg)).text);
    end_text(svg);
}

/* All thread time as one bar, then each reason with its share: of everything, of what is not idle, and as the
 * number of threads that were in it on average. */
static void write_legend(struct svg *svg)
{
    unsigned card_height = svg->layout.reason_us[REASON_IDLE] > 0 ? CARD_HEIGHT_WITH_IDLE : CARD_HEIGHT;
    uint64_t start_us = 0;
    unsigned card = 0;

    fprintf(svg->out, "<svg x=\"%d\" y=\"%u\" width=\"%d\" height=\"%d\">\n", MARGIN, svg->y, AREA_WIDTH,
            BAR_HEIGHT);
    for (int reason = 0; reason < REASON_COUNT; reason++) {
        uint64_t time_us = svg->layout.reason_us[reason];
        uint64_t left = position(svg, start_us);

        if (time_us == 0)
            continue;
        start_us += time_us;
        fprintf(svg->out, "<g class=\"%s own\"><rect", reason_name((enum reason)reason));
        write_percent(svg->out, "x", left);
        write_percent(svg->out, "width", position(svg, start_us) - left);
        fprintf(svg->out, " height=\"%d\"/></g>\n", BAR_HEIGHT);
    }
    fputs("</svg>\n", svg->out);
    svg->y += BAR_HEIGHT + 8;
    for (int reason = 0; reason < REASON_COUNT; reason++) {
        if (svg->layout.reason_us[reason] == 0)
            continue;
        write_card(svg, (enum reason)reason, MARGIN + card % CARDS_A_LINE * CARD_WIDTH,
                   svg->y + card / CARDS_A_LINE * card_height);
        card++;
    }
    svg->y += (card + CARDS_A_LINE - 1) / CARDS_A_LINE * card_height;
}

/* What is not known, in one line; NULL where all is. Caller frees. */
static char *loss_text(const struct profile *profile, uint64_t total_us)
{
    const struct profile_loss *loss = &profile->loss;
    uint64_t lost_us = 0;
    uint64_t unsampled_us = 0;
    char text[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < profile->thread_count; i++) {
        lost_us += profile->threads[i].ledger.lost_ns / NS_PER_US;
        unsampled_us += profile->threads[i].ledger.unsampled_ns / NS_PER_US;
    }
    const struct {
        uint64_t part;
        uint64_t whole;
        const char *what;
    } losses[] = {
        {lost_us, total_us, "of the time lost"},
        {unsampled_us, total_us, "on a CPU but not sampled"},
        {loss->unpermitted_ns / NS_PER_US, total_us, "without the right to see the stack"},
        {loss->truncated_stacks, loss->unwound_stacks, "of the stacks truncated"},
    };

    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        if (losses[i].part > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", used > 0 ? "; " : "",
                                     human_percent(losses[i].part, losses[i].whole).text, losses[i].what);
    }
    if (loss->lost_events > 0)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s records dropped by the kernel",
                                 used > 0 ? "; " : "", human_count(loss->lost_events).text);
    return used > 0 ? string_format("Not known: %s", text) : NULL;
}

/* The profile in one line. Caller frees. */
static char *facts_text(const struct svg *svg)
{
    const struct profile_meta *meta = &svg->profile->meta;
    AUTO_FREE char *host =
        meta->host[0] != '\0' ? string_format(" \xC2\xB7 %s", meta->host) : string_copy("");

    return string_format("%s of thread time \xC2\xB7 %s threads \xC2\xB7 window %s \xC2\xB7 %s%s",
                         human_time_us(svg->layout.total_us).text, human_count(svg->thread_count).text,
                         human_time_us(duration_us(svg)).text, human_utc(meta->start_unix_ns).text, host);
}

static void write_header(struct svg *svg)
{
    const struct profile_meta *meta = &svg->profile->meta;
    AUTO_FREE char *safe_title = text_safe(meta->title, TEXT_XML);
    AUTO_FREE char *title = svg_label_fit(safe_title, 110); /* of about 10 px */

    fprintf(svg->out, "<text class=\"heading\" x=\"%d\" y=\"%d\">", MARGIN, MARGIN + 16);
    xml_text(svg->out, title);
    fputs("</text>\n", svg->out);
    svg->y = MARGIN + 22;
    write_line(svg, "muted", svg->facts);
    if (svg->loss != NULL)
        write_line(svg, "loss", svg->loss);
    svg->y += 6;
    if (svg->layout.total_us == 0) {
        write_line(svg, "label", "Nothing was sampled in this window.");
        return;
    }
    write_legend(svg);
    write_line(svg, "muted",
               "Width is time. Colour says what most of a frame\xE2\x80\x99s time went to: strong where it "
               "was spent, pale in the "
               "callers above, grey where it is mixed.");
    write_line(
        svg, "muted",
        "This is the still picture. To zoom, search and filter, download the file and open it in a browser.");
    svg->y += 4;
}

/* What a pointer that rests on a frame is told. */
static void write_tooltip(struct svg *svg, const struct svg_frame *frame, const char *name)
{
    const struct call_node *node = &svg->tree->nodes[frame->node];
    uint64_t reason_us[REASON_COUNT];
    uint64_t total_us = svg->layout.total_us;
    uint64_t idle_us = 0;

    share_by_largest_remainder(frame->reason_ns, REASON_COUNT, frame->width_us, reason_us);
    idle_us = reason_us[REASON_IDLE];
    fputs("<title>", svg->out);
    xml_text(svg->out, name);
    if (node->frame != CALL_NODE_GROUP && svg->profile->frames[node->frame].module != 0) {
        fputs("\nin ", svg->out);
        xml_raw_text(svg->out,
                     string_table_get(svg->profile->strings, svg->profile->frames[node->frame].module));
    }
    putc('\n', svg->out);
    xml_format(svg->out, "%s, %s of all", human_time_us(frame->width_us).text,
               human_percent(frame->width_us, total_us).text);
    if (svg->layout.reason_us[REASON_IDLE] > 0 && frame->width_us > idle_us)
        xml_format(svg->out, ", %s without idle",
                   human_percent(frame->width_us - idle_us, busy_us(svg)).text);
    putc('\n', svg->out);
    xml_format(svg->out, "%s threads on average", human_ratio(frame->width_us, duration_us(svg)).text);
    for (int reason = 0; reason < REASON_COUNT; reason++) {
        if (reason_us[reason] == 0)
            continue;
        putc('\n', svg->out);
        xml_format(svg->out, "%s: %s", reason_label((enum reason)reason),
                   human_time_us(reason_us[reason]).text);
    }
    if (node->self_us > 0 && node->first_child != 0) {
        putc('\n', svg->out);
        xml_format(svg->out, "itself: %s", human_time_us(node->self_us).text);
    }
    fputs("</title>", svg->out);
}

/* The name, and where there is room the time too, on frames that are read for it: groups, and where time is
 * spent. Caller frees; NULL where nothing fits. */
static char *frame_label(const struct svg *svg, const struct svg_frame *frame, const char *name,
                         uint64_t width)
{
    uint64_t width_hundredths = width * AREA_WIDTH / 1000000; /* of a pixel */
    uint64_t padding_hundredths = (uint64_t)2 * LABEL_PADDING * 100;
    size_t columns = 0;

    if (width_hundredths > padding_hundredths)
        columns = (width_hundredths - padding_hundredths) / COLUMN_HUNDREDTHS;
    if (frame->own || svg->tree->nodes[frame->node].frame == CALL_NODE_GROUP) {
        char *both = string_format("%s  %s, %s", name, human_time_us(frame->width_us).text,
                                   human_percent(frame->width_us, svg->layout.total_us).text);

        if (svg_label_columns(both) <= columns)
            return both;
        free(both);
    }
    return svg_label_fit(name, columns);
}

static void write_frame(struct svg *svg, const struct svg_frame *frame)
{
    const struct call_node *node = &svg->tree->nodes[frame->node];
    uint64_t left = position(svg, frame->start_us);
    uint64_t width = position(svg, frame->start_us + frame->width_us) - left;
    AUTO_FREE char *name = text_safe(string_table_get(svg->tree->strings, node->name), TEXT_XML);
    AUTO_FREE char *label = frame_label(svg, frame, name, width);

    fprintf(svg->out, "<g class=\"f %s%s%s\">",
            frame->reason == REASON_COUNT ? "mixed" : reason_name(frame->reason), frame->own ? " own" : "",
            node->frame == CALL_NODE_GROUP ? " group" : "");
    write_tooltip(svg, frame, name);
    fputs("<rect", svg->out);
    write_percent(svg->out, "x", left);
    write_percent(svg->out, "width", width);
    fprintf(svg->out, " y=\"%u\" height=\"%d\"/>", node->depth * ROW_HEIGHT, ROW_HEIGHT);
    if (label != NULL) {
        fputs("<text", svg->out);
        write_percent(svg->out, "x", left);
        fprintf(svg->out, " dx=\"%d\" y=\"%u\">", LABEL_PADDING, node->depth * ROW_HEIGHT + LABEL_BASELINE);
        xml_text(svg->out, label);
        fputs("</text>", svg->out);
    }
    fputs("</g>\n", svg->out);
}

static void write_frames(struct svg *svg)
{
    if (svg->layout.total_us == 0)
        return;
    fprintf(svg->out, "<svg class=\"frames\" x=\"%d\" y=\"%u\" width=\"%d\" height=\"%u\">\n", MARGIN, svg->y,
            AREA_WIDTH, svg->layout.rows * ROW_HEIGHT);
    for (size_t i = 0; i < svg->layout.count; i++)
        write_frame(svg, &svg->layout.frames[i]);
    fputs("</svg>\n", svg->out);
    svg->y += svg->layout.rows * ROW_HEIGHT;
}

static void write_footer(struct svg *svg)
{
    const struct profile_meta *meta = &svg->profile->meta;
    AUTO_FREE char *engines = string_format("stallgraph %s%s%s", STALLGRAPH_VERSION,
                                            meta->engines[0] != '\0' ? " \xC2\xB7 " : "", meta->engines);

    svg->y += 6;
    if (svg->layout.hidden_count > 0) {
        AUTO_FREE char *hidden =
            string_format("%s narrow frames, of at most %s, are not drawn; their space stays.",
                          human_count(svg->layout.hidden_count).text,
                          human_percent(svg->layout.hidden_widest_us, svg->layout.total_us).text);

        write_line(svg, "muted", hidden);
    }
    write_line(svg, "muted", engines);
    svg->y += MARGIN - 4;
}

/* One sentence for those who do not see the picture: the three largest reasons. */
static void write_aria_label(const struct svg *svg)
{
    bool told[REASON_COUNT] = {false};

    fputs(" role=\"img\" aria-label=\"Flame graph of ", svg->out);
    xml_raw_text(svg->out, svg->profile->meta.title);
    for (int i = 0; i < 3; i++) {
        int largest = -1;

        for (int reason = 0; reason < REASON_COUNT; reason++) {
            if (!told[reason] && svg->layout.reason_us[reason] > 0 &&
                (largest < 0 || svg->layout.reason_us[reason] > svg->layout.reason_us[largest]))
                largest = reason;
        }
        if (largest < 0)
            break;
        told[largest] = true;
        xml_format(svg->out, "%s %s %s", i == 0 ? ":" : ",",
                   human_percent(svg->layout.reason_us[largest], svg->layout.total_us).text,
                   reason_label((enum reason)largest));
    }
    putc('"', svg->out);
}

static void write_head(const struct svg *svg)
{
    fprintf(svg->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"stallgraph\" width=\"%d\" height=\"%u\""
            " viewBox=\"0 0 %d %u\" data-total-us=\"%" PRIu64 "\"",
            PAGE_WIDTH, svg->y, PAGE_WIDTH, svg->y, svg->layout.total_us);
    write_aria_label(svg);
    fputs(">\n<title>", svg->out);
    xml_raw_text(svg->out, svg->profile->meta.title);
    fprintf(svg->out, "</title>\n<style>\n%s%s</style>\n", viewer_asset_flamegraph_css,
            viewer_asset_viewer_css);
    fputs("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n", svg->out);
}

static void write_body(struct svg *svg)
{
    fputs("<g class=\"still\">\n", svg->out);
    write_header(svg);
    write_frames(svg);
    write_footer(svg);
    fputs("</g>\n", svg->out);
}

/* In CDATA: the sources hold no "]]>", or the file would not be well-formed, which the golden check would notice. */
static void write_script(FILE *out)
{
    fputs("<script><![CDATA[\n", out);
    fputs(viewer_asset_flame_tree_js, out);
    fputs(viewer_asset_flame_label_js, out);
    fputs(viewer_asset_flame_view_js, out);
    fputs(viewer_asset_flame_app_js, out);
    fputs("]]></script>\n", out);
}

static int svg_write(const struct profile *profile, const struct export_options *options, FILE *out,
                     struct error *err)
{
    static const struct svg_limits limits = {NARROWEST_SHARE, FRAMES_MAX, ROWS_MAX};
    struct call_tree *tree = call_tree_build(profile, &options->tree);
    struct svg svg = {.profile = profile, .tree = tree};
    char *body = NULL;
    size_t body_size = 0;

    for (size_t i = 0; i < profile->thread_count; i++)
        svg.thread_count += profile->threads[i].sample_count > 0;
    svg_layout_init(&svg.layout, profile, tree, &limits);
    svg.facts = facts_text(&svg);
    svg.loss = loss_text(profile, svg.layout.total_us);

    /* The head comes first in the file, and states the height that the body turns out to have. */
    svg.out = open_memstream(&body, &body_size);
    if (svg.out != NULL) {
        write_body(&svg);
        fclose(svg.out);
        svg.out = out;
        write_head(&svg);
        fwrite(body, 1, body_size, out);
        svg_data_write(out, profile, tree, &options->tree,
                       &(struct svg_texts){.facts = svg.facts, .loss = svg.loss});
        write_script(out);
        fputs("</svg>\n", out);
    }
    bool failed = body == NULL;

    free(body);
    free(svg.facts);
    free(svg.loss);
    svg_layout_finish(&svg.layout);
    call_tree_destroy(tree);
    return failed ? error_set(err, -ENOMEM, "draw the flame graph") : output_check(out, err);
}

const struct exporter exporter_svg = {
    .name = "svg",
    .extension = ".svg",
    .help = "flame graph by time, coloured by what threads wait for",
    .write = svg_write,
};
