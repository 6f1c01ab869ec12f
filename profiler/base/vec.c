#include "profiler/base/vec.h"

#include "profiler/base/memory.h"

void *vec_reserve(void *items, size_t *capacity, size_t need, size_t item_size)
{
    size_t wanted = *capacity;

    if (need <= wanted)
        return items;
    if (wanted < 8)
        wanted = 8;
    while (wanted < need)
        wanted += wanted / 2;
    items = memory_resize(items, wanted, item_size);
    *capacity = wanted;
    return items;
}
