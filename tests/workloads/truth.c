#include "truth.h"

#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void truth_begin(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1) /* the test ended before the call above */
        exit(1);
}

void truth_line(const char *format, ...)
{
    char line[4096];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof(line) - 1)
        abort();
    line[length] = '\n';
    /* One write, so that lines of several threads do not mix; a test that no longer reads is no fault. */
    if (write(STDOUT_FILENO, line, (size_t)length + 1) < 0)
        return;
}

bool truth_wait_for_line(void)
{
    char c;

    for (;;) {
        if (read(STDIN_FILENO, &c, 1) != 1)
            return false;
        if (c == '\n')
            return true;
    }
}

pid_t truth_tid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t truth_wall_ns(void)
{
    return now_ns(CLOCK_REALTIME);
}

uint64_t truth_thread_cpu_ns(void)
{
    return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

void truth_sleep_ms(uint64_t milliseconds)
{
    struct timespec t = {.tv_sec = (time_t)(milliseconds / 1000),
                         .tv_nsec = (long)(milliseconds % 1000) * 1000000};

    while (nanosleep(&t, &t) != 0)
        continue;
}

struct start {
    const char *name;
    void (*run)(void *);
    void *argument;
    pid_t tid;
    sem_t ready;
};

static void *start_thread(void *argument)
{
    struct start *start = argument;
    void (*run)(void *) = start->run;
    void *run_argument = start->argument;

    prctl(PR_SET_NAME, start->name);
    start->tid = truth_tid();
    sem_post(&start->ready); /* start lives on the creator's stack: not ours any more */
    run(run_argument);
    NO_TAIL_CALL();
    return NULL;
}

pthread_t truth_thread(const char *name, void (*run)(void *), void *argument, pid_t *ret_tid)
{
    struct start start = {.name = name, .run = run, .argument = argument};
    pthread_attr_t attributes;
    pthread_t thread;

    sem_init(&start.ready, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    int error = pthread_create(&thread, &attributes, start_thread, &start);
    if (error != 0) {
        fprintf(stderr, "workload: thread %s: %s\n", name, strerror(error));
        exit(1);
    }
    pthread_attr_destroy(&attributes);
    while (sem_wait(&start.ready) != 0)
        continue;
    if (ret_tid != NULL)
        *ret_tid = start.tid;
    return thread;
}
