/* Burns some CPU, then sleeps 150 ms, and so on. Each nap is a line with its begin and end. With the argument
 * "not-dumpable" it makes itself one that nobody of its own user may look into. */
#include <string.h>
#include <sys/prctl.h>

#include "truth.h"

OWN_FRAME static void burn(void)
{
    spin(30000000);
}

OWN_FRAME static void nap(void)
{
    uint64_t begin_ns = truth_wall_ns();

    truth_sleep_ms(150);
    truth_line("{\"nap_ns\": [%llu, %llu]}", (unsigned long long)begin_ns,
               (unsigned long long)truth_wall_ns());
}

int main(int argc, char **argv)
{
    truth_begin();
    if (argc > 1 && strcmp(argv[1], "not-dumpable") == 0)
        prctl(PR_SET_DUMPABLE, 0);
    truth_line("{\"tid\": %d}", truth_tid());
    for (;;) {
        burn();
        nap();
    }
}
