/* What the workload programs share. A workload is a small program whose behaviour is known: it prints what it
 * is, and what it measured of itself, as lines of JSON on stdout, and the tests hold a profile of it against
 * that.
 *
 *   int main(void)
 *   {
 *       truth_begin();
 *       truth_line("{\"tid\": %d}", truth_tid());        // the first line says: ready to be profiled
 *       for (;;)
 *           hot_leaf();
 *   }
 *
 * Stdin is the way to steer one: truth_wait_for_line() blocks until the test writes a line. */
#ifndef STALLGRAPH_WORKLOADS_TRUTH_H
#define STALLGRAPH_WORKLOADS_TRUTH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A function that keeps its own frame and name, whatever the optimizer thinks. */
#ifdef __clang__
#define OWN_FRAME __attribute__((noinline))
#else
#define OWN_FRAME __attribute__((noipa))
#endif

/* After a call in last place: keeps the compiler from making a jump of it, which would drop the caller's
 * frame. */
#define NO_TAIL_CALL() __asm__ volatile("")

/* Ends this process when the test that started it ends, however that happens. */
void truth_begin(void);

/* Writes one line, at once. */
__attribute__((format(printf, 1, 2))) void truth_line(const char *format, ...);

/* Reads one line of stdin and drops it; false at its end. */
bool truth_wait_for_line(void);

pid_t truth_tid(void);
uint64_t truth_wall_ns(void);       /* CLOCK_REALTIME: what the profile's start is given in */
uint64_t truth_thread_cpu_ns(void); /* CPU time of the calling thread */

void truth_sleep_ms(uint64_t milliseconds);

/* Starts a thread of that name; exits with a message where it cannot. Returns once the thread has its name:
 * *ret_tid is its number. */
pthread_t truth_thread(const char *name, void (*run)(void *), void *argument, pid_t *ret_tid);

/* Spends CPU time in the function that calls it: about 1 ms a million rounds, and no call of anything. */
__attribute__((always_inline)) static inline void spin(uint64_t rounds)
{
    uint64_t x = rounds;
    for (uint64_t i = 0; i < rounds; i++) {
        x = x * 31 + i;
        __asm__ volatile("" : "+r"(x));
    }
}

#endif
