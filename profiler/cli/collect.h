/* `stallgraph collect`. */
#ifndef STALLGRAPH_CLI_COLLECT_H
#define STALLGRAPH_CLI_COLLECT_H

enum exit_code {
    EXIT_PROFILE = 0, /* a profile was written */
    EXIT_NO_PROFILE = 1,
    EXIT_USAGE = 2,
    EXIT_LOSS = 3,           /* written, but more than --max-loss is loss */
    EXIT_COMMAND_LOSS = 124, /* the same with -- COMMAND, whose own code is passed on otherwise */
    EXIT_COMMAND_NO_PROFILE = 125,
};

/* argv[0] is "collect". Returns the exit code. */
int collect_main(int argc, char **argv);

#endif
