/* Sockets of another process, looked up and named: live, against a forked child. */
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
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/wait/far_end.h"
#include "profiler/wait/inet_diag.h"
#include "profiler/wait/service_finder.h"
#include "profiler/wait/socket_owner.h"
#include "profiler/wait/socket_table.h"

/* A child holds a listening socket, a connection to it and the accepted end of that; we hold none of them. */
struct ends {
    int listening, connected, accepted;
    uint16_t port;
    bool failed;
};

struct child {
    pid_t pid;
    int proc_fd, pid_fd;
    struct ends ends;
};

static struct ends make_ends(int family)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&in : (struct sockaddr *)&in6;
    socklen_t size = family == AF_INET ? sizeof in : sizeof in6;
    struct ends ends = {.listening = socket(family, SOCK_STREAM, 0),
                        .connected = socket(family, SOCK_STREAM, 0)};

    ends.failed = bind(ends.listening, address, size) < 0 || listen(ends.listening, 8) < 0 ||
                  getsockname(ends.listening, address, &size) < 0 ||
                  connect(ends.connected, address, size) < 0;
    ends.accepted = ends.failed ? -1 : accept(ends.listening, NULL, NULL);
    ends.port = ntohs(family == AF_INET ? in.sin_port : in6.sin6_port);
    return ends;
}

static bool set_loopback_up(void)
{
    return system("ip link set lo up 2>/dev/null") == 0;
}

/* In a network namespace of its own, if wanted; pid 0 when that is not permitted here. */
static struct child start_child(int family, bool apart)
{
    struct child child = {0};
    char path[32];
    int told[2];

    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    child.pid = fork();
    if (child.pid == 0) {
        struct ends ends = {.failed = true};

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "owner of it");
        if (!apart || (unshare(CLONE_NEWNET) == 0 && set_loopback_up()))
            ends = make_ends(family);
        if (write(told[1], &ends, sizeof ends) != (ssize_t)sizeof ends)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(told[0], &child.ends, sizeof child.ends), sizeof child.ends);
    close(told[0]);
    close(told[1]);
    snprintf(path, sizeof path, "/proc/%d", child.pid);
    child.proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    child.pid_fd = (int)syscall(SYS_pidfd_open, child.pid, 0);
    return child;
}

static void end_child(struct child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->proc_fd);
    close(child->pid_fd);
}

static uint64_t inode_of(const struct child *child, int fd)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof path, "fd/%d", fd);
    assert_int_equal(fstatat(child->proc_fd, path, &st, 0), 0);
    return st.st_ino;
}

static void check_ends(const struct child *child, int pid_fd)
{
    struct socket_snapshot snapshot = {0};
    struct socket_info listening;
    struct socket_info connected;
    struct socket_info accepted;

    assert_int_equal(socket_table_find(&snapshot, child->proc_fd, pid_fd, child->ends.listening,
                                       inode_of(child, child->ends.listening), &listening),
                     0);
    assert_int_equal(socket_table_find(&snapshot, child->proc_fd, pid_fd, child->ends.connected,
                                       inode_of(child, child->ends.connected), &connected),
                     0);
    assert_int_equal(socket_table_find(&snapshot, child->proc_fd, pid_fd, child->ends.accepted,
                                       inode_of(child, child->ends.accepted), &accepted),
                     0);
    assert_true(listening.listening && !connected.listening && !accepted.listening);
    assert_int_equal(listening.local.port, child->ends.port);
    assert_int_equal(listening.remote.family, AF_UNSPEC);
    assert_true(socket_address_equal(&connected.remote, &accepted.local));
    assert_true(socket_address_equal(&connected.local, &accepted.remote));
    assert_int_equal(connected.remote.port, child->ends.port);
    assert_string_equal(socket_protocol_name(&connected), "tcp");
    socket_snapshot_finish(&snapshot);
}

static void check_family(int family, bool apart)
{
    struct child child = start_child(family, apart);

    if (child.ends.failed) {
        end_child(&child);
        print_message("no such sockets, or no namespaces here\n");
        skip();
    }
    check_ends(&child, child.pid_fd);
    /* As without the right to copy descriptors. In a namespace with thousands of sockets they may lie beyond the part of
     * the tables that is read. */
    if (apart)
        check_ends(&child, -1);
    end_child(&child);
}

static void test_ipv4(void **state)
{
    (void)state;
    check_family(AF_INET, false);
}

static void test_ipv6(void **state)
{
    (void)state;
    check_family(AF_INET6, false);
}

static void test_in_another_namespace(void **state)
{
    (void)state;
    check_family(AF_INET, true);
    check_family(AF_INET6, true);
}

static void test_other_socket_by_now(void **state)
{
    struct socket_snapshot snapshot = {0};
    struct child child = start_child(AF_INET, false);
    struct socket_info info;

    (void)state;
    assert_int_equal(
        socket_table_find(&snapshot, child.proc_fd, child.pid_fd, child.ends.listening, 1, &info), -ESTALE);
    assert_int_equal(socket_table_find(&snapshot, child.proc_fd, -1, child.ends.listening, 1, &info),
                     -ENOENT);
    end_child(&child);
    socket_snapshot_finish(&snapshot);
}

static void test_exact_questions(void **state)
{
    struct socket_snapshot snapshot = {0};
    struct child child = start_child(AF_INET, false);
    struct socket_info connected;
    struct socket_address wrong;
    uint64_t inode = 0;
    int netlink_fd = inet_diag_open();

    (void)state;
    assert_true(netlink_fd >= 0);
    assert_int_equal(socket_table_find(&snapshot, child.proc_fd, child.pid_fd, child.ends.connected,
                                       inode_of(&child, child.ends.connected), &connected),
                     0);
    assert_int_equal(inet_diag_find(netlink_fd, &connected.local, &connected.remote, &inode), 0);
    assert_int_equal(inode, inode_of(&child, child.ends.connected));
    assert_int_equal(inet_diag_find(netlink_fd, &connected.remote, &connected.local, &inode), 0);
    assert_int_equal(inode, inode_of(&child, child.ends.accepted));
    wrong = connected.local;
    wrong.port = 1;
    assert_int_equal(inet_diag_find(netlink_fd, &connected.remote, &wrong, &inode), -ENOENT);
    close(netlink_fd);
    end_child(&child);
    socket_snapshot_finish(&snapshot);
}

static void expect_service(const struct child *child, const char *wanted)
{
    struct socket_snapshot snapshot = {0};
    struct service_finder *finder = service_finder_create();
    struct far_end_question question = {.proc_fd = child->proc_fd,
                                        .network = socket_owner_network(child->proc_fd)};
    struct socket_info connected;
    uint32_t id;

    assert_int_equal(socket_table_find(&snapshot, child->proc_fd, child->pid_fd, child->ends.connected,
                                       inode_of(child, child->ends.connected), &connected),
                     0);
    question.local = connected.local;
    question.remote = connected.remote;
    id = service_finder_ask(finder, &question);
    question.local.port++; /* another connection to the same place */
    assert_int_equal(service_finder_ask(finder, &question), id);
    service_finder_settle(finder, 10000);
    assert_string_equal(service_finder_name(finder, id), wanted);
    service_finder_destroy(finder);
    socket_snapshot_finish(&snapshot);
}

static void test_finds_the_program_that_listens(void **state)
{
    struct child child = start_child(AF_INET, false);

    (void)state;
    expect_service(&child, "owner_of_it");
    end_child(&child);
}

static void test_finds_it_in_another_namespace(void **state)
{
    struct child child = start_child(AF_INET, true);

    (void)state;
    if (child.ends.failed) {
        end_child(&child);
        print_message("no network namespaces here\n");
        skip();
    }
    expect_service(&child, "owner_of_it");
    end_child(&child);
}

static void test_ports_name_what_is_elsewhere(void **state)
{
    struct service_finder *finder = service_finder_create();
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct far_end_question question = {.proc_fd = proc_fd, .network = socket_owner_network(proc_fd)};
    uint32_t known;
    uint32_t unknown;

    (void)state;
    socket_address_from_ip((const uint8_t[]){192, 0, 2, 1}, 4, 45000, &question.local);
    socket_address_from_ip((const uint8_t[]){192, 0, 2, 2}, 4, 5432, &question.remote);
    known = service_finder_ask(finder, &question);
    question.remote.port = 5;
    unknown = service_finder_ask(finder, &question);
    assert_string_equal(service_finder_name(finder, known), "postgresql"); /* before it is answered, too */
    service_finder_settle(finder, 10000);
    assert_string_equal(service_finder_name(finder, known), "postgresql");
    assert_string_equal(service_finder_name(finder, unknown), "");
    assert_string_equal(service_finder_name(finder, 99), "");
    service_finder_destroy(finder);
    close(proc_fd);
}

static void test_ends_without_waiting_for_answers(void **state)
{
    struct service_finder *finder = service_finder_create();
    struct far_end_question question = {.proc_fd = open("/proc/self", O_PATH | O_CLOEXEC), .network = 1};

    (void)state;
    for (uint16_t i = 0; i < 200; i++) {
        socket_address_from_ip((const uint8_t[]){127, 0, 0, 1}, 4, i, &question.remote);
        service_finder_ask(finder, &question);
    }
    service_finder_destroy(finder);
    service_finder_destroy(NULL);
    close(question.proc_fd);
}

static void test_names_are_safe(void **state)
{
    char name[SOCKET_OWNER_NAME_BYTES];
    int told[2];
    char c;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "a\nb ,]\001c");
        if (write(told[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(told[0], &c, 1), 1);
    socket_owner_name(pid, name);
    assert_string_equal(name, "a_b____c");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    socket_owner_name(pid, name);
    assert_string_equal(name, "");
    close(told[0]);
    close(told[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ipv4),
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_in_another_namespace),
        cmocka_unit_test(test_other_socket_by_now),
        cmocka_unit_test(test_exact_questions),
        cmocka_unit_test(test_finds_the_program_that_listens),
        cmocka_unit_test(test_finds_it_in_another_namespace),
        cmocka_unit_test(test_ports_name_what_is_elsewhere),
        cmocka_unit_test(test_ends_without_waiting_for_answers),
        cmocka_unit_test(test_names_are_safe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
