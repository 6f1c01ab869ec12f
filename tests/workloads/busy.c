/* main -> middle -> hot_leaf, nothing but CPU time. With an argument it ends after so many milliseconds, and
 * says how much CPU time it used. It is also the program that other tests rename, relink, replace and break.
 */
#include <stdlib.h>

#include "truth.h"

/* A variable on the stack: without one gcc gives a leaf no frame, whatever -fno-omit-frame-pointer says. */
OWN_FRAME static void hot_leaf(void)
{
    volatile uint64_t rounds = 2000000;

    spin(rounds);
}

OWN_FRAME static void middle(void)
{
    hot_leaf();
    NO_TAIL_CALL();
}

int main(int count, char **arguments)
{
    uint64_t end_ns = UINT64_MAX;

    truth_begin();
    if (count > 1)
        end_ns = truth_wall_ns() + strtoull(arguments[1], NULL, 10) * 1000000;
    truth_line("{\"tid\": %d}", truth_tid());
    while (truth_wall_ns() < end_ns)
        middle();
    truth_line("{\"cpu_ns\": %llu, \"wall_ns\": %llu}", (unsigned long long)truth_thread_cpu_ns(),
               (unsigned long long)truth_wall_ns());
    return 0;
}
