#include "profiler/wait/wait_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "profiler/model/wait_role.h"
#include "profiler/wait/service_name.h"

struct rule {
    const char *syscall;
    enum wait_kind kind;
    const char *text; /* NULL: the name of the system call */
};

/* Calls whose wait is the same whatever their arguments. All others keep their own name: what read() or
 * poll() wait for depends on the descriptor. */
static const struct rule rules[] = {
    {"nanosleep", WAIT_SLEEP, "sleep"},   {"clock_nanosleep", WAIT_SLEEP, "sleep"},
    {"pause", WAIT_SLEEP, NULL},          {"epoll_wait", WAIT_OTHER, "epoll"},
    {"epoll_pwait", WAIT_OTHER, "epoll"}, {"epoll_pwait2", WAIT_OTHER, "epoll"},
    {"wait4", WAIT_OTHER, "child"},       {"waitid", WAIT_OTHER, "child"},
    {"vfork", WAIT_OTHER, "child"},       {"io_uring_enter", WAIT_OTHER, "io_uring"},
    {"futex", WAIT_LOCK, NULL},           {"flock", WAIT_LOCK, NULL},
    {"semop", WAIT_LOCK, NULL},           {"semtimedop", WAIT_LOCK, NULL},
    {"recvfrom", WAIT_NETWORK, NULL},     {"recvmsg", WAIT_NETWORK, NULL},
    {"recvmmsg", WAIT_NETWORK, NULL},     {"sendto", WAIT_NETWORK, NULL},
    {"sendmsg", WAIT_NETWORK, NULL},      {"sendmmsg", WAIT_NETWORK, NULL},
    {"connect", WAIT_NETWORK, NULL},      {"accept", WAIT_NETWORK, NULL},
    {"accept4", WAIT_NETWORK, NULL},      {"fsync", WAIT_DISK, NULL},
    {"fdatasync", WAIT_DISK, NULL},       {"sync_file_range", WAIT_DISK, NULL},
    {"msync", WAIT_DISK, NULL},
};

/* The last two are what the entry functions of read, recvfrom and their like consist of: these jump to them,
 * which leaves no frame of their own. */
static const char *const syscall_prefixes[] = {
    "__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_", "__arm64_sys_", "__do_sys_", "__se_sys_",
    "ksys_",      "__sys_",
};

static const char *syscall_of_function(const char *function)
{
    for (size_t i = 0; i < sizeof syscall_prefixes / sizeof syscall_prefixes[0]; i++) {
        size_t length = strlen(syscall_prefixes[i]);

        if (strncmp(function, syscall_prefixes[i], length) == 0)
            return function + length;
    }
    return NULL;
}

static bool is_page_fault(const char *function)
{
    return strcmp(function, "asm_exc_page_fault") == 0 || strcmp(function, "exc_page_fault") == 0 ||
           strcmp(function, "do_user_addr_fault") == 0;
}

/* SYSCALL_DEFINE names carry what the kernel calls the function, which is now and then not what users do. */
static const char *user_name(const char *syscall)
{
    static const char *const pairs[][2] = {
        {"newfstatat", "fstatat"}, {"pselect6", "select"}, {"ppoll", "poll"},
        {"pread64", "pread"},      {"pwrite64", "pwrite"},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (strcmp(pairs[i][0], syscall) == 0)
            return pairs[i][1];
    return syscall;
}

void wait_from_syscall_name(const char *syscall, struct wait_name *ret_name)
{
    const char *text;

    ret_name->kind = WAIT_OTHER;
    if (syscall == NULL || syscall[0] == '\0')
        syscall = "syscall";
    text = user_name(syscall);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].syscall, syscall) == 0) {
            ret_name->kind = rules[i].kind;
            if (rules[i].text != NULL)
                text = rules[i].text;
            break;
        }
    }
    snprintf(ret_name->text, sizeof ret_name->text, "[wait: %.40s]", text);
}

void wait_from_kernel_frames(const char *const *names, size_t count, struct wait_name *ret_name)
{
    /* A fault may happen inside read(): it stands nearer to the leaf, and it is what the thread waits for. */
    for (size_t i = 0; i < count; i++) {
        const char *syscall = syscall_of_function(names[i]);

        if (is_page_fault(names[i])) {
            *ret_name = (struct wait_name){.kind = WAIT_DISK, .text = "[wait: page fault]"};
            return;
        }
        if (syscall != NULL) {
            wait_from_syscall_name(syscall, ret_name);
            return;
        }
    }
    wait_from_syscall_name(NULL, ret_name);
}

static enum wait_kind kind_of_role(enum wait_role role)
{
    switch (role) {
    case WAIT_ROLE_OUTBOUND:
    case WAIT_ROLE_CLIENT:
    case WAIT_ROLE_SEND_CLIENT:
    case WAIT_ROLE_ACCEPT:
        return WAIT_NETWORK;
    case WAIT_ROLE_LOCK:
    case WAIT_ROLE_CONDITION:
    case WAIT_ROLE_TASK:
        return WAIT_LOCK;
    case WAIT_ROLE_SLEEP:
        return WAIT_SLEEP;
    case WAIT_ROLE_DISK:
        return WAIT_DISK;
    case WAIT_ROLE_UNKNOWN:
    case WAIT_ROLE_EVENT_LOOP:
    case WAIT_ROLE_QUEUE:
    case WAIT_ROLE_CHILD:
    case WAIT_ROLE_COUNT:
        break;
    }
    return WAIT_OTHER;
}

enum wait_kind wait_kind_of_text(const char *text)
{
    enum wait_role role = wait_role_of_text(text);
    char wanted[64];

    if (strstr(text, ", database: ") != NULL)
        return WAIT_DATABASE;
    if (role == WAIT_ROLE_OUTBOUND) {
        char service[WAIT_TEXT_BYTES];

        service_of_wait(text, service, sizeof service);
        if (service_database(service) != NULL)
            return WAIT_DATABASE;
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        snprintf(wanted, sizeof wanted, "[wait: %s]",
                 rules[i].text != NULL ? rules[i].text : rules[i].syscall);
        if (strcmp(wanted, text) == 0)
            return rules[i].kind;
    }
    return kind_of_role(role);
}
