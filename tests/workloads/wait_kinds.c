/* One thread for each kind of wait, each for ever in one place, with what it waits for and whether that is idle told on
 * stdout: {"threads": 2}, then so many lines {"tid": 1, "name": "...", "wait": "[wait: ...]", "idle": true}. A wait
 * text that ends in "*" is a beginning. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

struct kind {
    const char *name;
    void (*run)(void *);
    char wait[160];
    bool idle;
    pid_t tid;
};

enum { MAX_KINDS = 64, BIG = 1 << 20 };

static struct kind kinds[MAX_KINDS];
static int kind_count;
static int port4, port6; /* of our own listening sockets */
static char path[64];    /* of our unix socket */
static char backend_path[64];
static int backend4, backend6; /* ports of another process, who never answers */
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

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int checked(int r, const char *what)
{
    if (r < 0)
        fail(what);
    return r;
}

static int listen_at(int family, int *ret_port)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&in : (struct sockaddr *)&in6;
    socklen_t size = family == AF_INET ? sizeof in : sizeof in6;
    int fd = checked(socket(family, SOCK_STREAM, 0), "socket");

    checked(bind(fd, address, size), "bind");
    checked(listen(fd, 64), "listen");
    checked(getsockname(fd, address, &size), "getsockname");
    *ret_port = ntohs(family == AF_INET ? in.sin_port : in6.sin6_port);
    return fd;
}

static int connect_to(int family, int port)
{
    struct sockaddr_in6 in6 = {
        .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    int fd = checked(socket(family, SOCK_STREAM, 0), "socket");

    if (family == AF_INET)
        checked(connect(fd, (struct sockaddr *)&in, sizeof in), "connect");
    else
        checked(connect(fd, (struct sockaddr *)&in6, sizeof in6), "connect");
    return fd;
}

static struct sockaddr_un unix_address(const char *name)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    snprintf(un.sun_path, sizeof un.sun_path, "%s", name);
    return un;
}

static int listen_unix(const char *name)
{
    struct sockaddr_un un = unix_address(name);
    int fd = checked(socket(AF_UNIX, SOCK_STREAM, 0), "socket");

    unlink(name);
    checked(bind(fd, (struct sockaddr *)&un, sizeof un), "bind");
    checked(listen(fd, 64), "listen");
    return fd;
}

static int connect_unix(const char *name)
{
    struct sockaddr_un un = unix_address(name);
    int fd = checked(socket(AF_UNIX, SOCK_STREAM, 0), "socket");

    checked(connect(fd, (struct sockaddr *)&un, sizeof un), "connect");
    return fd;
}

/* A process that listens, answers nothing, and is called "backend". */
static void start_backend(void)
{
    int ends[2];
    int ports[2];

    checked(pipe(ends), "pipe");
    if (checked(fork(), "fork") == 0) {
        truth_begin();
        pthread_setname_np(pthread_self(), "backend");
        listen_unix(backend_path);
        listen_at(AF_INET, &ports[0]);
        listen_at(AF_INET6, &ports[1]);
        if (write(ends[1], ports, sizeof ports) != sizeof ports)
            exit(1);
        for (;;)
            pause();
    }
    if (read(ends[0], ports, sizeof ports) != sizeof ports)
        fail("backend");
    backend4 = ports[0];
    backend6 = ports[1];
}

static void read_byte(int fd)
{
    char c;

    if (read(fd, &c, 1) < 0)
        fail("read");
    NO_TAIL_CALL();
}

/* --- dependencies --- */

OWN_FRAME static void read_tcp4(void *unused)
{
    (void)unused;
    read_byte(connect_to(AF_INET, backend4));
}

OWN_FRAME static void recv_tcp6(void *unused)
{
    char c;

    (void)unused;
    recv(connect_to(AF_INET6, backend6), &c, 1, 0);
    NO_TAIL_CALL();
}

OWN_FRAME static void recvmsg_unix(void *unused)
{
    char c;
    struct iovec part = {.iov_base = &c, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    (void)unused;
    recvmsg(connect_unix(backend_path), &message, 0);
    NO_TAIL_CALL();
}

OWN_FRAME static void poll_tcp4(void *unused)
{
    struct pollfd one = {.fd = connect_to(AF_INET, backend4), .events = POLLIN};

    (void)unused;
    poll(&one, 1, -1);
    NO_TAIL_CALL();
}

/* The array is not on the stack. */
OWN_FRAME static void poll_heap(void *unused)
{
    struct pollfd *array = calloc(3, sizeof *array);

    (void)unused;
    array[0] = (struct pollfd){.fd = eventfd(0, 0), .events = POLLIN};
    array[1] = (struct pollfd){.fd = connect_to(AF_INET6, backend6), .events = POLLIN};
    array[2] = (struct pollfd){.fd = -1};
    poll(array, 3, -1);
    NO_TAIL_CALL();
}

OWN_FRAME static void select_tcp4(void *unused)
{
    int fd = connect_to(AF_INET, backend4);
    fd_set set;

    (void)unused;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    select(fd + 1, &set, NULL, NULL, NULL);
    NO_TAIL_CALL();
}

OWN_FRAME static void send_tcp4(void *unused)
{
    int fd = connect_to(AF_INET, backend4);
    char *bytes = calloc(1, BIG);

    (void)unused;
    for (;;)
        send(fd, bytes, BIG, 0);
}

/* 192.0.2.0/24 is for documentation: nothing is there. In a sandbox without a route it fails at once. */
OWN_FRAME static void ask_udp(void *unused)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(53)};
    int fd = checked(socket(AF_INET, SOCK_DGRAM, 0), "socket");

    (void)unused;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    checked(connect(fd, (struct sockaddr *)&in, sizeof in), "connect");
    read_byte(fd);
}

/* --- clients --- */

static int accepted(int family, int port, int listening)
{
    connect_to(family, port);
    return checked(accept(listening, NULL, NULL), "accept");
}

static int listening4, listening6, listening_unix, lonely4, lonely_unix;

OWN_FRAME static void client_tcp4(void *unused)
{
    (void)unused;
    read_byte(accepted(AF_INET, port4, listening4));
}

OWN_FRAME static void client_tcp6(void *unused)
{
    (void)unused;
    read_byte(accepted(AF_INET6, port6, listening6));
}

OWN_FRAME static void client_unix(void *unused)
{
    (void)unused;
    connect_unix(path);
    read_byte(checked(accept(listening_unix, NULL, NULL), "accept"));
}

OWN_FRAME static void slow_client(void *unused)
{
    int fd = accepted(AF_INET, port4, listening4);
    char *bytes = calloc(1, BIG);

    (void)unused;
    for (;;)
        send(fd, bytes, BIG, 0);
}

OWN_FRAME static void accepts_tcp4(void *unused)
{
    (void)unused;
    accept(lonely4, NULL, NULL);
    NO_TAIL_CALL();
}

OWN_FRAME static void accepts_unix(void *unused)
{
    (void)unused;
    accept(lonely_unix, NULL, NULL);
    NO_TAIL_CALL();
}

OWN_FRAME static void serve_udp(void *unused)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = checked(socket(AF_INET, SOCK_DGRAM, 0), "socket");
    int port = 20053;

    (void)unused;
    do
        in.sin_port = htons((uint16_t)port++);
    while (bind(fd, (struct sockaddr *)&in, sizeof in) < 0);
    read_byte(fd);
}

/* --- event loops --- */

OWN_FRAME static void epolls(void *unused)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fd = epoll_create1(0);

    (void)unused;
    epoll_ctl(fd, EPOLL_CTL_ADD, lonely4, &event);
    epoll_wait(fd, &event, 1, -1);
    NO_TAIL_CALL();
}

OWN_FRAME static void polls_server(void *unused)
{
    struct pollfd two[2] = {{.fd = lonely4, .events = POLLIN}, {.fd = eventfd(0, 0), .events = POLLIN}};

    (void)unused;
    poll(two, 2, -1);
    NO_TAIL_CALL();
}

/* --- queues --- */

OWN_FRAME static void reads_pipe(void *unused)
{
    int ends[2];

    (void)unused;
    checked(pipe(ends), "pipe");
    read_byte(ends[0]);
}

OWN_FRAME static void reads_fifo(void *unused)
{
    (void)unused;
    read_byte(checked(open(fifo_path, O_RDWR), "open"));
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

OWN_FRAME static void reads_pair(void *unused)
{
    int ends[2];

    (void)unused;
    checked(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    read_byte(ends[0]);
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

OWN_FRAME static void runs_command(void *unused)
{
    (void)unused;
    if (system("exec sleep 100000") != 0)
        fail("system");
}

OWN_FRAME static void pauses(void *unused)
{
    (void)unused;
    pause();
    NO_TAIL_CALL();
}

static void add(const char *name, void (*run)(void *), bool idle, const char *wait)
{
    struct kind *kind = &kinds[kind_count++];

    kind->name = name;
    kind->run = run;
    kind->idle = idle;
    snprintf(kind->wait, sizeof kind->wait, "%s", wait);
}

__attribute__((format(printf, 1, 2))) static const char *text(const char *format, ...)
{
    static char bytes[160];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(bytes, sizeof bytes, format, arguments);
    va_end(arguments);
    return bytes;
}

static void add_sockets(void)
{
    add("read-tcp4", read_tcp4, false, text("[wait: tcp 127.0.0.1:%d backend]", backend4));
    add("recv-tcp6", recv_tcp6, false, text("[wait: tcp [::1]:%d backend]", backend6));
    add("recvmsg-unix", recvmsg_unix, false, text("[wait: unix %s backend]", backend_path));
    add("poll-tcp4", poll_tcp4, false, text("[wait: tcp 127.0.0.1:%d backend]", backend4));
    add("poll-heap", poll_heap, false, text("[wait: tcp [::1]:%d backend]", backend6));
    add("select-tcp4", select_tcp4, false, text("[wait: tcp 127.0.0.1:%d backend]", backend4));
    add("send-tcp4", send_tcp4, false, text("[wait: send tcp 127.0.0.1:%d backend]", backend4));
    add("ask-udp", ask_udp, false, "[wait: udp 127.0.0.1:53 dns]");
    add("client-tcp4", client_tcp4, true, text("[wait: client tcp :%d]", port4));
    add("client-tcp6", client_tcp6, true, text("[wait: client tcp :%d]", port6));
    add("client-unix", client_unix, true, text("[wait: client unix %s]", path));
    add("slow-client", slow_client, false, text("[wait: send client tcp :%d]", port4));
    add("accepts-tcp4", accepts_tcp4, true, "[wait: accept tcp :*");
    add("accepts-unix", accepts_unix, true, "[wait: accept unix *");
    add("serve-udp", serve_udp, true, "[wait: client udp :200*");
    add("epolls", epolls, true, "[wait: epoll]");
    add("polls-server", polls_server, true, "[wait: events]");
    add("reads-pair", reads_pair, true, "[wait: socketpair]");
}

static void add_others(void)
{
    add("reads-pipe", reads_pipe, true, "[wait: pipe]");
    add("reads-fifo", reads_fifo, true, "[wait: pipe wait_kinds_fifo*");
    add("fills-pipe", fills_pipe, false, "[wait: send pipe]");
    add("reads-eventfd", reads_eventfd, true, "[wait: eventfd]");
    add("reads-timerfd", reads_timerfd, true, "[wait: timerfd]");
    add("locks-named", locks_named, false, "[wait: lock cache_mu]");
    add("locks-heap", locks_heap, false, "[wait: lock pool_take]");
    add("locks-reading", locks_reading, false, "[wait: lock table_lock]");
    add("waits-for-work", waits_for_work, true, "[wait: condition]");
    add("in-request", waits_in_request, false, "[wait: condition]");
    add("for-turn", waits_for_turn, false, "[wait: semaphore]");
    add("for-token", waits_for_token, true, "[wait: semaphore]");
    add("joins", joins, true, "[wait: join]");
    add("meets-others", meets_others, true, "[wait: barrier]");
    add("naps", naps, true, "[wait: sleep]");
    add("sleeps-in-req", sleeps_in_request, false, "[wait: sleep]");
    add("polls-nothing", polls_nothing, true, "[wait: sleep]");
    add("minds-child", minds_child, true, "[wait: child]");
    add("runs-command", runs_command, false, "[wait: child]");
    add("pauses", pauses, true, "[wait: pause]");
}

static void prepare(void)
{
    snprintf(path, sizeof path, "/tmp/wait_kinds_%d.socket", getpid());
    snprintf(backend_path, sizeof backend_path, "/tmp/wait_kinds_%d.backend", getpid());
    snprintf(fifo_path, sizeof fifo_path, "/tmp/wait_kinds_fifo_%d", getpid());
    start_backend();
    listening4 = listen_at(AF_INET, &port4);
    listening6 = listen_at(AF_INET6, &port6);
    listening_unix = listen_unix(path);
    lonely4 = listen_at(AF_INET, &(int){0});
    char lonely[80];
    snprintf(lonely, sizeof lonely, "%s.lonely", path);
    lonely_unix = listen_unix(lonely);
    checked(mkfifo(fifo_path, 0600), "mkfifo");
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
    add_sockets();
    add_others();
    for (int i = 0; i < kind_count; i++) {
        truth_thread(kinds[i].name, kinds[i].run, NULL, &kinds[i].tid);
        /* One accepted connection each: they must not take each other's. */
        truth_sleep_ms(5);
    }
    truth_sleep_ms(200);
    truth_line("{\"threads\": %d}", kind_count);
    for (int i = 0; i < kind_count; i++)
        truth_line("{\"tid\": %d, \"name\": \"%s\", \"wait\": \"%s\", \"idle\": %s}", kinds[i].tid, kinds[i].name,
                   kinds[i].wait, kinds[i].idle ? "true" : "false");
    truth_wait_for_line();
    unlink(path);
    unlink(backend_path);
    unlink(fifo_path);
    return 0;
}
