/* many_threads N: N sleeping threads and a hot main thread. */
#include <stdlib.h>

#include "truth.h"

OWN_FRAME static void sleeps(void *unused)
{
    (void)unused;
    for (;;)
        truth_sleep_ms(500);
}

OWN_FRAME static void hot(void)
{
    spin(1000000);
}

int main(int count, char **arguments)
{
    truth_begin();
    unsigned long threads = count > 1 ? strtoul(arguments[1], NULL, 10) : 1;
    for (unsigned long i = 0; i < threads; i++)
        truth_thread("sleeper", sleeps, NULL, NULL);
    truth_line("{\"tid\": %d, \"threads\": %lu}", truth_tid(), threads);
    for (;;)
        hot();
}
