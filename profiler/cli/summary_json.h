/* The summary of a profile for machines: one JSON object, on lines.
 *
 *   {"version": 1, "title", "durationNs", "threads": number, "threadTimeNs", "timeNs": {"on-cpu": ..., "idle": ...},
 *    "verdicts": [{"kind": "pool-starved", "pool": index, "wait": index, "waitText", "function", figures ...}],
 *    "noVerdictBecause": text,                    only where the evidence cannot be judged
 *    "waits": [{"wait", "kind", "blockedNs", "idleNs", "threads": on average, "function", "functionNs",
 *               "count", "meanNs", "p99Ns"}],     the last three only with --counts; the largest first
 *    "locks": [{"lock", "waitedNs", "unknownNs": of these, holder not known, "ownerNs": of these, while the holder did
 *               what follows, "ownerState", "ownerIn": frame, "ownerFunction", "ownerName", "ownerTid"}],
 *    "pools": [{"process", "name", "main": bool, "start", "threads": seen in all, "atBegin", "atEnd", "heldNs",
 *               "timeNs": {...}, "wait": index, "function"}],
 *    "listeners": [...], "peers": [...],          means and maxima
 *    "cpuQuota": {"periods", "throttledPeriods", "throttledNs", "quotaNs", "periodNs"},     only where there is one
 *    "loss": {"lostNs", "unsampledNs", "lostEvents", "truncatedStacks", "unwoundStacks", "unpermittedNs",
 *             "unplacedWaits"}}
 *
 * What does not apply, or is not known, is left out. */
#ifndef STALLGRAPH_CLI_SUMMARY_JSON_H
#define STALLGRAPH_CLI_SUMMARY_JSON_H

#include <stdio.h>

#include "profiler/model/profile.h"

void summary_json_print(FILE *out, const struct profile *profile);

#endif
