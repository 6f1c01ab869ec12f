/* A whole ELF file, as a target might have it mapped: its headers, its call frame tables, and a walk through
 * them. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/unwind/unwinder.h"

enum { STACK_BYTES = 1024, MAX_PLACES = 64, LOAD_BIAS = 0x7f0000000000 };

static struct unwound_stack stack;

static void walk_from(struct unwinder *unwinder, const struct address_space *space, uint64_t ip)
{
    uint64_t words[STACK_BYTES / sizeof(uint64_t)];
    struct raw_sample sample = {
        .stack = (const uint8_t *)words, .stack_size_bytes = sizeof words, .stack_address = 0x7ffe00000000};
    struct unwind_request request = {.sample = &sample, .space = space};

    for (size_t i = 0; i < sizeof words / sizeof *words;
         i++) /* return addresses and frame pointers by turns */
        words[i] = i % 2 == 0 ? ip + i : sample.stack_address + i * sizeof *words;
    for (int i = 0; i < REGISTER_COUNT; i++)
        registers_set(&sample.registers, (enum register_number)i, sample.stack_address + 64);
    registers_set(&sample.registers, REGISTER_RSP, sample.stack_address);
    registers_set(&sample.registers, REGISTER_IP, ip);
    unwind_libunwind.walk(unwinder, &request, &stack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct binary_table *binaries = binary_table_create();
    struct unwinder *unwinder = unwind_libunwind.create(binaries);
    struct address_space space = {0};
    struct binary_key key = {.inode = 1};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    struct binary *binary;

    if (write(fd, data, size) == (ssize_t)size) {
        binary = binary_table_add_file(binaries, &key, "fuzz", fd);
        for (size_t i = 0; i < binary->segment_count; i++) {
            const struct binary_segment *segment = &binary->segments[i];
            struct mapping mapping = {
                .start = LOAD_BIAS + (segment->offset & 0xfffffffff000),
                .file_offset = segment->offset & ~UINT64_C(0xfff),
                .binary = binary->id,
            };
            uint64_t length = segment->file_size_bytes < 65536 ? segment->file_size_bytes : 65536;

            mapping.end = mapping.start + 65536;
            address_space_insert(&space, &mapping);
            for (size_t place = 0; segment->executable && place < MAX_PLACES && place * 4 < length; place++)
                walk_from(unwinder, &space, mapping.start + (segment->offset & 0xfff) + place * 4);
        }
    } else {
        close(fd);
    }
    address_space_finish(&space);
    unwind_libunwind.destroy(unwinder);
    binary_table_destroy(binaries);
    return 0;
}
