/* Stacks that do not fit. "frames N": N nested small frames. "bytes N": N + 1 frames of 30 KB, with 4 more than the
 * 64 KB that a sample of the kernel can hold. "huge N": N + 1 frames of 1 MB. The leaf burns; with "blocks" as third argument it sleeps for
 * 20 ms instead, over and over; with "stays" it never returns. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "truth.h"

static bool blocks;
static bool stays;

OWN_FRAME static void works(void)
{
    if (stays)
        pause();
    else if (blocks)
        truth_sleep_ms(20);
    else
        spin(3000000);
}

OWN_FRAME static unsigned nested(unsigned depth)
{
    if (depth == 0) {
        works();
        return 1;
    }
    unsigned below = nested(depth - 1);
    NO_TAIL_CALL();
    return below + depth;
}

OWN_FRAME static unsigned wide(unsigned depth)
{
    volatile char buffer[30000];

    buffer[depth] = (char)depth;
    if (depth == 0) {
        works();
        return 1;
    }
    unsigned below = wide(depth - 1);
    return below + (unsigned char)buffer[depth];
}

OWN_FRAME static unsigned huge(unsigned depth)
{
    volatile char buffer[1 << 20];

    buffer[depth] = (char)depth;
    if (depth == 0) {
        works();
        return 1;
    }
    unsigned below = huge(depth - 1);
    return below + (unsigned char)buffer[depth];
}

int main(int count, char **arguments)
{
    truth_begin();
    if (count < 3)
        return 2;
    unsigned depth = (unsigned)strtoul(arguments[2], NULL, 10);
    blocks = count > 3 && strcmp(arguments[3], "blocks") == 0;
    stays = count > 3 && strcmp(arguments[3], "stays") == 0;
    truth_line("{\"tid\": %d}", truth_tid());
    for (;;) {
        if (strcmp(arguments[1], "bytes") == 0)
            wide(depth);
        else if (strcmp(arguments[1], "huge") == 0)
            huge(depth);
        else
            nested(depth);
    }
}
