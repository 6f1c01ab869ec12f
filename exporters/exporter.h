/* Ways to write a profile. A format is a const struct; adding one is one file, one row in exporters[], one
 * golden file.
 *
 *   const struct exporter *e = exporter_find("folded");
 *   e->write(profile, &options, file, &err);
 */
#ifndef STALLGRAPH_EXPORTERS_EXPORTER_H
#define STALLGRAPH_EXPORTERS_EXPORTER_H

#include <stdbool.h>
#include <stdio.h>

#include "profiler/base/error.h"
#include "profiler/model/call_tree.h"
#include "profiler/model/profile.h"

struct export_options {
    struct call_tree_options
        tree; /* for the formats that draw one tree; speedscope has each thread and all */
};

struct exporter {
    const char *name;      /* as --format spells it */
    const char *extension; /* with its dot: ".speedscope.json" */
    const char *help;      /* one line for --help */
    bool packs_itself;     /* writes gzip already: not to be compressed once more */
    /* Writes the whole file. Checks ferror at the end: 0, or -errno with err set. The same profile gives the
     * same bytes. */
    int (*write)(const struct profile *profile, const struct export_options *options, FILE *out,
                 struct error *err);
};

extern const struct exporter exporter_speedscope;
extern const struct exporter exporter_folded;
extern const struct exporter exporter_svg;
extern const struct exporter exporter_pprof;

/* All formats, NULL-terminated, in the order of --help. */
extern const struct exporter *const exporters[];
const struct exporter *exporter_find(const char *name); /* NULL when there is none of that name */

#endif
