/* A thread whose stack cannot be read: it sleeps below a page that has never been touched and that userfaultfd keeps from
 * being filled, since nobody answers. With the argument "deep" that page is further above its stack pointer than any first
 * copy reaches, and one that the walk needs. Beside it one that naps and one that burns.
 *
 * Prints {"hung": TID, "naps": TID, "burns": TID}, or {"error": TEXT} where userfaultfd is not to be had. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdlib.h>
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
    MOST_SAVED_BYTES = 64,  /* registers and return address above it */
    /* From the stack's end down: thread descriptor and first frames, then pages that stay away, then the sleeper's. */
    FIRST_MISSING_BYTES = 12 * 1024,
    LAST_MISSING_BYTES = 20 * 1024,
};

static pid_t hung_tid;
static bool deep;
static volatile char *volatile end_of_hole;

OWN_FRAME static void sleeps_below(volatile char *hole)
{
    hole[0] = 1; /* its lowest byte, in a page that is there */
    for (;;)
        pause();
}

OWN_FRAME static void sleeps_deep(void)
{
    volatile char hole[HOLE_BYTES];

    end_of_hole = hole + HOLE_BYTES;
    sleeps_below(hole);
    NO_TAIL_CALL();
}

static void *hangs(void *unused)
{
    volatile char hole[HOLE_BYTES];

    (void)unused;
    hung_tid = truth_tid();
    if (deep)
        sleeps_deep();
    else
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
        if (deep || offset < STACK_BYTES - LAST_MISSING_BYTES || offset >= STACK_BYTES - FIRST_MISSING_BYTES)
            stack[offset] = 0;
    return ioctl(fd, UFFDIO_REGISTER, &range);
}

/* Where the return address is that lies above the hole. What was dropped is missing again. */
static void drop_end_of_hole(void)
{
    uintptr_t begin = (uintptr_t)end_of_hole / PAGE_BYTES * PAGE_BYTES;
    uintptr_t end = ((uintptr_t)end_of_hole + MOST_SAVED_BYTES) / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;

    if (madvise((void *)begin, end - begin, MADV_DONTNEED) != 0)
        exit(1);
}

int main(int count, char **arguments)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    pid_t napper, burner;

    truth_begin();
    deep = count > 1 && strcmp(arguments[1], "deep") == 0;
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
    if (deep)
        drop_end_of_hole();
    truth_line("{\"hung\": %d, \"naps\": %d, \"burns\": %d}", hung_tid, napper, burner);
    for (;;)
        pause();
}
