/* Keeps the spans of a long session within bounded memory: what is older than some seconds loses its exact
 * order in time, not its amounts. Within a slice of time, spans of one state and stack become one; slices get
 * longer as the session does.
 *
 *   struct span_budget budget = {.max_spans = 300000};
 *   span_budget_keep(&budget, list_at, owner, list_count);      // now and then
 */
#ifndef STALLGRAPH_MODEL_SPAN_BUDGET_H
#define STALLGRAPH_MODEL_SPAN_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/model/span_list.h"

struct span_budget {
    size_t max_spans;
    uint64_t slice_ns; /* to which time order is kept; 0 = exact so far */
};

/* list_at gives list number index of owner. Does nothing while all lists together are within the budget. */
void span_budget_keep(struct span_budget *budget, struct span_list *(*list_at)(void *owner, size_t index),
                      void *owner, size_t list_count);

/* One list, in slices of slice_ns. The last two seconds stay as they are: stacks may still come for them. */
void span_list_coarsen(struct span_list *list, uint64_t slice_ns);

#endif
