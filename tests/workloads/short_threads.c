/* Threads that live some 3 ms each, one after the other, all of it on a CPU: most are gone before anybody looks. Every 50 ms
 * a line says the time and the CPU time of the whole process. */
#include <time.h>

#include "truth.h"

static void *flash(void *unused)
{
    (void)unused;
    spin(3000000);
    return NULL;
}

static uint64_t process_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(void)
{
    uint64_t next_ns = 0;

    truth_begin();
    truth_line("{\"tid\": %d}", truth_tid());
    for (;;) {
        pthread_t thread;
        uint64_t now_ns = truth_wall_ns();

        if (now_ns >= next_ns) {
            truth_line("{\"wall_ns\": %llu, \"cpu_ns\": %llu}", (unsigned long long)now_ns,
                       (unsigned long long)process_cpu_ns());
            next_ns = now_ns + 50000000;
        }
        if (pthread_create(&thread, NULL, flash, NULL) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
}
