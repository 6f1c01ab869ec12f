/* main -> work, interrupted ten times a second by a handler that burns on the same stack. */
#include <signal.h>
#include <sys/time.h>

#include "truth.h"

OWN_FRAME static void in_handler(int signal_number)
{
    (void)signal_number;
    spin(30000000);
}

OWN_FRAME static void work(void)
{
    for (;;)
        spin(1000000);
}

int main(void)
{
    struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_RESTART};
    struct itimerval interval = {.it_interval = {.tv_usec = 100000}, .it_value = {.tv_usec = 100000}};

    truth_begin();
    sigaction(SIGALRM, &action, NULL);
    truth_line("{\"tid\": %d}", truth_tid());
    setitimer(ITIMER_REAL, &interval, NULL);
    work();
    return 0;
}
