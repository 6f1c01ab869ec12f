/* Burns in before_exec until a line comes in, then becomes another program: exec_midway PROGRAM. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "truth.h"

OWN_FRAME static void before_exec(void)
{
    spin(2000000);
}

int main(int count, char **arguments)
{
    struct pollfd line = {.fd = STDIN_FILENO, .events = POLLIN};

    truth_begin();
    if (count < 2)
        return 2;
    truth_line("{\"tid\": %d}", truth_tid());
    while (poll(&line, 1, 0) == 0)
        before_exec();
    truth_line("{\"exec_wall_ns\": %llu, \"cpu_ns\": %llu}", (unsigned long long)truth_wall_ns(),
               (unsigned long long)truth_thread_cpu_ns());
    execl(arguments[1], arguments[1], (char *)NULL);
    return 1;
}
