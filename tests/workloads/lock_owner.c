/* Eight threads take the lock cache_mu again and again; a ninth holds it for 80 ms of each 100, asleep in
 * refresh_cache. Prints its process and the holder's thread number, and runs until its stdin ends:
 *
 *   {"pid": 4242, "holder": 4243} */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { READERS = 8 };

pthread_mutex_t cache_mu = PTHREAD_MUTEX_INITIALIZER;
static atomic_int holder;
static atomic_ulong reads;

static void nap_ms(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};

    nanosleep(&time, NULL);
}

__attribute__((noinline)) static void refresh_cache(void)
{
    nap_ms(80);
    __asm__ volatile("");
}

static void *hold(void *unused)
{
    (void)unused;
    holder = (int)syscall(SYS_gettid);
    for (;;) {
        pthread_mutex_lock(&cache_mu);
        refresh_cache();
        pthread_mutex_unlock(&cache_mu);
        nap_ms(20);
    }
    return NULL;
}

__attribute__((noinline)) static void read_cache(void)
{
    pthread_mutex_lock(&cache_mu);
    reads++;
    pthread_mutex_unlock(&cache_mu);
    __asm__ volatile("");
}

static void *read_again(void *unused)
{
    (void)unused;
    for (;;) {
        read_cache();
        nap_ms(1);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, hold, NULL) != 0)
        return 1;
    for (int i = 0; i < READERS; i++)
        if (pthread_create(&thread, NULL, read_again, NULL) != 0)
            return 1;
    while (holder == 0)
        nap_ms(1);
    printf("{\"pid\": %d, \"holder\": %d}\n", getpid(), holder);
    fflush(stdout);
    getchar();
    return 0;
}
