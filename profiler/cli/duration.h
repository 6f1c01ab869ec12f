/* Spans of time as people write them: "30", "0.5", "200ms", "30s", "2m", "1h", "00:00:30" (hh:mm:ss),
 * "00:00:00:30" (dd:hh:mm:ss). */
#ifndef STALLGRAPH_CLI_DURATION_H
#define STALLGRAPH_CLI_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* False for what is none, is not above zero, or is longer than a hundred years. */
bool duration_parse(const char *text, uint64_t *ret_ns);

#endif
