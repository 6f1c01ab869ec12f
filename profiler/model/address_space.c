#include "profiler/model/address_space.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/base/vec.h"

void address_space_finish(struct address_space *space)
{
    if (space == NULL)
        return;
    free(space->mappings);
    *space = (struct address_space){0};
}

void address_space_clear(struct address_space *space)
{
    space->count = 0;
}

void address_space_copy(struct address_space *to, const struct address_space *from)
{
    if (to == from)
        return;
    to->count = 0;
    if (from->count == 0)
        return;
    to->mappings = vec_reserve(to->mappings, &to->capacity, from->count, sizeof *to->mappings);
    memcpy(to->mappings, from->mappings, from->count * sizeof *to->mappings);
    to->count = from->count;
}

/* The index of the first mapping that ends behind address; count when there is none. */
static size_t first_ending_after(const struct address_space *space, uint64_t address)
{
    size_t low = 0;
    size_t high = space->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (space->mappings[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* What is left of a mapping from start on. */
static struct mapping upper_part(const struct mapping *mapping, uint64_t start)
{
    struct mapping part = *mapping;

    part.file_offset += start - mapping->start;
    part.start = start;
    return part;
}

void address_space_insert(struct address_space *space, const struct mapping *mapping)
{
    struct mapping pieces[3];
    struct mapping new_mapping = *mapping; /* it may point into the array that moves below */
    size_t piece_count = 0;
    size_t first;
    size_t behind;

    if (new_mapping.start >= new_mapping.end)
        return;
    first = first_ending_after(space, new_mapping.start);
    behind = first;
    while (behind < space->count && space->mappings[behind].start < new_mapping.end)
        behind++;

    /* [first, behind) overlap. Of these only the first can stick out below and only the last above; one that
     * the new mapping splits in the middle does both. */
    if (first < behind && space->mappings[first].start < new_mapping.start) {
        pieces[piece_count] = space->mappings[first];
        pieces[piece_count++].end = new_mapping.start;
    }
    pieces[piece_count++] = new_mapping;
    if (first < behind && space->mappings[behind - 1].end > new_mapping.end)
        pieces[piece_count++] = upper_part(&space->mappings[behind - 1], new_mapping.end);

    space->mappings =
        vec_reserve(space->mappings, &space->capacity, space->count + piece_count, sizeof *space->mappings);
    memmove(&space->mappings[first + piece_count], &space->mappings[behind],
            (space->count - behind) * sizeof *space->mappings);
    memcpy(&space->mappings[first], pieces, piece_count * sizeof *pieces);
    space->count = space->count - (behind - first) + piece_count;
}

const struct mapping *address_space_find(const struct address_space *space, uint64_t address)
{
    size_t index = first_ending_after(space, address);

    if (index == space->count || space->mappings[index].start > address)
        return NULL;
    return &space->mappings[index];
}
