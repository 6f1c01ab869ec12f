/* Threads of different lifetimes. "waits" blocks throughout, "naps" sleeps 0.3 s at a time, "leaves" blocks
 * once and returns while it is watched (2.5 s after the first line), "comes" is born on a line of stdin. */
#include <time.h>

#include "truth.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

OWN_FRAME static void waits(void *unused)
{
    struct timespec until;

    (void)unused;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
}

OWN_FRAME static void naps(void *unused)
{
    (void)unused;
    for (;;)
        truth_sleep_ms(300);
}

OWN_FRAME static void leaves(void *unused)
{
    (void)unused;
    truth_sleep_ms(2500);
    truth_line("{\"left_wall_ns\": %llu}", (unsigned long long)truth_wall_ns());
}

int main(void)
{
    pid_t waits_tid, naps_tid, leaves_tid, comes_tid;

    truth_begin();
    truth_thread("waits", waits, NULL, &waits_tid);
    truth_thread("naps", naps, NULL, &naps_tid);
    truth_thread("leaves", leaves, NULL, &leaves_tid);
    truth_line("{\"tid\": %d, \"waits\": %d, \"naps\": %d, \"leaves\": %d}", truth_tid(), waits_tid, naps_tid,
               leaves_tid);
    if (truth_wait_for_line()) {
        truth_thread("comes", naps, NULL, &comes_tid);
        truth_line("{\"comes\": %d, \"came_wall_ns\": %llu}", comes_tid, (unsigned long long)truth_wall_ns());
    }
    naps(NULL);
    return 0;
}
