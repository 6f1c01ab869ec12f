/* For tests of unwinding: a stopped child with its registers, its stack and its mappings, as a sample would
 * have them. The child is the test's own, so it may be traced. */
#ifndef STALLGRAPH_TESTS_UNIT_UNWIND_CHILD_H
#define STALLGRAPH_TESTS_UNIT_UNWIND_CHILD_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/model/address_space.h"
#include "profiler/model/binary.h"
#include "profiler/model/raw_sample.h"

enum { CHILD_MAX_FRAMES = 4096, CHILD_MAX_STACK_BYTES = 1 << 20, CHILD_LINE_BYTES = 1 << 17 };

struct child {
    pid_t pid;
    pid_t tid;    /* the thread that has the stack */
    int to_child; /* its standard input: one byte lets it go on */
    FILE *from_child;

    /* What it printed. */
    int interrupted; /* index into truth of the address that a signal interrupted, or -1 */
    uint64_t truth[CHILD_MAX_FRAMES];
    size_t truth_count;

    struct address_space space;
    struct raw_sample sample;
    uint8_t stack[CHILD_MAX_STACK_BYTES];
};

static inline bool child_parse_truth(struct child *child, char *line)
{
    char *at = line;
    int length = 0;

    if (sscanf(at, "stack %d %d%n", &child->tid, &child->interrupted, &length) < 2)
        return false;
    at += length;
    child->truth_count = 0;
    for (char *word = strtok(at, " \n"); word != NULL && child->truth_count < CHILD_MAX_FRAMES;
         word = strtok(NULL, " \n"))
        child->truth[child->truth_count++] = strtoull(word, NULL, 16);
    return child->truth_count > 0;
}

/* Starts the program and waits until it has said where it is. False: it could not be, or said something else.
 */
static inline bool child_start(struct child *child, const char *path, const char *mode, const char *argument)
{
    static char line[CHILD_LINE_BYTES];
    int in[2];
    int out[2];

    memset(child, 0, sizeof *child);
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return false;
    child->pid = fork();
    if (child->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execl(path, path, mode, argument, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    child->to_child = in[1];
    child->from_child = fdopen(out[0], "r");
    return child->pid > 0 && fgets(line, sizeof line, child->from_child) != NULL &&
           child_parse_truth(child, line);
}

static inline void child_end(struct child *child)
{
    if (child->pid > 0) {
        kill(child->pid, SIGKILL);
        /* A traced thread keeps its process from ending until its tracer has seen it end. */
        if (child->tid > 0 && child->tid != child->pid)
            waitpid(child->tid, NULL, __WALL);
        while (waitpid(child->pid, NULL, __WALL) < 0 && errno == EINTR)
            continue;
        close(child->to_child);
        if (child->from_child != NULL)
            fclose(child->from_child);
    }
    address_space_finish(&child->space);
    memset(child, 0, sizeof *child);
}

/* Waits until the thread sleeps in read(2): it printed its line before. */
static inline void child_wait_blocked(const struct child *child)
{
    char path[64];
    char text[256] = "";

    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", child->pid, child->tid);
    for (int i = 0; i < 2000; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = read(fd, text, sizeof text - 1);

        close(fd);
        if (got > 0 && strncmp(text, "0 0x0 ", 6) == 0)
            return;
        usleep(1000);
    }
}

static inline bool child_stop(const struct child *child)
{
    int status;

    child_wait_blocked(child);
    return ptrace(PTRACE_ATTACH, child->tid, NULL, NULL) == 0 &&
           waitpid(child->tid, &status, __WALL) == child->tid && WIFSTOPPED(status);
}

/* Reads /proc/PID/maps as a collector does: executable mappings only. */
static inline bool child_read_maps(struct child *child, struct binary_table *binaries)
{
    char path[64];
    char line[1024];
    FILE *maps;

    address_space_clear(&child->space);
    snprintf(path, sizeof path, "/proc/%d/maps", child->pid);
    maps = fopen(path, "re");
    if (maps == NULL)
        return false;
    while (fgets(line, sizeof line, maps) != NULL) {
        struct mapping mapping = {0};
        struct binary *binary;
        unsigned major_number, minor_number;
        uint64_t inode;
        char flags[5];
        int name = 0;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &mapping.start,
                   &mapping.end, flags, &mapping.file_offset, &major_number, &minor_number, &inode,
                   &name) < 7 ||
            flags[2] != 'x')
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line + name, "[vsyscall]") == 0)
            continue;
        if (strcmp(line + name, "[vdso]") == 0) {
            binary = binary_table_vdso(binaries);
        } else if (inode == 0) {
            binary = binary_table_jit(binaries, (uint32_t)child->pid);
            mapping.file_offset = mapping.start;
        } else {
            struct binary_key key = {.device = makedev(major_number, minor_number), .inode = inode};

            binary = binary_table_find(binaries, &key);
            if (binary == NULL)
                binary = binary_table_add_file(binaries, &key, line + name,
                                               open(line + name, O_RDONLY | O_CLOEXEC));
        }
        mapping.binary = binary->id;
        address_space_insert(&child->space, &mapping);
    }
    fclose(maps);
    return true;
}

/* Registers and at most stack_bytes of the stack, of the stopped thread. */
static inline bool child_take_sample(struct child *child, size_t stack_bytes)
{
    struct user_regs_struct regs;
    struct raw_sample *sample = &child->sample;
    struct iovec local = {.iov_base = child->stack};
    struct iovec remote;
    ssize_t got = -1;

    if (ptrace(PTRACE_GETREGS, child->tid, NULL, &regs) < 0)
        return false;
    *sample = (struct raw_sample){.pid = child->pid, .tid = child->tid, .stack = child->stack};
    registers_set(&sample->registers, REGISTER_IP, regs.rip);
    registers_set(&sample->registers, REGISTER_RSP, regs.rsp);
    registers_set(&sample->registers, REGISTER_RBP, regs.rbp);
    registers_set(&sample->registers, REGISTER_RBX, regs.rbx);
    registers_set(&sample->registers, REGISTER_R8, regs.r8);
    registers_set(&sample->registers, REGISTER_R9, regs.r9);
    registers_set(&sample->registers, REGISTER_R10, regs.r10);
    registers_set(&sample->registers, REGISTER_R11, regs.r11);
    registers_set(&sample->registers, REGISTER_R12, regs.r12);
    registers_set(&sample->registers, REGISTER_R13, regs.r13);
    registers_set(&sample->registers, REGISTER_R14, regs.r14);
    registers_set(&sample->registers, REGISTER_R15, regs.r15);
    registers_set(&sample->registers, REGISTER_RAX, regs.rax);
    registers_set(&sample->registers, REGISTER_RCX, regs.rcx);
    registers_set(&sample->registers, REGISTER_RDX, regs.rdx);
    registers_set(&sample->registers, REGISTER_RSI, regs.rsi);
    registers_set(&sample->registers, REGISTER_RDI, regs.rdi);
    sample->stack_address = regs.rsp;
    if (stack_bytes > CHILD_MAX_STACK_BYTES)
        stack_bytes = CHILD_MAX_STACK_BYTES;
    /* Fewer where the stack's mapping ends before: a read over its end gives what lies below it. */
    local.iov_len = stack_bytes;
    remote = (struct iovec){.iov_base = (void *)regs.rsp, .iov_len = stack_bytes};
    got = process_vm_readv(child->pid, &local, 1, &remote, 1, 0);
    for (size_t page = 4096; got < 0 && stack_bytes > page;) {
        stack_bytes -= page;
        remote.iov_len = stack_bytes;
        got = process_vm_readv(child->pid, &local, 1, &remote, 1, 0);
    }
    sample->stack_size_bytes = got < 0 ? 0 : (size_t)got;
    return got > 0;
}

#endif
