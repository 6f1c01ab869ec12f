/* How long a thread's waits are, of which only looks from time to time are had: by the kernel's counters between two of them. Short
 * waits are over before they can be looked at, so what is lost of them is told apart.
 *
 *   class = wait_length_class(wait_length_mean_ns(&before, &now));
 *   printf("below %" PRIu64 " ns", wait_length_below_ns(class));
 */
#ifndef STALLGRAPH_MODEL_WAIT_LENGTH_H
#define STALLGRAPH_MODEL_WAIT_LENGTH_H

#include <stddef.h>
#include <stdint.h>

enum { WAIT_LENGTH_CLASSES = 4 };

struct wait_length_point {
    uint64_t time_ns;
    uint64_t on_cpu_ns, runnable_ns, voluntary_switches; /* the kernel's counters */
};

/* Looks at threads that were newly blocked, whose waits were of one class. */
struct wait_length_looks {
    uint64_t stacks; /* taken or raced */
    uint64_t lost;   /* of these: raced, and not recalled */
};

/* The mean of the thread's waits that began between the two; of one that lasted all the time, at least as much as that. */
uint64_t wait_length_mean_ns(const struct wait_length_point *before, const struct wait_length_point *now);

size_t wait_length_class(uint64_t mean_ns);
/* The class's upper bound, exclusive; UINT64_MAX for the last. */
uint64_t wait_length_below_ns(size_t class);

#endif
