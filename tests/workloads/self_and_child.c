/* A parent with three quarters of the time in its own body and one quarter in a child, measured by the
 * thread's CPU clock: a line of stdin is answered with both. */
#include <poll.h>
#include <unistd.h>

#include "truth.h"

OWN_FRAME static void child(void)
{
    spin(5000000);
}

/* Inlined into parent, so that it is parent's own time. */
__attribute__((always_inline)) static inline void own_work(void)
{
    spin(15000000);
}

OWN_FRAME static uint64_t parent(void)
{
    own_work();
    uint64_t begin_ns = truth_thread_cpu_ns();
    child();
    return truth_thread_cpu_ns() - begin_ns;
}

int main(void)
{
    struct pollfd line = {.fd = STDIN_FILENO, .events = POLLIN};
    uint64_t child_ns = 0, begin_ns;

    truth_begin();
    truth_line("{\"tid\": %d}", truth_tid());
    begin_ns = truth_thread_cpu_ns();
    for (;;) {
        child_ns += parent();
        if (poll(&line, 1, 0) > 0 && truth_wait_for_line())
            truth_line("{\"child_ns\": %llu, \"all_ns\": %llu}", (unsigned long long)child_ns,
                       (unsigned long long)(truth_thread_cpu_ns() - begin_ns));
    }
}
