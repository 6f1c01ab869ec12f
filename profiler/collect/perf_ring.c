#include "profiler/collect/perf_ring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/base/memory.h"

enum {
    MAX_RECORD_BYTES = 65536, /* header.size has 16 bits */
    RELEASE_SHARE = 16,       /* room is given back when this part of the ring has been read */
};

int perf_ring_map(struct perf_ring *ring, int event_fd, size_t data_bytes)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    size_t mapped_bytes = page_bytes + data_bytes;
    void *base = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event_fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    perf_ring_init(ring, base, (const uint8_t *)base + page_bytes, data_bytes);
    ring->mapped_bytes = mapped_bytes;
    return 0;
}

void perf_ring_init(struct perf_ring *ring, struct perf_event_mmap_page *page, const void *data,
                    size_t data_bytes)
{
    *ring = (struct perf_ring){
        .page = page,
        .data = data,
        .size_bytes = data_bytes,
        .head = page->data_tail,
        .tail = page->data_tail,
        .released = page->data_tail,
    };
}

void perf_ring_finish(struct perf_ring *ring)
{
    if (ring->mapped_bytes > 0)
        munmap(ring->page, ring->mapped_bytes);
    free(ring->scratch);
    *ring = (struct perf_ring){0};
}

void perf_ring_refresh(struct perf_ring *ring)
{
    /* Pairs with the kernel's barrier between writing the records and moving the head. */
    ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

/* Bytes at a position of the ring, which may lie on both sides of its end. */
static const void *view(struct perf_ring *ring, uint64_t position, size_t size_bytes)
{
    size_t offset = (size_t)(position & (ring->size_bytes - 1));
    size_t to_end = ring->size_bytes - offset;
    if (size_bytes <= to_end)
        return ring->data + offset;
    if (ring->scratch == NULL)
        ring->scratch = memory_zeroed(MAX_RECORD_BYTES, 1);
    memcpy(ring->scratch, ring->data + offset, to_end);
    memcpy(ring->scratch + to_end, ring->data, size_bytes - to_end);
    return ring->scratch;
}

const void *perf_ring_peek(struct perf_ring *ring, size_t *ret_size_bytes)
{
    struct perf_event_header header;
    uint64_t used_bytes = perf_ring_used_bytes(ring);
    if (ring->current == NULL) {
        if (used_bytes == 0)
            return NULL;
        /* Records are multiples of 8 bytes, as the header is: a header never wraps. */
        bool good =
            used_bytes >= sizeof header && used_bytes <= ring->size_bytes && ring->tail % sizeof header == 0;
        if (good) {
            memcpy(&header, view(ring, ring->tail, sizeof header), sizeof header);
            good =
                header.size >= sizeof header && header.size <= used_bytes && header.size % sizeof header == 0;
        }
        if (!good) {
            ring->corrupt++;
            ring->tail = ring->head;
            perf_ring_release(ring);
            return NULL;
        }
        ring->current = view(ring, ring->tail, header.size);
        ring->current_bytes = header.size;
    }
    *ret_size_bytes = ring->current_bytes;
    return ring->current;
}

void perf_ring_consume(struct perf_ring *ring)
{
    ring->tail += ring->current_bytes;
    ring->current = NULL;
    ring->current_bytes = 0;
    /* Not at every record: the kernel's side reads this cache line whenever it writes. */
    if (ring->tail - ring->released >= ring->size_bytes / RELEASE_SHARE)
        perf_ring_release(ring);
}

void perf_ring_release(struct perf_ring *ring)
{
    if (ring->released == ring->tail)
        return;
    /* Our reads of the records come before this store: then the kernel may overwrite them. */
    __atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
    ring->released = ring->tail;
}
