#include "profiler/unwind/stack_rest.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* A walk reads memory by pages. */
enum { PAGE_BYTES = 4096 };

static uint64_t page_of(uint64_t address)
{
    return address / PAGE_BYTES * PAGE_BYTES;
}

void stack_rest_begin(struct stack_rest *rest, const struct raw_sample *sample)
{
    rest->begin = page_of(sample->stack_address + sample->stack_size_bytes);
    rest->fetched_bytes = 0;
    rest->window_address = rest->begin;
    rest->window_bytes = 0;
    rest->next_window_bytes = STACK_REST_FIRST_BYTES;
    rest->left_bytes = STACK_REST_MAX_BYTES;
}

static bool is_in_window(const struct stack_rest *rest, uint64_t address, size_t size_bytes)
{
    uint64_t offset = address - rest->window_address;

    return address >= rest->window_address && offset <= rest->window_bytes &&
           rest->window_bytes - offset >= size_bytes;
}

static size_t smaller(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

/* Whole pages, so that none is fetched twice for its two ends. */
static bool move_window(struct stack_rest *rest, uint64_t address)
{
    uint64_t from = page_of(address);
    uint64_t window_end = rest->window_address + rest->window_bytes;
    bool goes_on = from >= rest->window_address && from <= window_end;
    size_t bytes;
    ssize_t got;

    if (rest->fetched_bytes > 0)
        rest->next_window_bytes =
            goes_on ? smaller(rest->next_window_bytes * 2, STACK_REST_FETCH_BYTES) : STACK_REST_FIRST_BYTES;
    bytes = smaller(smaller(rest->next_window_bytes, rest->left_bytes), rest->end - from);
    if (bytes == 0)
        return false;
    got = rest->fetch(rest->context, from, bytes, &rest->window);
    if (got <= 0) {
        rest->left_bytes = 0;
        rest->window_bytes = 0;
        return false;
    }
    rest->window_address = from;
    rest->window_bytes = smaller((uint64_t)got, bytes);
    rest->fetched_bytes += rest->window_bytes;
    rest->left_bytes -= rest->window_bytes;
    return true;
}

int stack_rest_read(void *context, uint64_t address, void *bytes, size_t size_bytes)
{
    struct stack_rest *rest = context;

    if (address < rest->begin || address >= rest->end || size_bytes > rest->end - address)
        return -EFAULT;
    if (!is_in_window(rest, address, size_bytes) &&
        (!move_window(rest, address) || !is_in_window(rest, address, size_bytes)))
        return -EFAULT;
    memcpy(bytes, rest->window + (address - rest->window_address), size_bytes);
    return 0;
}
