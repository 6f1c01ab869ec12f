/* A little of everything, for the books: threads that burn, nap, block, bounce bytes, and come and go every
 * 100 ms. */
#include <stdio.h>
#include <unistd.h>

#include "truth.h"

static int there[2], back[2];

OWN_FRAME static void burns(void *unused)
{
    (void)unused;
    for (;;)
        spin(1000000);
}

OWN_FRAME static void burns_and_naps(void *unused)
{
    (void)unused;
    for (;;) {
        spin(10000000);
        truth_sleep_ms(20);
    }
}

OWN_FRAME static void naps_short(void *unused)
{
    (void)unused;
    for (;;)
        truth_sleep_ms(2);
}

OWN_FRAME static void blocks(void *unused)
{
    (void)unused;
    for (;;)
        pause();
}

OWN_FRAME static void echoes(void *unused)
{
    char c;

    (void)unused;
    while (read(there[0], &c, 1) == 1) {
        spin(200000);
        if (write(back[1], &c, 1) != 1)
            break;
    }
}

OWN_FRAME static void asks(void *unused)
{
    char c = 'x';

    (void)unused;
    for (;;) {
        if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
            break;
        spin(200000);
    }
}

OWN_FRAME static void lives_briefly(void *unused)
{
    (void)unused;
    spin(10000000);
    truth_sleep_ms(60);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void *);
    } kinds[] = {
        {"burns", burns},           {"burns-naps", burns_and_naps},
        {"naps-short", naps_short}, {"blocks", blocks},
        {"echoes", echoes},         {"asks", asks},
    };
    enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
    pid_t tids[KINDS];

    truth_begin();
    if (pipe(there) != 0 || pipe(back) != 0)
        return 1;
    for (int i = 0; i < KINDS; i++)
        truth_thread(kinds[i].name, kinds[i].run, NULL, &tids[i]);
    truth_line("{\"tid\": %d, \"burns\": %d, \"burns_naps\": %d, \"naps_short\": %d, \"blocks\": %d, "
               "\"echoes\": %d, "
               "\"asks\": %d}",
               truth_tid(), tids[0], tids[1], tids[2], tids[3], tids[4], tids[5]);
    for (;;) {
        pthread_t brief = truth_thread("brief", lives_briefly, NULL, NULL);
        pthread_join(brief, NULL);
        truth_sleep_ms(40);
    }
}
