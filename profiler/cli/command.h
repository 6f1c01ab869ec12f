/* The command behind "--": started, but held before its exec until sampling has begun.
 *
 *   r = command_start(argv, &command, &err);
 *   ... attach to command.pid ...
 *   command_release(&command);
 *   code = command_wait(&command);
 */
#ifndef STALLGRAPH_CLI_COMMAND_H
#define STALLGRAPH_CLI_COMMAND_H

#include <sys/types.h>

#include "profiler/base/error.h"

struct command {
    pid_t pid;
    int release_fd; /* closing it lets the command go; -1 = released */
    int failure_fd; /* tells errno when exec failed */
};

int command_start(char **argv, struct command *ret_command, struct error *err);

/* 0, or -errno with a message when the command could not be executed (it has then ended). */
int command_release(struct command *command, const char *name, struct error *err);

/* Waits for its end. Returns its exit code, or 128 + the signal that ended it. */
int command_wait(const struct command *command);

/* Ends a command that was never released. */
void command_abandon(struct command *command);

#endif
