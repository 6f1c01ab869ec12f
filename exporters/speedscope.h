/* The keys of our speedscope files, for those who write them and those who read them back.
 *
 * The file is what https://www.speedscope.app/file-format-schema.json asks for, so that the viewer opens it.
 * What that format has no place for stands under keys of our own, which the viewer ignores:
 *
 *   {"$schema": ..., "name": TITLE, "exporter": "stallgraph@0.1.0", "activeProfileIndex": 0,
 *    "stallgraph": {"version": 1, "title", "commandLine", "host", "kernel", "engines": texts, "frequencyHz": number,
 *                   "startUnixSeconds", "startUnixNanoseconds", "durationNs",
 *                   "cpuCount",                    of the machine; left out where it is not known
 *                   "loss": {"lostEvents", "unwoundStacks", "truncatedStacks", "unpermittedNs", "unplacedWaits"},
 *                   "looks": {"passes", "stacksTaken", "stacksLeftOut", "stacksRaced", "stacksRecalled",
 *                             "stacksDeep", "deepFailed", "deepRecalled",
 *                             "byWaitLength": [{"belowNs", "stacks", "lost"}]},    engine tick
 *                   "cpuQuota": {"periods", "throttledPeriods", "throttledNs", "quotaNs", "periodNs"},
 *                   "states": ["on-cpu", ...],     what the numbers in "states" and "timeNs" below stand for
 *                   "processes": [{"pid", "name"}],
 *                   "threads": [{"process": index, "tid", "name", "main": bool, "beginNs", "endNs", "lifetimeNs",
 *                                "timeNs": [per state], "unsampledNs", "lostNs",
 *                                "kernelOnCpuNs", "kernelRunnableNs"}],    the last two only where they were read
 *                   "listeners": [{"address": "tcp 0.0.0.0:8080", "looks", "queuedLooks", "backlog", "queueMax",
 *                                  "queueSum", "connectionsMax", "connectionsSum", "unreadMax", "unreadSum"}],
 *                   "peers": [{"address", "looks", "inFlightMax", "inFlightSum", "connectionsMax",
 *                              "connectionsSum"}],      these two only where there are any
 *                   "waits": [{"stack": [frames, root first], "count", "sumNs",
 *                              "bins": [of [2^n, 2^(n+1)) ns]}],           only with --counts
 *                   "locks": [{"stack": of those who wait, "waitedNs", "owner": thread, "ownerState", "ownerStack"}]},
 *                                                  without the last three: not known
 *    "shared": {"frames": [{"name", "file": module, "kind": "kernel"|"wait"|"synthetic", "wait": "network",
 *                           "buildId"}]},          keys that would be empty are left out; without "kind" it is user code
 *    "profiles": [{"type": "sampled", "name", "unit", "startValue": 0, "endValue", "samples", "weights",
 *                  "stallgraph": {"thread": index, "states": [a number per sample]}}]}
 *
 * - profiles[0] is derived: all threads added up, one sample for each stack and state; its "thread" is -1. A
 * reader skips it. Idle stacks stand below a first frame "[idle]" there (unless idle time is merged or
 * hidden).
 * - profiles[1 + i] is threads[i] in time order. A sample without frames (state -1) is a gap: the thread was
 * not alive, or its time was filtered out. So a sample's start is the sum of the weights before it.
 * - frames[i] is frame i of the profile; three frames that only the exporter uses may follow, of kind "mark".
 * - The unit is "nanoseconds"; "microseconds" where the sum of all threads' time would pass 2^53 ns (104
 * days), beyond which a double is not exact. Under "stallgraph" times are always nanoseconds.
 * - A stack of more than SPEEDSCOPE_MAX_DEPTH frames keeps its ends, with the mark "[frames left out]"
 * between them: the viewer throws at 5,000. This is the one thing that does not come back from a file; and
 * bytes of names that were not UTF-8. */
#ifndef STALLGRAPH_EXPORTERS_SPEEDSCOPE_H
#define STALLGRAPH_EXPORTERS_SPEEDSCOPE_H

enum {
    SPEEDSCOPE_MAX_DEPTH = 2000,
    SPEEDSCOPE_KEPT_LEAVES =
        500,             /* of a deeper stack, with its wait; the rest are the callers nearest the root */
    SPEEDSCOPE_GAP = -1, /* in "states" */
    SPEEDSCOPE_ALL_THREADS = -1, /* in "thread" */
};

#define SPEEDSCOPE_SCHEMA "https://www.speedscope.app/file-format-schema.json"
#define SPEEDSCOPE_MARK_KIND "mark"
#define SPEEDSCOPE_MARK_IDLE "[idle]"
#define SPEEDSCOPE_MARK_LEFT_OUT "[frames left out]"
#define SPEEDSCOPE_MARK_NO_STACK "[no stack]"

#endif
