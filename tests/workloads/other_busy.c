/* The next version of a program: what is put in place of a running binary. None of its names may turn up. */
#include "truth.h"

OWN_FRAME static void wrong_leaf(void)
{
    spin(1000000);
}

OWN_FRAME static void wrong_middle(void)
{
    wrong_leaf();
    wrong_leaf();
    NO_TAIL_CALL();
}

OWN_FRAME static void wrong_root(void)
{
    wrong_middle();
    NO_TAIL_CALL();
}

int main(void)
{
    truth_begin();
    truth_line("{\"tid\": %d}", truth_tid());
    for (;;)
        wrong_root();
}
