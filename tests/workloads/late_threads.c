/* Three hot threads before anybody attaches; one more for each line of stdin. */
#include "truth.h"

OWN_FRAME static void burns(void *unused)
{
    (void)unused;
    for (;;)
        spin(1000000);
}

OWN_FRAME static void burns_late(void *unused)
{
    burns(unused);
    NO_TAIL_CALL();
}

int main(void)
{
    pid_t early[3], late;

    truth_begin();
    for (int i = 0; i < 3; i++)
        truth_thread("early", burns, NULL, &early[i]);
    truth_line("{\"tid\": %d, \"early\": [%d, %d, %d]}", truth_tid(), early[0], early[1], early[2]);
    while (truth_wait_for_line()) {
        truth_thread("late", burns_late, NULL, &late);
        truth_line("{\"late\": %d}", late);
    }
    return 0;
}
