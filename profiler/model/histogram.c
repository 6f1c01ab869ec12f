#include "profiler/model/histogram.h"

void histogram_add(struct histogram *histogram, const struct histogram *more)
{
    histogram->count += more->count;
    histogram->sum_ns += more->sum_ns;
    for (int i = 0; i < HISTOGRAM_BINS; i++)
        histogram->bins[i] += more->bins[i];
}

uint64_t histogram_mean_ns(const struct histogram *histogram)
{
    return histogram->count > 0 ? histogram->sum_ns / histogram->count : 0;
}

uint64_t histogram_percentile_ns(const struct histogram *histogram, double share)
{
    uint64_t total = 0;
    double wanted;
    double before = 0;

    for (int i = 0; i < HISTOGRAM_BINS; i++)
        total += histogram->bins[i];
    wanted = share * (double)total;
    for (int i = 0; i < HISTOGRAM_BINS; i++) {
        double in_bin = (double)histogram->bins[i];

        if (in_bin > 0 && before + in_bin >= wanted) {
            double low = i > 0 ? (double)(UINT64_C(1) << i) : 0;
            double high = (double)(UINT64_C(1) << (i + 1));

            return (uint64_t)(low + (high - low) * (wanted - before) / in_bin);
        }
        before += in_bin;
    }
    return 0;
}
