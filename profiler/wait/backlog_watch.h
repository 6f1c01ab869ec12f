/* Looks, about once a second and beside the sampling, at the TCP sockets of some processes for signs that work piles up:
 * connections that nobody accepts, requests that nobody reads, requests of their own that are under way.
 *
 *   struct backlog_watch *watch = backlog_watch_create();
 *   backlog_watch_add(watch, pid);            // any number of times
 *   backlog_watch_start(watch);
 *   ...
 *   backlog_watch_stop(watch);
 *   listeners = backlog_watch_listeners(watch, &count);
 *
 * A thread of its own does it, which enters the processes' network namespaces, and which takes at most one part in a
 * hundred of a CPU: it waits longer where there are many sockets. Where the rights are missing there are no results. */
#ifndef STALLGRAPH_WAIT_BACKLOG_WATCH_H
#define STALLGRAPH_WAIT_BACKLOG_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/wait/backlog_tally.h"

struct backlog_watch;

struct backlog_watch *backlog_watch_create(void);
void backlog_watch_destroy(struct backlog_watch *watch); /* NULL allowed; stops it */

/* A process whose sockets count, from now until it ends; more than 64 at a time are not looked at. */
void backlog_watch_add(struct backlog_watch *watch, pid_t pid);

/* 0 or -errno. */
int backlog_watch_start(struct backlog_watch *watch);
/* Waits for the look that is under way, though not for long. Results may be read from then on. */
void backlog_watch_stop(struct backlog_watch *watch);

/* Valid until the watch is destroyed. None before it was stopped. */
const struct backlog_listener *backlog_watch_listeners(const struct backlog_watch *watch, size_t *ret_count);
const struct backlog_peer *backlog_watch_peers(const struct backlog_watch *watch, size_t *ret_count);

#endif
