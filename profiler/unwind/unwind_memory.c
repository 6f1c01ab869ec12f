#include "profiler/unwind/unwind_memory.h"

#include <string.h>

void unwind_memory_begin(struct unwind_memory *memory, const struct unwind_request *request)
{
    memory->request = request;
    memory->has_failed = false;
    memory->has_page = false;
}

static bool read_copy(const struct raw_sample *sample, uint64_t address, uint64_t *ret_word)
{
    uint64_t offset = address - sample->stack_address;

    if (sample->stack == NULL || address < sample->stack_address || offset > sample->stack_size_bytes ||
        sample->stack_size_bytes - offset < sizeof *ret_word)
        return false;
    memcpy(ret_word, sample->stack + offset, sizeof *ret_word);
    return true;
}

/* Only what is mapped executable: that is the file's bytes. Other segments may have been written to since
 * (data, relocations), so the file would tell something else than the target reads. */
size_t unwind_memory_read_code(const struct unwind_memory *memory, uint64_t address, uint8_t *bytes,
                               size_t size_bytes)
{
    const struct mapping *mapping = address_space_find(memory->request->space, address);
    const struct binary *binary;
    ssize_t got;

    if (mapping == NULL)
        return 0;
    binary = binary_table_get(memory->binaries, mapping->binary);
    if (size_bytes > mapping->end - address)
        size_bytes = mapping->end - address;
    if (binary == NULL || binary->kind == BINARY_JIT) {
        const struct unwind_request *request = memory->request;

        return request->read_memory != NULL &&
                       request->read_memory(request->read_context, address, bytes, size_bytes) == 0
                   ? size_bytes
                   : 0;
    }
    got = binary_read(binary, address - mapping->start + mapping->file_offset, bytes, size_bytes);
    return got < 0 ? 0 : (size_t)got;
}

static bool read_target(struct unwind_memory *memory, uint64_t address, uint64_t *ret_word)
{
    const struct unwind_request *request = memory->request;
    uint64_t page_address = address / UNWIND_MEMORY_PAGE_BYTES * UNWIND_MEMORY_PAGE_BYTES;
    uint64_t offset = address - page_address;

    if (request->read_memory == NULL)
        return false;
    if (offset > UNWIND_MEMORY_PAGE_BYTES - sizeof *ret_word)
        return request->read_memory(request->read_context, address, ret_word, sizeof *ret_word) == 0;
    if (!memory->has_page || memory->page_address != page_address) {
        memory->has_page = false;
        if (request->read_memory(request->read_context, page_address, memory->page, sizeof memory->page) != 0)
            return false;
        memory->has_page = true;
        memory->page_address = page_address;
    }
    memcpy(ret_word, memory->page + offset, sizeof *ret_word);
    return true;
}

bool unwind_memory_read_word(struct unwind_memory *memory, uint64_t address, uint64_t *ret_word)
{
    uint8_t code[sizeof *ret_word];

    if (read_copy(memory->request->sample, address, ret_word))
        return true;
    if (unwind_memory_read_code(memory, address, code, sizeof code) == sizeof code) {
        memcpy(ret_word, code, sizeof code);
        return true;
    }
    if (read_target(memory, address, ret_word))
        return true;
    memory->has_failed = true;
    memory->failed_address = address;
    return false;
}

bool unwind_memory_failed_beyond_copy(const struct unwind_memory *memory)
{
    const struct raw_sample *sample = memory->request->sample;

    return memory->has_failed && memory->failed_address >= sample->stack_address &&
           memory->failed_address - sample->stack_address + sizeof(uint64_t) > sample->stack_size_bytes;
}
