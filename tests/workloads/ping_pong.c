/* Two threads that bounce a byte through pipes: as many context switches as the machine can do. On a line of
 * stdin they say how many rounds they did. */
#include <unistd.h>

#include "truth.h"

static int there[2], back[2];
static volatile uint64_t rounds;

OWN_FRAME static void bounces(int in, int out)
{
    char c;

    if (read(in, &c, 1) != 1 || write(out, &c, 1) != 1)
        _exit(1);
}

OWN_FRAME static void pings(void *unused)
{
    (void)unused;
    if (write(there[1], "x", 1) != 1)
        _exit(1);
    for (;;) {
        bounces(back[0], there[1]);
        rounds++;
    }
}

OWN_FRAME static void pongs(void *unused)
{
    (void)unused;
    for (;;) {
        bounces(there[0], back[1]);
        NO_TAIL_CALL();
    }
}

int main(void)
{
    pid_t pong, ping;

    truth_begin();
    if (pipe(there) != 0 || pipe(back) != 0)
        return 1;
    truth_thread("pong", pongs, NULL, &pong);
    truth_thread("ping", pings, NULL, &ping);
    truth_line("{\"tid\": %d, \"ping\": %d, \"pong\": %d}", truth_tid(), ping, pong);
    while (truth_wait_for_line())
        truth_line("{\"rounds\": %llu}", (unsigned long long)rounds);
    return 0;
}
