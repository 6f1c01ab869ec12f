/* How a socket of the target stands in a wait frame. Looked up once a (process, inode), then kept. */
#ifndef STALLGRAPH_WAIT_SOCKET_NAMER_H
#define STALLGRAPH_WAIT_SOCKET_NAMER_H

#include <stdbool.h>
#include <stdint.h>

#include "profiler/model/wait_role.h"
#include "profiler/wait/service_finder.h"
#include "profiler/wait/socket_address.h"
#include "profiler/wait/socket_owner.h"

enum { SOCKET_NO_SERVICE = UINT32_MAX };

struct socket_name {
    enum wait_role role; /* of reading from it */
    bool connecting;
    char protocol[12];                     /* "tcp", "unix" ... */
    char where[SOCKET_ADDRESS_TEXT_BYTES]; /* "10.0.0.5:5432", ":8080", a path, or "" */
    uint32_t service;                      /* of the finder; SOCKET_NO_SERVICE = owner says it all */
    char owner[SOCKET_OWNER_NAME_BYTES];   /* of the far side of a unix socket; may be "" */
};

/* A process as it is looked at. */
struct socket_process {
    uint32_t id; /* never used for another one */
    int proc_fd; /* of /proc/PID */
    int pid_fd;  /* -1 = none */
};

struct socket_namer;

/* finder is borrowed. */
struct socket_namer *socket_namer_create(struct service_finder *finder);
void socket_namer_destroy(struct socket_namer *namer); /* NULL allowed */

/* The socket behind a descriptor, whose inode its link tells. 0, or -errno. Valid until the next call. */
int socket_namer_find(struct socket_namer *namer, const struct socket_process *process, int fd,
                      uint64_t inode, const struct socket_name **ret_name);

/* Where connect(2) goes. */
void socket_namer_of_target(struct socket_namer *namer, const struct socket_process *process,
                            const struct socket_address *target, const char *protocol,
                            struct socket_name *ret_name);

#endif
