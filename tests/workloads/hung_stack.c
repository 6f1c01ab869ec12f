/* A thread whose stack cannot be read: it sleeps below a page that has never been touched and that userfaultfd keeps from
 * being filled, since nobody answers. Beside it one that naps and one that burns.
 *
 * Prints {"hung": TID, "naps": TID, "burns": TID}, or {"error": TEXT} where userfaultfd is not to be had. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "truth.h"

enum {
    STACK_BYTES = 256 * 1024,
    PAGE_BYTES = 4096,
    HOLE_BYTES = 24 * 1024, /* of a frame that is not written to */
    /* From the stack's end down: thread descriptor and first frames, then pages that stay away, then the sleeper's. */
    FIRST_MISSING_BYTES = 12 * 1024,
    LAST_MISSING_BYTES = 20 * 1024,
};

static pid_t hung_tid;

OWN_FRAME static void sleeps_below(volatile char *hole)
{
    hole[0] = 1; /* its lowest byte, in a page that is there */
    for (;;)
        pause();
}

static void *hangs(void *unused)
{
    volatile char hole[HOLE_BYTES];

    (void)unused;
    hung_tid = truth_tid();
    sleeps_below(hole);
    NO_TAIL_CALL();
    return NULL;
}

OWN_FRAME static void naps(void *unused)
{
    (void)unused;
    for (;;)
        truth_sleep_ms(20);
}

OWN_FRAME static void burns(void *unused)
{
    (void)unused;
    for (;;)
        spin(1000000);
}

/* The pages that exist already do not fault; the others do, for ever. */
static int make_stack(char *stack)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {
        .range = {.start = (unsigned long)stack, .len = STACK_BYTES},
        .mode = UFFDIO_REGISTER_MODE_MISSING,
    };
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0)
        return -1;
    for (size_t offset = 0; offset < STACK_BYTES; offset += PAGE_BYTES)
        if (offset < STACK_BYTES - LAST_MISSING_BYTES || offset >= STACK_BYTES - FIRST_MISSING_BYTES)
            stack[offset] = 0;
    return ioctl(fd, UFFDIO_REGISTER, &range);
}

int main(void)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    pid_t napper, burner;

    truth_begin();
    if (stack == MAP_FAILED || madvise(stack, STACK_BYTES, MADV_NOHUGEPAGE) != 0 || make_stack(stack) != 0) {
        truth_line("{\"error\": \"%s\"}", strerror(errno));
        pause();
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK_BYTES);
    if (pthread_create(&thread, &attributes, hangs, NULL) != 0)
        return 1;
    truth_thread("naps", naps, NULL, &napper);
    truth_thread("burns", burns, NULL, &burner);
    truth_sleep_ms(100); /* it sleeps by now */
    truth_line("{\"hung\": %d, \"naps\": %d, \"burns\": %d}", hung_tid, napper, burner);
    for (;;)
        pause();
}
