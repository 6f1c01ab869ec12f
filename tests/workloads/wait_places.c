/* One thread for each way to wait for something else than a socket: locks, conditions, queues, sleeps, children, page
 * faults. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "wait_kinds.h"

enum { BIG = 1 << 20 };

static char fifo_path[64];
static pthread_mutex_t cache_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *heap_mu;
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t queue_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_ready = PTHREAD_COND_INITIALIZER;
static pthread_cond_t answer_ready = PTHREAD_COND_INITIALIZER;
static sem_t tokens;
static pthread_t sleeper;
static pthread_barrier_t barrier;

/* --- events --- */

OWN_FRAME static void waits_for_signal(void *unused)
{
    sigset_t set;
    int number;

    (void)unused;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigwait(&set, &number);
    NO_TAIL_CALL();
}

OWN_FRAME static void reads_signalfd(void *unused)
{
    sigset_t set;

    (void)unused;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    read_some(signalfd(-1, &set, 0));
}

OWN_FRAME static void reads_inotify(void *unused)
{
    (void)unused;
    read_some(inotify_init());
}

/* --- queues --- */

OWN_FRAME static void reads_pipe(void *unused)
{
    int ends[2];

    (void)unused;
    checked(pipe(ends), "pipe");
    read_some(ends[0]);
}

OWN_FRAME static void get_part(void)
{
    int ends[2];

    checked(pipe(ends), "pipe");
    read_some(ends[0]);
}

OWN_FRAME static void make_page(void)
{
    get_part();
    NO_TAIL_CALL();
}

OWN_FRAME static void reads_in_request(void *unused)
{
    (void)unused;
    make_page();
    NO_TAIL_CALL();
}

OWN_FRAME static void reads_fifo(void *unused)
{
    (void)unused;
    read_some(checked(open(fifo_path, O_RDWR), "open"));
}

OWN_FRAME static void fills_pipe(void *unused)
{
    int ends[2];
    char *bytes = calloc(1, BIG);

    (void)unused;
    checked(pipe(ends), "pipe");
    for (;;)
        if (write(ends[1], bytes, BIG) < 0)
            fail("write");
}

OWN_FRAME static void reads_eventfd(void *unused)
{
    uint64_t value;

    (void)unused;
    if (read(eventfd(0, 0), &value, sizeof value) < 0)
        fail("read");
    NO_TAIL_CALL();
}

OWN_FRAME static void reads_timerfd(void *unused)
{
    struct itimerspec when = {.it_value.tv_sec = 100000};
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    uint64_t value;

    (void)unused;
    timerfd_settime(fd, 0, &when, NULL);
    if (read(fd, &value, sizeof value) < 0)
        fail("read");
    NO_TAIL_CALL();
}

/* --- locks and conditions --- */

OWN_FRAME static void cache_get(void)
{
    pthread_mutex_lock(&cache_mu);
    NO_TAIL_CALL();
}

OWN_FRAME static void locks_named(void *unused)
{
    (void)unused;
    cache_get();
    NO_TAIL_CALL();
}

OWN_FRAME static void pool_take(void)
{
    pthread_mutex_lock(heap_mu);
    NO_TAIL_CALL();
}

OWN_FRAME static void locks_heap(void *unused)
{
    (void)unused;
    pool_take();
    NO_TAIL_CALL();
}

OWN_FRAME static void locks_reading(void *unused)
{
    (void)unused;
    pthread_rwlock_rdlock(&table_lock);
    NO_TAIL_CALL();
}

OWN_FRAME static void locks_writing(void *unused)
{
    (void)unused;
    pthread_rwlock_wrlock(&table_lock);
    NO_TAIL_CALL();
}

static pthread_mutex_t heir_mu;

OWN_FRAME static void locks_inheriting(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&heir_mu);
    NO_TAIL_CALL();
}

OWN_FRAME static void locks_file(void *unused)
{
    (void)unused;
    flock(checked(open(fifo_path, O_RDWR), "open"), LOCK_EX);
    NO_TAIL_CALL();
}

OWN_FRAME static void next_job(void)
{
    pthread_mutex_lock(&queue_mu);
    for (;;)
        pthread_cond_wait(&queue_ready, &queue_mu);
}

OWN_FRAME static void waits_for_work(void *unused)
{
    (void)unused;
    next_job();
    NO_TAIL_CALL();
}

OWN_FRAME static void get_answer(void)
{
    pthread_mutex_lock(&queue_mu);
    for (;;)
        pthread_cond_wait(&answer_ready, &queue_mu);
}

OWN_FRAME static void load_page(void)
{
    get_answer();
    NO_TAIL_CALL();
}

OWN_FRAME static void handle_request(void)
{
    load_page();
    NO_TAIL_CALL();
}

OWN_FRAME static void waits_in_request(void *unused)
{
    (void)unused;
    handle_request();
    NO_TAIL_CALL();
}

OWN_FRAME static void connection_acquire(void)
{
    for (;;)
        sem_wait(&tokens);
}

OWN_FRAME static void waits_for_turn(void *unused)
{
    (void)unused;
    connection_acquire();
    NO_TAIL_CALL();
}

OWN_FRAME static void waits_for_token(void *unused)
{
    (void)unused;
    for (;;)
        sem_wait(&tokens);
}

OWN_FRAME static void joins(void *unused)
{
    (void)unused;
    pthread_join(sleeper, NULL);
    NO_TAIL_CALL();
}

OWN_FRAME static void meets_others(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    NO_TAIL_CALL();
}

/* --- sleeps, children --- */

OWN_FRAME static void naps(void *unused)
{
    (void)unused;
    for (;;)
        sleep(100000);
}

OWN_FRAME static void back_off(void)
{
    for (;;)
        usleep(900000000);
}

OWN_FRAME static void try_again(void)
{
    back_off();
    NO_TAIL_CALL();
}

OWN_FRAME static void sleeps_in_request(void *unused)
{
    (void)unused;
    try_again();
    NO_TAIL_CALL();
}

OWN_FRAME static void selects_nothing(void *unused)
{
    struct timeval when = {.tv_sec = 1000000};

    (void)unused;
    select(0, NULL, NULL, NULL, &when);
    NO_TAIL_CALL();
}

/* --- page faults: of memory that nobody fills --- */

static char *empty_memory;
enum { PAGES = 8, PAGE = 4096 };

OWN_FRAME static void loads(void *unused)
{
    (void)unused;
    (void)*(volatile char *)&empty_memory[0];
}

OWN_FRAME static void stores(void *unused)
{
    (void)unused;
    *(volatile char *)&empty_memory[PAGE] = 1;
}

OWN_FRAME static void copies(void *unused)
{
    char bytes[64];

    (void)unused;
    memcpy(bytes, &empty_memory[2 * PAGE], sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
}

OWN_FRAME static void faults_in_read(void *unused)
{
    (void)unused;
    if (read(checked(open("/proc/self/stat", O_RDONLY), "open"), &empty_memory[3 * PAGE], 16) < 0)
        fail("read");
    NO_TAIL_CALL();
}

OWN_FRAME static void faults_in_write(void *unused)
{
    int ends[2];

    (void)unused;
    checked(pipe(ends), "pipe");
    if (write(ends[1], &empty_memory[4 * PAGE], 16) < 0)
        fail("write");
    NO_TAIL_CALL();
}

static bool make_empty_memory(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range.len = (uint64_t)PAGES * PAGE,
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

    empty_memory =
        mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    range.range.start = (uint64_t)(uintptr_t)empty_memory;
    return fd >= 0 && empty_memory != MAP_FAILED && ioctl(fd, UFFDIO_API, &api) == 0 &&
           ioctl(fd, UFFDIO_REGISTER, &range) == 0;
}

OWN_FRAME static void polls_nothing(void *unused)
{
    (void)unused;
    poll(NULL, 0, 100000000);
    NO_TAIL_CALL();
}

OWN_FRAME static void minds_child(void *unused)
{
    pid_t child = fork();

    (void)unused;
    if (child == 0) {
        truth_begin();
        for (;;)
            pause();
    }
    waitpid(child, NULL, 0);
    NO_TAIL_CALL();
}

/* A command that ends when this process does, since it then reads the end of a pipe. */
OWN_FRAME static void runs_command(void *unused)
{
    char command[80];
    int ends[2];

    (void)unused;
    checked(pipe2(ends, O_CLOEXEC), "pipe2");
    snprintf(command, sizeof command, "exec cat /proc/%d/fd/%d", getpid(), ends[0]);
    if (system(command) != 0)
        fail("system");
}

OWN_FRAME static void pauses(void *unused)
{
    (void)unused;
    pause();
    NO_TAIL_CALL();
}

static void add_places(void)
{
    kind_now = "event loop";
    add("for-signal", waits_for_signal, true, "[wait: rt_sigtimedwait]");
    add("reads-signalfd", reads_signalfd, true, "[wait: signalfd]");
    add("reads-inotify", reads_inotify, true, "[wait: inotify]");
    add("pauses", pauses, true, "[wait: pause]");
    kind_now = "queue";
    add("reads-pipe", reads_pipe, true, "[wait: pipe]");
    add("reads-fifo", reads_fifo, true, "[wait: pipe wait_places_*");
    add("reads-in-req", reads_in_request, false, "[wait: pipe]");
    add("fills-pipe", fills_pipe, false, "[wait: send pipe]");
    add("reads-eventfd", reads_eventfd, true, "[wait: eventfd]");
    kind_now = "lock";
    add("locks-named", locks_named, false, "[wait: lock cache_mu]");
    add("locks-heap", locks_heap, false, "[wait: lock pool_take]");
    add("locks-reading", locks_reading, false, "[wait: lock table_lock]");
    add("locks-writing", locks_writing, false, "[wait: lock table_lock]");
    add("locks-inherit", locks_inheriting, false, "[wait: lock heir_mu]");
    add("locks-file", locks_file, false, "[wait: flock]");
    kind_now = "condition";
    add("waits-for-work", waits_for_work, true, "[wait: condition]");
    add("in-request", waits_in_request, false, "[wait: condition]");
    add("for-turn", waits_for_turn, false, "[wait: semaphore]");
    add("for-token", waits_for_token, true, "[wait: semaphore]");
    add("joins", joins, true, "[wait: join]");
    add("meets-others", meets_others, true, "[wait: barrier]");
    kind_now = "sleep";
    add("reads-timerfd", reads_timerfd, true, "[wait: timerfd]");
    add("naps", naps, true, "[wait: sleep]");
    add("sleeps-in-req", sleeps_in_request, false, "[wait: sleep]");
    add("polls-nothing", polls_nothing, true, "[wait: sleep]");
    add("selects-nothing", selects_nothing, true, "[wait: sleep]");
    if (make_empty_memory()) {
        kind_now = "page fault";
        add("loads", loads, false, "[wait: page fault]");
        add("stores", stores, false, "[wait: page fault]");
        add("copies", copies, false, "[wait: page fault]");
        add("faults-in-read", faults_in_read, false, "[wait: page fault]");
        add("faults-in-write", faults_in_write, false, "[wait: page fault]");
    }
    kind_now = "child";
    add("minds-child", minds_child, true, "[wait: child]");
    add("runs-command", runs_command, false, "[wait: child]");
}

static void prepare(void)
{
    pthread_mutexattr_t attributes;

    snprintf(fifo_path, sizeof fifo_path, "/tmp/wait_places_%d", getpid());
    checked(mkfifo(fifo_path, 0600), "mkfifo");
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&heir_mu, &attributes);
    pthread_mutex_lock(&heir_mu);
    flock(checked(open(fifo_path, O_RDWR), "open"), LOCK_EX);
    heap_mu = malloc(sizeof *heap_mu);
    pthread_mutex_init(heap_mu, NULL);
    pthread_mutex_lock(heap_mu);
    pthread_mutex_lock(&cache_mu);
    pthread_rwlock_wrlock(&table_lock);
    sem_init(&tokens, 0, 0);
    pthread_barrier_init(&barrier, NULL, 2);
}

int main(void)
{
    truth_begin();
    prepare();
    sleeper = truth_thread("sleeper", naps, NULL, NULL);
    add_places();
    run_waiters();
    unlink(fifo_path);
    return 0;
}
