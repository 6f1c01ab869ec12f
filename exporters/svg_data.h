/* The whole call tree inside an SVG, for the script that makes it interactive (viewer-assets/flame_tree.js reads
 * it): three <script> elements of type application/json, which no browser runs. Three, because XML readers that
 * use libxml2 refuse a text of 10,000,000 bytes.
 *
 *   {"version": 1, "title", "facts", "loss": texts, "durationUs", "totalUs",
 *    "reasons": [["cpu", "on CPU"], ...],     name and label
 *    "threads": "pool"|"each"|"merge", "idleNode": node or 0,
 *    "strings": ["", ...],
 *    "frames": [name, module, kind, ...]}     three numbers a frame; kind 0 is a group, else enum frame_kind + 1
 *   {"nodes": [frame or -up, ...]}            a node's frame, parents first: below the node before it, or below the
 *                                             one that is "up" levels higher
 *   {"selves": [node step, reason, us, ...]}  three numbers: own time of a node, counted on from the entry before
 *
 * Own times add up to totalUs. Nothing is left out for being narrow: that is the drawing's business. */
#ifndef STALLGRAPH_EXPORTERS_SVG_DATA_H
#define STALLGRAPH_EXPORTERS_SVG_DATA_H

#include <stdio.h>

#include "profiler/model/call_tree.h"

struct svg_texts {
    const char *facts; /* one line about the profile; any bytes */
    const char *loss;  /* what is not known, or NULL */
};

void svg_data_write(FILE *out, const struct profile *profile, const struct call_tree *tree,
                    const struct call_tree_options *options, const struct svg_texts *texts);

#endif
