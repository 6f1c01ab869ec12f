/* The namer, on this very process: its descriptors, with system calls as they would be seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "profiler/wait/wait_namer.h"

static int read_own(void *context, uint64_t address, void *ret_bytes, size_t size_bytes)
{
    (void)context;
    memcpy(ret_bytes, (const void *)(uintptr_t)address, size_bytes);
    return 0;
}

static bool name_own(void *context, uint64_t address, char *ret_name, size_t size)
{
    if (address != (uint64_t)(uintptr_t)context)
        return false;
    snprintf(ret_name, size, "cache_mu");
    return true;
}

static const struct target_memory own = {.read = read_own};
static int pid_fd;

static int setup(void **state)
{
    *state = wait_namer_create();
    pid_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    return 0;
}

static int teardown(void **state)
{
    wait_namer_destroy(*state);
    close(pid_fd);
    return 0;
}

static struct wait_question question_of(long number, uint64_t first, uint64_t second, uint64_t third)
{
    return (struct wait_question){
        .process = 3,
        .pid = getpid(),
        .tid = getpid(),
        .pid_fd = pid_fd,
        .syscall = number,
        .arguments = {first, second, third},
        .memory = &own,
    };
}

static void expect_question(struct wait_namer *namer, const struct wait_question *question,
                            const char *wanted)
{
    struct wait_answer answer;
    char text[WAIT_TEXT_BYTES];

    wait_namer_name(namer, question, &answer);
    wait_namer_settle(namer);
    wait_namer_finish_text(namer, answer.text, text, sizeof text);
    assert_string_equal(text, wanted);
    assert_int_equal(answer.role, wait_role_of_text(wanted));
}

static void expect(void **state, long number, int fd, const char *wanted)
{
    const struct wait_question question = question_of(number, (uint64_t)fd, 0, 0);

    expect_question(*state, &question, wanted);
}

static int listening_tcp(uint16_t *ret_port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &size), 0);
    *ret_port = ntohs(in.sin_port);
    return fd;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int connected_tcp(uint16_t port)
{
    const struct sockaddr_in in = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&in, sizeof in), 0);
    return fd;
}

static const char *text_of(const char *format, unsigned port)
{
    static char text[WAIT_TEXT_BYTES];

    snprintf(text, sizeof text, format, port);
    return text;
}

static void test_tcp(void **state)
{
    uint16_t port;
    int listening = listening_tcp(&port);
    int connected = connected_tcp(port);
    int accepted = accept(listening, NULL, NULL);
    struct sockaddr_in in = loopback(port);
    const struct wait_question connects =
        question_of(SYS_connect, (uint64_t)connected, (uint64_t)(uintptr_t)&in, sizeof in);

    expect(state, SYS_accept4, listening, text_of("[wait: accept tcp :%u]", port));
    expect(state, SYS_read, connected, text_of("[wait: tcp 127.0.0.1:%u test_wait_namer]", port));
    expect(state, SYS_sendto, connected, text_of("[wait: send tcp 127.0.0.1:%u test_wait_namer]", port));
    expect(state, SYS_recvfrom, accepted, text_of("[wait: client tcp :%u]", port));
    expect(state, SYS_write, accepted, text_of("[wait: send client tcp :%u]", port));
    expect_question(*state, &connects, text_of("[wait: connect tcp 127.0.0.1:%u test_wait_namer]", port));
    close(listening);
    close(connected);
    close(accepted);
}

/* The same number is another socket later. */
static void test_reused_descriptors(void **state)
{
    uint16_t port;
    int listening = listening_tcp(&port);
    int fd = connected_tcp(port);
    int ends[2];

    expect(state, SYS_read, fd, text_of("[wait: tcp 127.0.0.1:%u test_wait_namer]", port));
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[0], fd), fd);
    expect(state, SYS_read, fd, "[wait: pipe]");
    assert_int_equal(dup2(listening, fd), fd);
    expect(state, SYS_accept, fd, text_of("[wait: accept tcp :%u]", port));
    close(fd);
    expect(state, SYS_read, fd, "[wait: read]");
    close(ends[0]);
    close(ends[1]);
    close(listening);
}

static void test_unix(void **state)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int connected = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int accepted;
    int pair[2];
    char wanted[WAIT_TEXT_BYTES];

    snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "test_wait_namer\n%d", getpid());
    assert_int_equal(bind(listening, (struct sockaddr *)&un, sizeof un), 0);
    assert_int_equal(listen(listening, 8), 0);
    assert_int_equal(connect(connected, (struct sockaddr *)&un, sizeof un), 0);
    accepted = accept(listening, NULL, NULL);
    snprintf(wanted, sizeof wanted, "[wait: unix @test_wait_namer?%d", getpid());
    {
        const struct wait_question question = question_of(SYS_recvmsg, (uint64_t)connected, 0, 0);
        struct wait_answer answer;

        wait_namer_name(*state, &question, &answer);
        assert_memory_equal(answer.text, wanted, strlen(wanted));
        assert_int_equal(answer.role, WAIT_ROLE_OUTBOUND);
        snprintf(wanted, sizeof wanted, "[wait: client unix @test_wait_namer?%d", getpid());
        wait_namer_name(*state,
                        &(struct wait_question){.process = 3,
                                                .pid = getpid(),
                                                .pid_fd = pid_fd,
                                                .syscall = SYS_read,
                                                .arguments = {(uint64_t)accepted}},
                        &answer);
        assert_memory_equal(answer.text, wanted, strlen(wanted));
        assert_int_equal(answer.role, WAIT_ROLE_CLIENT);
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    expect(state, SYS_read, pair[0], "[wait: socketpair]");
    close(pair[0]);
    close(pair[1]);
    close(listening);
    close(connected);
    close(accepted);
}

static void test_other_descriptors(void **state)
{
    char fifo[64];
    int ends[2];
    int fifo_fd;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int event = eventfd(0, EFD_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    snprintf(fifo, sizeof fifo, "/tmp/test_wait_namer_%d", getpid());
    assert_int_equal(mkfifo(fifo, 0600), 0);
    fifo_fd = open(fifo, O_RDWR | O_CLOEXEC);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    expect(state, SYS_read, ends[0], "[wait: pipe]");
    expect(state, SYS_write, ends[1], "[wait: send pipe]");
    expect(state, SYS_read, fifo_fd, text_of("[wait: pipe test_wait_namer_%u]", (unsigned)getpid()));
    expect(state, SYS_read, event, "[wait: eventfd]");
    expect(state, SYS_read, timer, "[wait: timerfd]");
    expect(state, SYS_epoll_pwait, epoll, "[wait: epoll]");
    expect(state, SYS_pread64, file, "[wait: disk read]");
    expect(state, SYS_write, file, "[wait: disk write]");
    expect(state, SYS_fsync, file, "[wait: fsync]");
    expect(state, SYS_read, null, "[wait: device /dev/null]");
    expect(state, SYS_read, 12345, "[wait: read]");
    expect(state, SYS_io_uring_enter, 12345, "[wait: io_uring]");
    unlink(fifo);
    close(fifo_fd);
    close(ends[0]);
    close(ends[1]);
    close(file);
    close(null);
    close(event);
    close(timer);
    close(epoll);
}

static void expect_poll(void **state, const struct pollfd *array, size_t count, const char *wanted)
{
    const struct wait_question question = question_of(SYS_ppoll, (uint64_t)(uintptr_t)array, count, 0);

    expect_question(*state, &question, wanted);
}

static void test_choice_among_several(void **state)
{
    uint16_t port;
    uint16_t other_port;
    int listening = listening_tcp(&port);
    int other = listening_tcp(&other_port);
    int connected = connected_tcp(port);
    int accepted = accept(listening, NULL, NULL);
    int event = eventfd(0, EFD_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    const struct pollfd dependency[] = {{.fd = event, .events = POLLIN},
                                        {.fd = accepted, .events = POLLIN},
                                        {.fd = connected, .events = POLLIN}};
    const struct pollfd client[] = {{.fd = event, .events = POLLIN}, {.fd = accepted, .events = POLLIN}};
    const struct pollfd server[] = {{.fd = connected, .events = POLLIN}, {.fd = listening, .events = POLLIN}};
    const struct pollfd loop[] = {{.fd = event, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
    const struct pollfd same[] = {{.fd = event, .events = POLLIN}, {.fd = event, .events = POLLIN}};
    const struct pollfd accepts[] = {{.fd = listening, .events = POLLIN}, {.fd = other, .events = POLLIN}};
    const struct pollfd writes[] = {{.fd = connected, .events = POLLOUT}};

    expect_poll(state, dependency, 3, text_of("[wait: tcp 127.0.0.1:%u test_wait_namer]", port));
    expect_poll(state, dependency, 3, text_of("[wait: tcp 127.0.0.1:%u test_wait_namer]", port));
    expect_poll(state, client, 2, text_of("[wait: client tcp :%u]", port));
    expect_poll(state, server, 2, "[wait: events]");
    expect_poll(state, loop, 2, "[wait: events]");
    expect_poll(state, same, 2, "[wait: eventfd]");
    expect_poll(state, accepts, 2, text_of("[wait: accept tcp :%u]", port));
    expect_poll(state, writes, 1, text_of("[wait: send tcp 127.0.0.1:%u test_wait_namer]", port));
    expect_poll(state, NULL, 0, "[wait: sleep]");
    close(listening);
    close(other);
    close(connected);
    close(accepted);
    close(event);
    close(timer);
}

static void test_futexes(void **state)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct wait_question question = question_of(SYS_futex, (uint64_t)(uintptr_t)&mutex, 0x80, 2);
    struct wait_answer answer;

    pthread_mutex_lock(&mutex);
    *(volatile int *)&mutex = 2; /* as when somebody waits */
    wait_namer_name(*state, &question, &answer);
    assert_string_equal(answer.text, "[wait: lock]");
    assert_int_equal(answer.role, WAIT_ROLE_LOCK);
    assert_int_equal(answer.lock_owner, syscall(SYS_gettid));
    assert_int_equal(answer.lock_address, (uint64_t)(uintptr_t)&mutex);
    question.name_address = name_own;
    question.name_context = &mutex;
    expect_question(*state, &question, "[wait: lock cache_mu]");
    question.name_context = NULL;
    expect_question(*state, &question, "[wait: lock]");
    question.arguments[1] = 0x189;
    question.arguments[2] = 0;
    expect_question(*state, &question, "[wait: condition]");
    question.arguments[1] = 0x109;
    question.arguments[2] = 4711;
    expect_question(*state, &question, "[wait: join]");
    pthread_mutex_unlock(&mutex);
}

static void test_other_calls(void **state)
{
    struct wait_question question = question_of(SYS_clock_nanosleep, 0, 0, 0);

    expect_question(*state, &question, "[wait: sleep]");
    question.syscall = SYS_wait4;
    expect_question(*state, &question, "[wait: child]");
    question.syscall = SYS_openat;
    expect_question(*state, &question, "[wait: openat]");
    question.uninterruptible = true;
    expect_question(*state, &question, "[wait: disk openat]");
    question.syscall = -1;
    expect_question(*state, &question, "[wait: page fault]");
    question.syscall = 100000;
    expect_question(*state, &question, "[wait: syscall]");
}

static void test_processes_that_are_gone(void **state)
{
    struct wait_question question = question_of(SYS_read, 0, 0, 0);

    question.process = 7;
    question.pid = 0x3fffffff;
    question.pid_fd = -1;
    expect_question(*state, &question, "[wait: read]");
    expect_question(*state, &question, "[wait: read]");
}

static void test_text_without_mark_is_copied(void **state)
{
    char text[8];

    wait_namer_finish_text(*state, "[wait: sleep]", text, sizeof text);
    assert_string_equal(text, "[wait: ");
    wait_namer_finish_text(*state, "a\0019999\002]", text, sizeof text);
    assert_string_equal(text, "a]");
    wait_namer_finish_text(*state, "a\001", text, sizeof text);
    assert_string_equal(text, "a\001");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tcp, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reused_descriptors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unix, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_descriptors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_choice_among_several, setup, teardown),
        cmocka_unit_test_setup_teardown(test_futexes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(test_processes_that_are_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text_without_mark_is_copied, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
