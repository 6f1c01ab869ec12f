#include "profiler/cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child. A closed pipe without a byte means that the profiler gave up. */
static _Noreturn void run_child(char **argv, int release_fd, int failure_fd)
{
    char go;
    int code;

    signal(SIGPIPE, SIG_DFL);
    /* Where Yama lets only ancestors look (kernel.yama.ptrace_scope 1): its memory is read by a child of our parent,
     * which is none. Elsewhere this fails, and is not needed. */
    prctl(PR_SET_PTRACER, getppid());
    if (read(release_fd, &go, 1) != 1)
        _exit(125);
    execvp(argv[0], argv);
    code = errno;
    if (write(failure_fd, &code, sizeof code) < 0)
        _exit(126);
    _exit(127);
}

int command_start(char **argv, struct command *ret_command, struct error *err)
{
    int release[2];
    int failure[2];
    pid_t pid;

    if (pipe2(release, O_CLOEXEC) < 0)
        return error_set(err, -errno, "make a pipe");
    if (pipe2(failure, O_CLOEXEC) < 0) {
        error_set(err, -errno, "make a pipe");
        close(release[0]);
        close(release[1]);
        return err != NULL ? err->code : -EMFILE;
    }
    pid = fork();
    if (pid == 0) {
        close(release[1]);
        close(failure[0]);
        run_child(argv, release[0], failure[1]);
    }
    close(release[0]);
    close(failure[1]);
    if (pid < 0) {
        error_set(err, -errno, "start %s", argv[0]);
        close(release[1]);
        close(failure[0]);
        return err != NULL ? err->code : -EAGAIN;
    }
    *ret_command = (struct command){.pid = pid, .release_fd = release[1], .failure_fd = failure[0]};
    return 0;
}

int command_release(struct command *command, const char *name, struct error *err)
{
    int code = 0;
    ssize_t got;

    if (write(command->release_fd, "g", 1) < 0)
        return error_set(err, -errno, "start %s", name);
    close(command->release_fd);
    command->release_fd = -1;
    do
        got = read(command->failure_fd, &code, sizeof code); /* ends with nothing when exec closed the pipe */
    while (got < 0 && errno == EINTR);
    close(command->failure_fd);
    command->failure_fd = -1;
    return got == (ssize_t)sizeof code ? error_set(err, -code, "run %s", name) : 0;
}

int command_wait(const struct command *command)
{
    int status;

    while (waitpid(command->pid, &status, 0) < 0)
        if (errno != EINTR)
            return 125;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void command_abandon(struct command *command)
{
    if (command->release_fd >= 0)
        close(command->release_fd);
    if (command->failure_fd >= 0)
        close(command->failure_fd);
    command->release_fd = -1;
    command->failure_fd = -1;
    command_wait(command);
}
