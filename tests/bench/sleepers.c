/* sleepers PROCESSES THREADS BUSY PERIOD_US [DEPTH]: PROCESSES processes of THREADS threads each, all of them
 * blocked. BUSY threads of each process sleep for PERIOD_US again and again, so that they block anew all the
 * time; the others wait for what never comes. DEPTH frames stand on each stack, not counting libc's. On a
 * line of stdin the first process prints what it did so far:
 *
 *   {"time_ns": 812345678901, "threads": 100, "sleeps": 123456, "switches": 123460} */
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

static unsigned long period_us, depth;
static atomic_ulong *sleeps; /* of all processes */

OWN_FRAME static void blocks(unsigned long left, int busy)
{
    const struct timespec period = {.tv_sec = (time_t)(period_us / 1000000),
                                    .tv_nsec = (long)(period_us % 1000000) * 1000};

    if (left > 1) {
        blocks(left - 1, busy);
        NO_TAIL_CALL();
    } else if (busy) {
        nanosleep(&period, NULL);
        NO_TAIL_CALL();
    } else {
        pause();
        NO_TAIL_CALL();
    }
}

static void *run_busy(void *unused)
{
    (void)unused;
    for (;;) {
        blocks(depth, 1);
        atomic_fetch_add_explicit(sleeps, 1, memory_order_relaxed);
    }
    return NULL;
}

static void *run_idle(void *unused)
{
    (void)unused;
    for (;;)
        blocks(depth, 0);
    return NULL;
}

static void start_threads(unsigned long threads, unsigned long busy)
{
    /* The first thread is one of those that are idle. */
    for (unsigned long i = 1; i < threads; i++)
        bench_thread(i <= busy ? run_busy : run_idle, NULL);
}

static void start_processes(unsigned long processes, unsigned long threads, unsigned long busy)
{
    for (unsigned long i = 1; i < processes; i++) {
        pid_t pid = fork();

        if (pid < 0) {
            perror("fork");
            exit(1);
        }
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            start_threads(threads, busy);
            run_idle(NULL);
        }
    }
}

int main(int count, char **arguments)
{
    unsigned long processes = bench_number(count, arguments, 1, 1);
    unsigned long threads = bench_number(count, arguments, 2, 1);
    unsigned long busy = bench_number(count, arguments, 3, 0);

    period_us = bench_number(count, arguments, 4, 1000);
    depth = bench_number(count, arguments, 5, 10);
    bench_begin();
    sleeps = mmap(NULL, sizeof *sleeps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sleeps == MAP_FAILED)
        return 1;
    start_processes(processes, threads, busy);
    start_threads(threads, busy);
    do {
        printf("{\"time_ns\": %llu, \"threads\": %lu, \"sleeps\": %lu, \"switches\": %ld}\n",
               (unsigned long long)bench_now_ns(), processes * threads,
               atomic_load_explicit(sleeps, memory_order_relaxed), bench_switches());
    } while (bench_wait_for_line());
    return 0;
}
