/* Runs a command as a container's seccomp profile would: perf_event_open and bpf are refused.
 *
 *   deny_perf [--errno N] COMMAND [ARGUMENT...] */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int install(unsigned code)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]), .filter = program};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int argc, char **argv)
{
    unsigned code = EPERM;
    int first = 1;

    if (argc > 2 && strcmp(argv[1], "--errno") == 0) {
        code = (unsigned)atoi(argv[2]);
        first = 3;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: deny_perf [--errno N] COMMAND [ARGUMENT...]\n");
        return 2;
    }
    if (install(code) != 0) {
        perror("deny_perf: install the filter");
        return 126;
    }
    execvp(argv[first], argv + first);
    perror("deny_perf: run the command");
    return 127;
}
