/* Names of services: what stands on a well-known port, and which names mean the same database. Pure. */
#ifndef STALLGRAPH_WAIT_SERVICE_NAME_H
#define STALLGRAPH_WAIT_SERVICE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "postgresql" for 5432; NULL for a port that says nothing. */
const char *service_name_of_port(uint16_t port);

/* One name for a database, a cache or a queue, whichever way it is called: by its server's program
 * ("postgres", "mysqld"), its port or its client library. NULL for what is none. */
const char *service_database(const char *name);

/* The service in a wait frame: "postgresql" in "[wait: send tcp 10.0.0.5:5432 postgresql]", "nginx" in
 * "[wait: unix /run/x nginx]". Empty where there is none. A copy, cut to the size. */
void service_of_wait(const char *wait_text, char *ret_name, size_t size);

#endif
