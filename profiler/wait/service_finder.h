/* Finds out, beside the sampling, which program stands behind the far end of a TCP connection when that end
 * is on this machine, in a container or not. The search goes through all processes and may take a tenth of a
 * second, so a thread of its own does it, and names are asked for when the profile is made.
 *
 *   id = service_finder_ask(finder, &(struct far_end_question){...});       // cheap
 *   ...
 *   service_finder_settle(finder, 2000);
 *   name = service_finder_name(finder, id);                                  // "postgres", or ""
 */
#ifndef STALLGRAPH_WAIT_SERVICE_FINDER_H
#define STALLGRAPH_WAIT_SERVICE_FINDER_H

#include <stdint.h>

#include "profiler/wait/far_end.h"

struct service_finder;

struct service_finder *service_finder_create(void);
void service_finder_destroy(struct service_finder *finder); /* NULL allowed; does not wait for answers */

/* Equal network and remote end give equal ids. The question's proc_fd stays the caller's: a copy is kept. */
uint32_t service_finder_ask(struct service_finder *finder, const struct far_end_question *question);

/* Waits until all has been looked for, at most that long. */
void service_finder_settle(struct service_finder *finder, int timeout_ms);

/* The owner's name once it is found, else what the port is known for, else "". Valid until the finder is
 * destroyed, as it was at the moment of asking. */
const char *service_finder_name(struct service_finder *finder, uint32_t id);

#endif
