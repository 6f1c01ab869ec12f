/* The part that what is waited for plays for a thread: whether it is a dependency, a client, an event loop
 * ... Told from the wait frame's text alone, whose first words are ours (names of the target stand behind
 * them), so that a profile that was read back says the same. Pure. */
#ifndef STALLGRAPH_MODEL_WAIT_ROLE_H
#define STALLGRAPH_MODEL_WAIT_ROLE_H

enum wait_role {
    WAIT_ROLE_UNKNOWN,     /* "[wait: recvfrom]", "[wait: ioctl]" ... */
    WAIT_ROLE_OUTBOUND,    /* "[wait: tcp 10.0.0.5:5432 postgresql]": a dependency */
    WAIT_ROLE_CLIENT,      /* "[wait: client tcp :8080]": a request that has not come yet */
    WAIT_ROLE_SEND_CLIENT, /* "[wait: send client tcp :8080]": a client that does not read */
    WAIT_ROLE_ACCEPT,      /* "[wait: accept tcp :8080]" */
    WAIT_ROLE_EVENT_LOOP,  /* "[wait: epoll]", "[wait: events]", signals, file events */
    WAIT_ROLE_LOCK,        /* "[wait: lock cache_mu]" */
    WAIT_ROLE_CONDITION,   /* "[wait: condition]", "[wait: semaphore]", "[wait: join]", "[wait: barrier]" */
    WAIT_ROLE_TASK,        /* "[wait: task]": a managed runtime's blocking call */
    WAIT_ROLE_QUEUE, /* "[wait: pipe]", "[wait: eventfd]", "[wait: io_uring]": what hands work over, or a part
                        of it */
    WAIT_ROLE_SLEEP,
    WAIT_ROLE_DISK,
    WAIT_ROLE_CHILD,
    WAIT_ROLE_COUNT,
};

enum wait_role wait_role_of_text(const char *text);

#endif
