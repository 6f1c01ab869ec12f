#include "examples/dbserver/http.h"

#include "examples/dbserver/http_parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 800 /* with the database's connections below the usual limit of 1,024 files */
#define INPUT_MAX_BYTES 4096
#define OUTPUT_MAX_BYTES (REQUEST_BODY_MAX_BYTES + 256)
#define READY_MAX 64
#define RETRY_MS 1000 /* how soon to accept again after the process ran out of files */

/* At most one request of a connection is in flight; while it is, epoll does not watch the connection. */
struct connection {
    int fd;
    size_t slot;
    bool keep_alive;
    struct request request;
    size_t input_bytes;
    char input[INPUT_MAX_BYTES];
    size_t output_bytes;
    size_t output_sent_bytes;
    char output[OUTPUT_MAX_BYTES];
};

/* All of it belongs to the acceptor, but for the answered queue and the stop flag. */
struct http_server {
    int listen_fd;
    int epoll_fd;
    int wake_fd; /* eventfd: there are answers, or it is time to stop */
    http_on_request *on_request;
    void *context;
    pthread_t acceptor;
    bool started;
    bool accepting;
    atomic_bool stopping;
    pthread_mutex_t answered_mu;
    struct request_queue answered;
    struct connection *connections[CONNECTIONS_MAX];
};

static const char *status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 413:
        return "Content Too Large";
    case 414:
        return "URI Too Long";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Error";
    }
}

static void wake_acceptor(struct http_server *server)
{
    /* Fails only when the counter is full, and then the acceptor is awake anyway. */
    (void)eventfd_write(server->wake_fd, 1);
}

void http_answer(struct request *request, int status, const char *format, ...)
{
    struct http_server *server = request->server;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(request->body, sizeof(request->body), format, arguments);
    va_end(arguments);
    request->status = status;
    pthread_mutex_lock(&server->answered_mu);
    request_queue_push(&server->answered, request);
    pthread_mutex_unlock(&server->answered_mu);
    wake_acceptor(server);
}

/* What: the address of a connection, of listen_fd or of wake_fd. */
static int watch(struct http_server *server, int operation, int fd, uint32_t events, void *what)
{
    struct epoll_event event = {.events = events, .data.ptr = what};

    return epoll_ctl(server->epoll_fd, operation, fd, &event);
}

static void set_accepting(struct http_server *server, bool accepting)
{
    if (server->accepting == accepting)
        return;
    watch(server, EPOLL_CTL_MOD, server->listen_fd, accepting ? EPOLLIN : 0, &server->listen_fd);
    server->accepting = accepting;
}

static void connection_close(struct http_server *server, struct connection *connection)
{
    close(connection->fd); /* which takes it out of epoll */
    server->connections[connection->slot] = NULL;
    free(connection);
    set_accepting(server, true);
}

/* One-shot, so that a client that hangs up while its request is in flight does not wake the acceptor for
 * ever. */
static void connection_watch(struct http_server *server, struct connection *connection, uint32_t events)
{
    if (watch(server, EPOLL_CTL_MOD, connection->fd, events | EPOLLONESHOT, connection) < 0)
        connection_close(server, connection);
}

/* Takes the next request out of the input, or waits for more of it. */
static void connection_next_request(struct http_server *server, struct connection *connection)
{
    struct request *request = &connection->request;
    struct http_head head;
    ssize_t length = http_parse_head(connection->input, connection->input_bytes, &head);

    if (length == 0 && connection->input_bytes < sizeof(connection->input)) {
        connection_watch(server, connection, EPOLLIN);
        return;
    }
    if (length <= 0) {
        connection->keep_alive = false;
        connection->input_bytes = 0;
        http_answer(request, length == 0 ? 431 : (int)-length, "%s\n",
                    status_text(length == 0 ? 431 : (int)-length));
        return;
    }
    connection->input_bytes -= (size_t)length;
    memmove(connection->input, connection->input + length, connection->input_bytes);
    connection->keep_alive = head.keep_alive;
    memcpy(request->path, head.path, sizeof(head.path));
    server->on_request(server->context, request);
}

static void connection_write(struct http_server *server, struct connection *connection)
{
    while (connection->output_sent_bytes < connection->output_bytes) {
        ssize_t sent = send(connection->fd, connection->output + connection->output_sent_bytes,
                            connection->output_bytes - connection->output_sent_bytes, MSG_NOSIGNAL);

        if (sent < 0 && errno == EAGAIN) {
            connection_watch(server, connection, EPOLLOUT);
            return;
        }
        if (sent < 0) {
            connection_close(server, connection);
            return;
        }
        connection->output_sent_bytes += (size_t)sent;
    }
    connection->output_bytes = 0;
    connection->output_sent_bytes = 0;
    if (connection->keep_alive)
        connection_next_request(server, connection);
    else
        connection_close(server, connection);
}

static void connection_read(struct http_server *server, struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->input + connection->input_bytes,
                       sizeof(connection->input) - connection->input_bytes, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        connection_watch(server, connection, EPOLLIN);
        return;
    }
    if (got <= 0) {
        connection_close(server, connection);
        return;
    }
    connection->input_bytes += (size_t)got;
    connection_next_request(server, connection);
}

static void connection_send_answer(struct http_server *server, struct connection *connection)
{
    const struct request *request = &connection->request;
    int length = snprintf(connection->output, sizeof(connection->output),
                          "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n%s",
                          request->status, status_text(request->status), strlen(request->body),
                          connection->keep_alive ? "" : "Connection: close\r\n", request->body);

    connection->output_bytes = (size_t)length; /* OUTPUT_MAX_BYTES has room for the longest body */
    connection_write(server, connection);
}

static void accept_one(struct http_server *server)
{
    struct connection *connection;
    size_t slot = 0;
    int fd;

    while (slot < CONNECTIONS_MAX && server->connections[slot])
        slot++;
    if (slot == CONNECTIONS_MAX) {
        set_accepting(server, false); /* the others wait in the backlog until a connection closes */
        return;
    }
    fd = accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            set_accepting(server, false);
        return;
    }
    connection = calloc(1, sizeof(*connection));
    if (!connection) {
        close(fd);
        return;
    }
    connection->fd = fd;
    connection->slot = slot;
    connection->request.server = server;
    server->connections[slot] = connection;
    if (watch(server, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT, connection) < 0)
        connection_close(server, connection);
}

static void send_answers(struct http_server *server)
{
    struct request_queue answered;
    struct request *request;
    eventfd_t ignored;

    (void)eventfd_read(server->wake_fd, &ignored);
    pthread_mutex_lock(&server->answered_mu);
    answered = server->answered;
    server->answered = (struct request_queue){0};
    pthread_mutex_unlock(&server->answered_mu);
    while ((request = request_queue_pop(&answered))) {
        struct connection *connection =
            (struct connection *)((char *)request - offsetof(struct connection, request));

        connection_send_answer(server, connection);
    }
}

static void *acceptor_main(void *argument)
{
    struct http_server *server = argument;
    struct epoll_event ready[READY_MAX];

    pthread_setname_np(pthread_self(), "acceptor");
    while (!atomic_load(&server->stopping)) {
        int count = epoll_wait(server->epoll_fd, ready, READY_MAX, server->accepting ? -1 : RETRY_MS);

        if (count == 0)
            set_accepting(server, true);
        for (int i = 0; i < count; i++) {
            struct connection *connection = ready[i].data.ptr;

            if (ready[i].data.ptr == &server->listen_fd)
                accept_one(server);
            else if (ready[i].data.ptr == &server->wake_fd)
                send_answers(server);
            else if (connection->output_bytes)
                connection_write(server, connection);
            else
                connection_read(server, connection);
        }
    }
    return NULL;
}

static int listen_on_loopback(uint16_t port, uint16_t *ret_port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
        int saved = errno;

        close(fd);
        errno = saved;
        return -1;
    }
    *ret_port = ntohs(address.sin_port);
    return fd;
}

struct http_server *http_server_create(uint16_t port, http_on_request *on_request, void *context,
                                       uint16_t *ret_port)
{
    struct http_server *server = calloc(1, sizeof(*server));

    if (!server)
        return NULL;
    server->on_request = on_request;
    server->context = context;
    server->accepting = true;
    pthread_mutex_init(&server->answered_mu, NULL);
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    server->listen_fd = listen_on_loopback(port, ret_port);
    if (server->epoll_fd < 0 || server->wake_fd < 0 || server->listen_fd < 0 ||
        watch(server, EPOLL_CTL_ADD, server->wake_fd, EPOLLIN, &server->wake_fd) < 0 ||
        watch(server, EPOLL_CTL_ADD, server->listen_fd, EPOLLIN, &server->listen_fd) < 0) {
        int saved = errno;

        http_server_destroy(server);
        errno = saved;
        return NULL;
    }
    return server;
}

int http_server_start(struct http_server *server)
{
    int error = pthread_create(&server->acceptor, NULL, acceptor_main, server);

    server->started = error == 0;
    return -error;
}

void http_server_stop(struct http_server *server)
{
    if (!server->started)
        return;
    atomic_store(&server->stopping, true);
    wake_acceptor(server);
    pthread_join(server->acceptor, NULL);
    server->started = false;
}

void http_server_destroy(struct http_server *server)
{
    if (!server)
        return;
    http_server_stop(server);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        if (server->connections[i])
            connection_close(server, server->connections[i]);
    }
    if (server->listen_fd >= 0)
        close(server->listen_fd);
    if (server->wake_fd >= 0)
        close(server->wake_fd);
    if (server->epoll_fd >= 0)
        close(server->epoll_fd);
    pthread_mutex_destroy(&server->answered_mu);
    free(server);
}
