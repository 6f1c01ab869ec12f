/* Which rectangles a flame graph has, and why each has its colour; nothing of how they are drawn.
 *
 * Horizontal positions are whole microseconds of the tree's total: children lie within their parent and never
 * overlap, and what a parent's children leave free at its right end is its own time. */
#ifndef STALLGRAPH_EXPORTERS_SVG_LAYOUT_H
#define STALLGRAPH_EXPORTERS_SVG_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/reason.h"
#include "profiler/model/call_tree.h"

struct svg_frame {
    uint32_t node; /* of the tree; its depth is the row */
    uint64_t start_us;
    uint64_t width_us;
    uint64_t reason_ns[REASON_COUNT]; /* of all its time */
    enum reason reason;               /* of more than half of it; REASON_COUNT: there is none such */
    bool own; /* most of that reason's time is the frame's own, not of frames below: where the time goes */
};

struct svg_layout {
    struct svg_frame *frames; /* parents before children, left before right */
    size_t count;
    uint64_t total_us;
    uint64_t reason_us[REASON_COUNT]; /* add up to total_us */
    uint32_t rows;
    size_t hidden_count;       /* frames that have time but were too narrow, or too many */
    uint64_t hidden_widest_us; /* the widest of these */
};

struct svg_limits {
    uint64_t narrowest_share; /* a frame narrower than total / this is not drawn; its space stays */
    size_t frames;            /* at most so many, the widest ones */
    uint32_t rows;            /* deeper frames are not drawn */
};

void svg_layout_init(struct svg_layout *layout, const struct profile *profile, const struct call_tree *tree,
                     const struct svg_limits *limits);
void svg_layout_finish(struct svg_layout *layout);

#endif
