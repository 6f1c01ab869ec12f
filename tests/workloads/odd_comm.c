/* A process and a thread whose names hold a space, a separator, a line break, a byte that is no UTF-8, a
 * quote and markup. */
#include <sys/prctl.h>

#include "truth.h"

OWN_FRAME static void hot(void *unused)
{
    (void)unused;
    for (;;)
        spin(2000000);
}

OWN_FRAME static void sleeps(void *unused)
{
    (void)unused;
    for (;;)
        truth_sleep_ms(50);
}

int main(void)
{
    pid_t tid;

    truth_begin();
    prctl(PR_SET_NAME, "a b;c\n\xff\"<&");
    truth_thread(";[x]\r\x1b\\ 12", sleeps, NULL, &tid);
    truth_line("{\"tid\": %d, \"sleeper\": %d}", truth_tid(), tid);
    hot(NULL);
    return 0;
}
