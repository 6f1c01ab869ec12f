/* A hot leaf that keeps no frame: a walk by frame pointers would skip its caller, parent. */
#include "truth.h"

static volatile unsigned sink;

OWN_FRAME static unsigned tiny_leaf(unsigned value)
{
    for (unsigned i = 0; i < 40; i++) {
        value = value * 31 + i;
        __asm__ volatile("" : "+r"(value));
    }
    return value;
}

OWN_FRAME static void parent(void)
{
    unsigned value = 1;

    for (int i = 0; i < 100000; i++)
        value = tiny_leaf(value);
    sink = value;
}

OWN_FRAME static void grandparent(void)
{
    parent();
    NO_TAIL_CALL();
}

int main(void)
{
    truth_begin();
    truth_line("{\"tid\": %d}", truth_tid());
    for (;;)
        grandparent();
}
