/* Clients of databases, caches and queues, known by the frames of their code: whatever a thread waits for
 * below one, it waits for that service, TLS and pollers in between notwithstanding. Pure. */
#ifndef STALLGRAPH_WAIT_DRIVER_H
#define STALLGRAPH_WAIT_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

struct driver {
    const char *service; /* "postgresql" */
    bool managed; /* code of a managed runtime: its waits show as a lock, since the runtime's own thread reads
                     the socket */
};

/* The driver that a frame belongs to: module is the base name of its file ("libpq.so.5.15"), name its
 * function's. NULL = none. */
const struct driver *driver_of_frame(const char *module, const char *name);

/* Makes "[wait: poll]" into "[wait: poll, database: postgresql]", cut where it does not fit. */
void driver_tag_wait(const char *wait_text, const struct driver *driver, char *ret_text, size_t size);

#endif
