/* A parent that waits and forks: one hot child before anybody attaches, one more for each line of stdin. */
#include <unistd.h>

#include "truth.h"

OWN_FRAME static void early_worker(void)
{
    for (;;)
        spin(1000000);
}

OWN_FRAME static void late_worker(void)
{
    for (;;)
        spin(1000000);
}

static pid_t start_worker(void (*run)(void))
{
    pid_t child = fork();

    if (child == 0) {
        truth_begin();
        run();
        _exit(0);
    }
    return child;
}

int main(void)
{
    truth_begin();
    pid_t early = start_worker(early_worker);
    truth_line("{\"tid\": %d, \"early\": %d}", truth_tid(), early);
    while (truth_wait_for_line())
        truth_line("{\"late\": %d}", start_worker(late_worker));
    return 0;
}
