/* Reads a speedscope file back: ours without loss (speedscope.h says what is kept), or another program's, sampled or
 * evented, of which each profile becomes a thread.
 *
 *   struct speedscope_file *file = speedscope_file_create();
 *   ... speedscope_file_feed(), speedscope_file_end() ...
 *   r = speedscope_read(file, "x.json", &profile, &err);
 */
#ifndef STALLGRAPH_EXPORTERS_SPEEDSCOPE_READ_H
#define STALLGRAPH_EXPORTERS_SPEEDSCOPE_READ_H

#include "exporters/speedscope_file.h"

/* name: the file's, for a profile that has none. 0, or -EBADMSG with err set where the parts do not fit together. The
 * caller destroys the profile. */
int speedscope_read(const struct speedscope_file *file, const char *name, struct profile **ret_profile,
                    struct error *err);

#endif
