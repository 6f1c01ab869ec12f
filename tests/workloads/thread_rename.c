/* A hot thread that takes another name on each line of stdin: name-one, name-two, name-three. */
#include <stdio.h>

#include "truth.h"

OWN_FRAME static void hot(void *unused)
{
    (void)unused;
    for (;;)
        spin(2000000);
}

int main(void)
{
    static const char *const names[] = {"name-two", "name-three"};
    pid_t tid;

    truth_begin();
    pthread_t thread = truth_thread("name-one", hot, NULL, &tid);
    truth_line("{\"tid\": %d}", tid);
    for (int i = 0; i < 2 && truth_wait_for_line(); i++) {
        pthread_setname_np(thread, names[i]);
        truth_line("{\"name\": \"%s\"}", names[i]);
    }
    truth_wait_for_line();
    return 0;
}
