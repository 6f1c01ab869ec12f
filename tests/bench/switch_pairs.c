/* switch_pairs [PAIRS]: pairs of threads that bounce a byte over socket pairs, ten frames deep: as many
 * context switches as the machine can do. On a line of stdin it prints what it did so far:
 *
 *   {"time_ns": 812345678901, "round_trips": 1234567, "switches": 2470000} */
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum { DEPTH = 10, MAX_PAIRS = 64, CACHE_LINE_BYTES = 64 };

/* One writer each, on a cache line of its own. */
struct counter {
    _Alignas(CACHE_LINE_BYTES) atomic_ulong round_trips;
};

struct end {
    int fd;
    struct counter *counter; /* NULL for the one that answers */
};

static struct counter counters[MAX_PAIRS];

OWN_FRAME static void bounce(const struct end *end, int depth)
{
    char byte = 'x';

    if (depth > 0) {
        bounce(end, depth - 1);
        NO_TAIL_CALL();
        return;
    }
    if (end->counter != NULL && write(end->fd, &byte, 1) != 1)
        _exit(1);
    if (read(end->fd, &byte, 1) != 1)
        _exit(1);
    if (end->counter == NULL && write(end->fd, &byte, 1) != 1)
        _exit(1);
}

static void *run(void *argument)
{
    const struct end *end = argument;

    for (;;) {
        bounce(end, DEPTH);
        if (end->counter != NULL)
            atomic_fetch_add_explicit(&end->counter->round_trips, 1, memory_order_relaxed);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    static struct end ends[MAX_PAIRS][2];
    unsigned long pairs = bench_number(count, arguments, 1, 4);

    bench_begin();
    if (pairs < 1 || pairs > MAX_PAIRS)
        return 2;
    for (unsigned long i = 0; i < pairs; i++) {
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
            return 1;
        ends[i][0] = (struct end){.fd = fds[0], .counter = &counters[i]};
        ends[i][1] = (struct end){.fd = fds[1]};
        bench_thread(run, &ends[i][0]);
        bench_thread(run, &ends[i][1]);
    }
    do {
        unsigned long round_trips = 0;

        for (unsigned long i = 0; i < pairs; i++)
            round_trips += atomic_load_explicit(&counters[i].round_trips, memory_order_relaxed);
        printf("{\"time_ns\": %llu, \"round_trips\": %lu, \"switches\": %ld}\n",
               (unsigned long long)bench_now_ns(), round_trips, bench_switches());
    } while (bench_wait_for_line());
    return 0;
}
