/* What the benchmark's workload programs share. Each prints lines of JSON about itself; a line on its stdin
 * asks for the next one. */
#ifndef STALLGRAPH_BENCH_BENCH_H
#define STALLGRAPH_BENCH_BENCH_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

/* A function that keeps its own frame and name, whatever the optimizer thinks. */
#ifdef __clang__
#define OWN_FRAME __attribute__((noinline))
#else
#define OWN_FRAME __attribute__((noipa))
#endif

/* After a call in last place: keeps the compiler from making a jump of it, which would drop the caller's
 * frame. */
#define NO_TAIL_CALL() __asm__ volatile("")

static inline uint64_t bench_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Context switches of all threads of this process so far. */
static inline long bench_switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* It must not outlive the benchmark, however that ends. */
static inline void bench_begin(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline int bench_wait_for_line(void)
{
    char line[64];

    return fgets(line, sizeof line, stdin) != NULL;
}

/* Threads have small stacks here: ten thousand of them are wanted. */
static inline void bench_thread(void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int code;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    code = pthread_create(&thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    if (code != 0) {
        fprintf(stderr, "a thread could not be made: error %d\n", code);
        exit(1);
    }
    pthread_detach(thread);
}

static inline unsigned long bench_number(int count, char **arguments, int index, unsigned long otherwise)
{
    return index < count ? strtoul(arguments[index], NULL, 10) : otherwise;
}

#endif
