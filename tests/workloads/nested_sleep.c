/* main -> outer_wait -> inner_wait -> usleep, compiled without frame pointers, as libc is. */
#include <unistd.h>

#include "truth.h"

OWN_FRAME static void inner_wait(void)
{
    usleep(100000);
    NO_TAIL_CALL();
}

OWN_FRAME static void outer_wait(void)
{
    inner_wait();
    NO_TAIL_CALL();
}

int main(void)
{
    truth_begin();
    truth_line("{\"tid\": %d}", truth_tid());
    for (;;)
        outer_wait();
}
