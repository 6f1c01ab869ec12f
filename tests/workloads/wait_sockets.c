/* One thread for each way to wait for a socket. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "wait_kinds.h"

enum { BIG = 1 << 20, BACKLOG = 64 };

static int port4, port6; /* of our own listening sockets */
static char path[64];    /* of our unix socket */
static char backend_path[80];
static int backend4, backend6; /* ports of another process, who never answers */

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

/* --- dependencies --- */

OWN_FRAME static void read_tcp4(void *unused)
{
    (void)unused;
    read_some(connect_to(AF_INET, backend4));
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
    read_some(fd);
}

/* Whose queue of connections is full: the kernel lets more wait. */
static int full4, full4_port;
static char full_path[80], lonely_path[80];

OWN_FRAME static void connects_tcp4(void *unused)
{
    (void)unused;
    for (;;)
        connect_to(AF_INET, full4_port);
}

OWN_FRAME static void connects_unix(void *unused)
{
    (void)unused;
    for (;;)
        connect_unix(full_path);
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
    read_some(accepted(AF_INET, port4, listening4));
}

OWN_FRAME static void client_tcp6(void *unused)
{
    (void)unused;
    read_some(accepted(AF_INET6, port6, listening6));
}

OWN_FRAME static void client_unix(void *unused)
{
    (void)unused;
    connect_unix(path);
    read_some(checked(accept(listening_unix, NULL, NULL), "accept"));
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
    read_some(fd);
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

OWN_FRAME static void reads_pair(void *unused)
{
    int ends[2];

    (void)unused;
    checked(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    read_some(ends[0]);
}

static void add_sockets(void)
{
    kind_now = "dependency";
    add("read-tcp4", read_tcp4, false, "[wait: tcp 127.0.0.1:%d backend]", backend4);
    add("recv-tcp6", recv_tcp6, false, "[wait: tcp [::1]:%d backend]", backend6);
    add("recvmsg-unix", recvmsg_unix, false, "[wait: unix %s backend]", backend_path);
    add("poll-tcp4", poll_tcp4, false, "[wait: tcp 127.0.0.1:%d backend]", backend4);
    add("poll-heap", poll_heap, false, "[wait: tcp [::1]:%d backend]", backend6);
    add("select-tcp4", select_tcp4, false, "[wait: tcp 127.0.0.1:%d backend]", backend4);
    add("send-tcp4", send_tcp4, false, "[wait: send tcp 127.0.0.1:%d backend]", backend4);
    add("ask-udp", ask_udp, false, "[wait: udp 127.0.0.1:53 dns]");
    add("connects-tcp4", connects_tcp4, false, "[wait: connect tcp 127.0.0.1:%d wait_sockets]", full4_port);
    add("connects-unix", connects_unix, false, "[wait: connect unix %s]", full_path);
    kind_now = "client";
    add("client-tcp4", client_tcp4, true, "[wait: client tcp :%d]", port4);
    add("client-tcp6", client_tcp6, true, "[wait: client tcp :%d]", port6);
    add("client-unix", client_unix, true, "[wait: client unix %s]", path);
    add("slow-client", slow_client, false, "[wait: send client tcp :%d]", port4);
    add("accepts-tcp4", accepts_tcp4, true, "[wait: accept tcp :*");
    add("accepts-unix", accepts_unix, true, "[wait: accept unix *");
    add("serve-udp", serve_udp, true, "[wait: client udp :200*");
    kind_now = "event loop";
    add("epolls", epolls, true, "[wait: epoll]");
    add("polls-server", polls_server, true, "[wait: events]");
    kind_now = "queue";
    add("reads-pair", reads_pair, true, "[wait: socketpair]");
}

static void prepare(void)
{
    snprintf(path, sizeof path, "/tmp/wait_sockets_%d", getpid());
    snprintf(backend_path, sizeof backend_path, "%s.backend", path);
    snprintf(full_path, sizeof full_path, "%s.full", path);
    snprintf(lonely_path, sizeof lonely_path, "%s.lonely", path);
    start_backend();
    listening4 = listen_at(AF_INET, &port4);
    listening6 = listen_at(AF_INET6, &port6);
    listening_unix = listen_unix(path);
    full4 = listen_at(AF_INET, &full4_port);
    checked(listen(full4, 0), "listen");
    checked(listen(listen_unix(full_path), 0), "listen");
    lonely4 = listen_at(AF_INET, &(int){0});
    lonely_unix = listen_unix(lonely_path);
}

int main(void)
{
    truth_begin();
    prepare();
    add_sockets();
    run_waiters();
    unlink(path);
    unlink(backend_path);
    unlink(full_path);
    unlink(lonely_path);
    return 0;
}
