/* Burns some CPU, then sleeps 150 ms, and so on. Each nap is a line with its begin and end. */
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

int main(void)
{
    truth_begin();
    truth_line("{\"tid\": %d}", truth_tid());
    for (;;) {
        burn();
        nap();
    }
}
