/* On a line of stdin: vfork, and a child that naps 1.5 s. The parent waits for it in state D, not S. */
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

OWN_FRAME static void waits_for_vfork(void)
{
    uint64_t begin_ns = truth_wall_ns();
    pid_t child = vfork();

    if (child == 0) {
        usleep(1500000);
        _exit(0);
    }
    truth_line("{\"vfork_ns\": [%llu, %llu]}", (unsigned long long)begin_ns,
               (unsigned long long)truth_wall_ns());
    waitpid(child, NULL, 0);
}

int main(void)
{
    truth_begin();
    truth_line("{\"tid\": %d}", truth_tid());
    while (truth_wait_for_line())
        waits_for_vfork();
    return 0;
}
