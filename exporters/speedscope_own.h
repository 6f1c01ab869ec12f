/* The part of a speedscope file that is ours, under the key "stallgraph": see speedscope.h. */
#ifndef STALLGRAPH_EXPORTERS_SPEEDSCOPE_OWN_H
#define STALLGRAPH_EXPORTERS_SPEEDSCOPE_OWN_H

#include "exporters/json_writer.h"
#include "profiler/model/profile.h"

enum { SPEEDSCOPE_VERSION = 1 };

/* The object; the caller has written its key. */
void speedscope_write_own(struct json_writer *json, const struct profile *profile);

#endif
