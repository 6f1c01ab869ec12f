"""Ratios of adjacent measurements, and what can be said of their median.

The machine may be busy with other things, and its speed drifts. So each measurement with something on has one with it
off right beside it, the order turning each time, and only the ratio of the two is used."""

import math


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if not ordered:
        return math.nan
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _tail(count, upto):
    """Chance that of so many fair coins at most upto show heads."""
    return sum(math.comb(count, k) for k in range(upto + 1)) / 2**count


def bounds(values, confidence=0.95):
    """(lower, upper) bound of the median, each one-sided, by the sign test: no assumption on the distribution, and no
    random numbers. None where there are too few values for that confidence (fewer than five for 95 %)."""
    ordered = sorted(values)
    rank = 0  # the largest k with P(fewer than k values below the median) <= 1 - confidence
    while rank < len(ordered) and _tail(len(ordered), rank) <= 1 - confidence:
        rank += 1
    if rank == 0:
        return None, None
    return ordered[rank - 1], ordered[-rank]


def summary(values):
    low, high = bounds(values)
    return {"count": len(values), "median": median(values), "lower95": low, "upper95": high, "values": values}


def run_pair(index, measure_on, measure_off):
    """(on, off) of one pair; which one comes first turns with index."""
    if index % 2 == 0:
        off = measure_off()
        return measure_on(), off
    on = measure_on()
    return on, measure_off()


def self_test():
    assert median([3, 1, 2]) == 2 and median([4, 1, 2, 3]) == 2.5
    assert bounds([1, 2, 3, 4]) == (None, None)
    assert bounds([1, 2, 3, 4, 5]) == (1, 5)
    assert bounds(list(range(1, 31))) == (11, 20)  # tables of the sign test: 30 values, one-sided 5 %: 11th
    order = []
    for i in range(2):
        run_pair(i, lambda: order.append("on"), lambda: order.append("off"))
    assert order == ["off", "on", "on", "off"]


if __name__ == "__main__":
    self_test()
