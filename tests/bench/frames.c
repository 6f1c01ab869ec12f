/* frames spin|block [DEPTH [MICROSECONDS]]: a stack of DEPTH functions of its own. Prints the return
 * addresses on it, leaf first, as tests/workloads/unwind_targets.c does:
 *
 *   stack TID -1 ADDRESS ADDRESS ...
 *
 * Then the leaf reads standard input; with spin it works instead, and with MICROSECONDS it also sleeps that
 * long again and again. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum { MAX_DEPTH = 1024 };

static uint64_t truth[MAX_DEPTH];
static unsigned long count;
static volatile unsigned long sink;

static void tell(void)
{
    printf("stack %ld -1", syscall(SYS_gettid));
    for (unsigned long i = count; i-- > 0;)
        printf(" %lx", (unsigned long)truth[i]);
    printf("\n");
}

OWN_FRAME static void leaf(int spins, unsigned long sleep_us)
{
    char byte;

    truth[count++] = (uint64_t)__builtin_return_address(0);
    tell();
    if (!spins) {
        sink += (unsigned long)read(STDIN_FILENO, &byte, 1);
        return;
    }
    for (;;) {
        for (unsigned i = 0; i < 100000; i++)
            sink += i;
        if (sleep_us > 0)
            usleep((useconds_t)sleep_us);
    }
}

/* Frames of several sizes, with and without saved registers, as a program has them. */
OWN_FRAME static void small(unsigned long left, int spins, unsigned long sleep_us);

OWN_FRAME static unsigned long large(unsigned long left, int spins, unsigned long sleep_us, unsigned long a,
                                     unsigned long b)
{
    volatile char bytes[200] = {0};

    truth[count++] = (uint64_t)__builtin_return_address(0);
    bytes[left % sizeof bytes] = 1;
    small(left - 1, spins, sleep_us);
    return a * b + (unsigned long)bytes[0];
}

static void small(unsigned long left, int spins, unsigned long sleep_us)
{
    truth[count++] = (uint64_t)__builtin_return_address(0);
    if (left <= 1)
        leaf(spins, sleep_us);
    else
        sink += large(left - 1, spins, sleep_us, sink, left);
    NO_TAIL_CALL();
}

int main(int argument_count, char **arguments)
{
    unsigned long depth = bench_number(argument_count, arguments, 2, 27);

    bench_begin();
    if (depth < 2 || depth >= MAX_DEPTH)
        return 2;
    small(depth - 1, argument_count > 1 && strcmp(arguments[1], "spin") == 0,
          bench_number(argument_count, arguments, 3, 0));
    return 0;
}
