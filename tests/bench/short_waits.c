/* short_waits THREADS: each thread waits for 200 us, 1 ms or 50 ms, in an order of chance, so that each kind takes about a third of its
 * time, and times its waits itself. On a line of stdin it prints how long each kind took in all threads so far:
 *
 *   {"time_ns": 812345678901, "waits_200_us": 123456789, "waits_1_ms": 123456789, "waits_50_ms": 123456789} */
#include <stdatomic.h>

#include "tests/bench/bench.h"

enum { KINDS = 3 };

static atomic_ullong spent_ns[KINDS];

static void wait_for_us(long us)
{
    const struct timespec time = {.tv_nsec = us * 1000};

    nanosleep(&time, NULL);
}

OWN_FRAME static void waits_200_us(void)
{
    wait_for_us(200);
    NO_TAIL_CALL();
}

OWN_FRAME static void waits_1_ms(void)
{
    wait_for_us(1000);
    NO_TAIL_CALL();
}

OWN_FRAME static void waits_50_ms(void)
{
    wait_for_us(50000);
    NO_TAIL_CALL();
}

static void *run(void *seed)
{
    static void (*const kinds[KINDS])(void) = {waits_200_us, waits_1_ms, waits_50_ms};
    struct drand48_data random = {0};
    double at;

    srand48_r((long)(uintptr_t)seed, &random);
    for (;;) {
        int kind;
        uint64_t begin_ns;

        drand48_r(&random, &at);
        kind = at < 0.80 ? 0 : at < 0.996 ? 1 : 2;
        begin_ns = bench_now_ns();
        kinds[kind]();
        atomic_fetch_add_explicit(&spent_ns[kind], bench_now_ns() - begin_ns, memory_order_relaxed);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    unsigned long threads = bench_number(count, arguments, 1, 4);

    bench_begin();
    for (unsigned long i = 0; i < threads; i++)
        bench_thread(run, (void *)(uintptr_t)(i + 1));
    do {
        printf("{\"time_ns\": %llu, \"waits_200_us\": %llu, \"waits_1_ms\": %llu, \"waits_50_ms\": %llu}\n",
               (unsigned long long)bench_now_ns(), atomic_load(&spent_ns[0]), atomic_load(&spent_ns[1]),
               atomic_load(&spent_ns[2]));
    } while (bench_wait_for_line());
    return 0;
}
