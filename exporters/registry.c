#include <stddef.h>
#include <string.h>

#include "exporters/exporter.h"

const struct exporter *const exporters[] = {
    &exporter_speedscope, &exporter_folded, &exporter_svg, &exporter_pprof, NULL,
};

const struct exporter *exporter_find(const char *name)
{
    for (size_t i = 0; exporters[i] != NULL; i++) {
        if (strcmp(exporters[i]->name, name) == 0)
            return exporters[i];
    }
    return NULL;
}
