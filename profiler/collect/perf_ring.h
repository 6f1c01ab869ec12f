/* One mmapped perf ring, read in place: perf_event_open(2), "MMAP layout".
 *
 *   perf_ring_refresh(&ring);                      // see what the kernel has written by now
 *   while ((bytes = perf_ring_peek(&ring, &size)) != NULL) {
 *       ...                                        // a view, valid until the record is consumed
 *       perf_ring_consume(&ring);
 *   }
 *   perf_ring_release(&ring);                      // give the room back to the kernel
 *
 * A record that wraps round the end of the ring is copied into a scratch buffer; all others are read where
 * they lie. */
#ifndef STALLGRAPH_COLLECT_PERF_RING_H
#define STALLGRAPH_COLLECT_PERF_RING_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct perf_ring {
    struct perf_event_mmap_page *page;
    const uint8_t *data;
    size_t size_bytes; /* of data: a power of two */
    uint64_t head;     /* the kernel's, as of the last refresh */
    uint64_t tail;     /* ours */
    uint64_t released; /* the tail that the kernel knows of */
    uint8_t *scratch;  /* for records that wrap round; allocated when first needed */
    const void *current;
    size_t current_bytes;
    uint64_t corrupt; /* times that a record's header made no sense: all that was there is skipped */
    size_t mapped_bytes;
};

/* Maps the ring of an event; data_bytes is a power of two and a multiple of the page size. Returns 0 or
 * -errno: -EPERM when the limit of locked memory is reached. */
int perf_ring_map(struct perf_ring *ring, int event_fd, size_t data_bytes);
/* The same on memory that is there already, page and data apart; for tests. */
void perf_ring_init(struct perf_ring *ring, struct perf_event_mmap_page *page, const void *data,
                    size_t data_bytes);
/* Unmaps what perf_ring_map mapped; a zeroed ring is allowed. */
void perf_ring_finish(struct perf_ring *ring);

void perf_ring_refresh(struct perf_ring *ring);
/* The oldest record, 8-byte aligned, or NULL when there is none. Its header.size equals *ret_size_bytes. */
const void *perf_ring_peek(struct perf_ring *ring, size_t *ret_size_bytes);
/* Drops the record that was peeked. Its room goes back to the kernel by and by; perf_ring_release does it at
 * once. */
void perf_ring_consume(struct perf_ring *ring);
void perf_ring_release(struct perf_ring *ring);

/* Bytes written and not yet consumed, as of the last refresh. */
static inline uint64_t perf_ring_used_bytes(const struct perf_ring *ring)
{
    return ring->head - ring->tail;
}

#endif
