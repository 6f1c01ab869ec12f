/* Durations by powers of two, with their exact number and sum. */
#ifndef STALLGRAPH_MODEL_HISTOGRAM_H
#define STALLGRAPH_MODEL_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_BINS = 40 }; /* bin n: [2^n, 2^(n+1)) ns; bin 0 from 0; the last one has no end */

/* Zeroed is empty. */
struct histogram {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t bins[HISTOGRAM_BINS];
};

void histogram_add(struct histogram *histogram, const struct histogram *more);

/* 0 when there is nothing. */
uint64_t histogram_mean_ns(const struct histogram *histogram);

/* The duration that the given share (0.99) of all does not exceed, interpolated within its bin: right to a
 * factor of two. */
uint64_t histogram_percentile_ns(const struct histogram *histogram, double share);

#endif
