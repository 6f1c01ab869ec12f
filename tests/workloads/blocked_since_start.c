/* Threads that block before anybody attaches and never wake: each in a function of its own. */
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "truth.h"

static int pipe_fds[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

OWN_FRAME static void sleeps_long(void *unused)
{
    (void)unused;
    truth_sleep_ms(600000);
    NO_TAIL_CALL();
}

OWN_FRAME static void polls_for_ever(void *unused)
{
    struct pollfd fd = {.fd = pipe_fds[0], .events = POLLIN};

    (void)unused;
    poll(&fd, 1, -1);
    NO_TAIL_CALL();
}

OWN_FRAME static void reads_a_pipe(void *unused)
{
    char c;

    (void)unused;
    if (read(pipe_fds[0], &c, 1) < 0)
        NO_TAIL_CALL();
    NO_TAIL_CALL();
}

OWN_FRAME static void waits_for_condition(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    for (;;)
        pthread_cond_wait(&condition, &mutex);
}

OWN_FRAME static void waits_for_mutex(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&contended);
    NO_TAIL_CALL();
}

int main(void)
{
    pid_t tids[5];

    truth_begin();
    if (pipe(pipe_fds) != 0)
        return 1;
    pthread_mutex_lock(&contended);
    truth_thread("in-sleep", sleeps_long, NULL, &tids[0]);
    truth_thread("in-poll", polls_for_ever, NULL, &tids[1]);
    truth_thread("in-read", reads_a_pipe, NULL, &tids[2]);
    truth_thread("in-condition", waits_for_condition, NULL, &tids[3]);
    truth_thread("in-mutex", waits_for_mutex, NULL, &tids[4]);
    truth_sleep_ms(50); /* all are blocked by then */
    truth_line(
        "{\"sleeps_long\": %d, \"polls_for_ever\": %d, \"reads_a_pipe\": %d, \"waits_for_condition\": %d, "
        "\"waits_for_mutex\": %d}",
        tids[0], tids[1], tids[2], tids[3], tids[4]);
    sleeps_long(NULL);
    return 0;
}
