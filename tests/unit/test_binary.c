#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/model/binary.h"

/* A small ELF file: header, program headers, a note. */
struct image {
    Elf64_Ehdr header;
    Elf64_Phdr segments[4];
    struct {
        Elf64_Nhdr head;
        char name[4];
        uint8_t id[20];
    } note;
};

/* As lld lays it out: two segments share the file's first page, and the code's address is not its offset. */
static struct image make_image(void)
{
    struct image image = {
        .header = {.e_type = ET_DYN,
                   .e_machine = EM_X86_64,
                   .e_phoff = offsetof(struct image, segments),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 4},
        .segments = {{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x670, .p_memsz = 0x670},
                     {.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_X,
                      .p_offset = 0x670,
                      .p_vaddr = 0x1670,
                      .p_filesz = 0x200,
                      .p_memsz = 0x200},
                     {.p_type = PT_GNU_EH_FRAME, .p_vaddr = 0x400, .p_memsz = 0x30},
                     {.p_type = PT_NOTE,
                      .p_offset = offsetof(struct image, note),
                      .p_filesz = sizeof image.note}},
        .note = {.head = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID}, .name = "GNU"},
    };

    memcpy(image.header.e_ident, ELFMAG, SELFMAG);
    image.header.e_ident[EI_CLASS] = ELFCLASS64;
    image.header.e_ident[EI_DATA] = ELFDATA2LSB;
    for (uint8_t i = 0; i < 20; i++)
        image.note.id[i] = i;
    return image;
}

static int file_of(const void *bytes, size_t size)
{
    int fd = memfd_create("image", MFD_CLOEXEC);

    assert_int_equal(write(fd, bytes, size), size);
    return fd;
}

static struct binary *add_bytes(struct binary_table *table, const void *bytes, size_t size)
{
    struct binary_key key = {.device = 1, .inode = binary_table_count(table) + 1};

    return binary_table_add_file(table, &key, "/x/y", file_of(bytes, size));
}

static void test_reads_headers(void **state)
{
    struct binary_table *table = binary_table_create();
    struct image image = make_image();
    struct binary *binary = add_bytes(table, &image, sizeof image);

    (void)state;
    assert_true(binary->is_elf);
    assert_int_equal(binary->elf_type, ET_DYN);
    assert_int_equal(binary->segment_count, 2);
    assert_true(binary->segments[1].executable);
    assert_int_equal(binary->eh_frame_hdr_vaddr, 0x400);
    assert_int_equal(binary->eh_frame_hdr_size_bytes, 0x30);
    assert_int_equal(binary->build_id_size_bytes, 20);
    assert_memory_equal(binary->build_id, image.note.id, 20);
    assert_string_equal(binary_base_name(binary), "y");
    binary_table_destroy(table);
}

static void test_translates_addresses(void **state)
{
    struct binary_table *table = binary_table_create();
    struct image image = make_image();
    struct binary *binary = add_bytes(table, &image, sizeof image);
    uint64_t value = 0;

    (void)state;
    assert_true(binary_offset_to_vaddr(binary, 0x700, &value));
    assert_int_equal(value, 0x1700);
    /* The page that both segments share: code comes first. */
    assert_true(binary_offset_to_vaddr(binary, 0x100, &value));
    assert_int_equal(value, 0x1100);
    assert_true(binary_offset_to_vaddr(binary, 0xfff, &value));
    assert_int_equal(value, 0x1fff);
    value = 42;
    assert_false(binary_offset_to_vaddr(binary, 0x1000, &value));
    assert_int_equal(value, 42);
    assert_true(binary_vaddr_to_offset(binary, 0x400, &value));
    assert_int_equal(value, 0x400);
    assert_true(binary_vaddr_to_offset(binary, 0x1670, &value));
    assert_int_equal(value, 0x670);
    assert_false(binary_vaddr_to_offset(binary, 0x2000, &value));
    binary_table_destroy(table);
}

static void test_finds_by_key(void **state)
{
    struct binary_table *table = binary_table_create();
    struct binary_key from_maps = {.device = 7, .inode = 9};
    struct binary_key first = {.device = 7, .inode = 9, .generation = 1};
    struct binary_key second = {.device = 7, .inode = 9, .generation = 2};
    struct binary_key other = {.device = 9, .inode = 7};
    struct binary *binary;
    struct binary *reused;

    (void)state;
    assert_null(binary_table_find(table, &from_maps));
    binary = binary_table_add_file(table, &from_maps, "a", -1);
    assert_int_equal(binary->fd, -1);
    assert_false(binary->is_elf);
    assert_int_equal(binary_read(binary, 0, &first, 0), -EBADF);
    assert_ptr_equal(binary_table_find(table, &from_maps), binary);
    assert_null(binary_table_find(table, &other));
    assert_ptr_equal(binary_table_find(table, &first), binary);
    /* The inode was freed and used again. */
    assert_null(binary_table_find(table, &second));
    reused = binary_table_add_file(table, &second, "b", -1);
    assert_ptr_equal(binary_table_find(table, &first), binary);
    assert_ptr_equal(binary_table_find(table, &second), reused);
    assert_ptr_equal(binary_table_find(table, &from_maps), reused);
    for (uint64_t i = 0; i < 5000; i++) {
        struct binary_key key = {.device = 8, .inode = i};

        assert_int_equal(binary_table_add_file(table, &key, "c", -1)->id, i + 2);
    }
    for (uint64_t i = 0; i < 5000; i++) {
        struct binary_key key = {.device = 8, .inode = i};

        assert_int_equal(binary_table_find(table, &key)->id, i + 2);
        assert_ptr_equal(binary_table_get(table, (uint32_t)i + 2), binary_table_find(table, &key));
    }
    assert_null(binary_table_get(table, binary_table_count(table)));
    binary_table_destroy(table);
    binary_table_destroy(NULL);
}

static void test_vdso_and_jit(void **state)
{
    struct binary_table *table = binary_table_create();
    struct binary *vdso = binary_table_vdso(table);
    struct binary *jit = binary_table_jit(table, 5);
    uint8_t bytes[4];

    (void)state;
    assert_ptr_equal(binary_table_vdso(table), vdso);
    assert_int_equal(vdso->kind, BINARY_VDSO);
    assert_true(vdso->is_elf);
    assert_int_not_equal(vdso->eh_frame_hdr_vaddr, 0);
    assert_int_equal(binary_read(vdso, 0, bytes, 4), 4);
    assert_memory_equal(bytes, ELFMAG, SELFMAG);
    assert_int_equal(binary_read(vdso, vdso->image_size_bytes - 2, bytes, 4), 2);
    assert_int_equal(binary_read(vdso, UINT64_MAX, bytes, 4), 0);
    assert_ptr_equal(binary_table_jit(table, 5), jit);
    assert_ptr_not_equal(binary_table_jit(table, 6), jit);
    assert_int_equal(jit->jit_process, 5);
    assert_string_equal(binary_base_name(jit), "[jit]");
    binary_table_destroy(table);
}

static void test_own_executable(void **state)
{
    struct binary_table *table = binary_table_create();
    struct binary_key key = {.device = 1, .inode = 1};
    struct binary *binary =
        binary_table_add_file(table, &key, "/proc/self/exe", open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    uint64_t vaddr = binary->eh_frame_hdr_vaddr;
    uint64_t offset;
    uint8_t version = 0;

    (void)state;
    assert_true(binary->is_elf);
    assert_true(binary_vaddr_to_offset(binary, vaddr, &offset));
    assert_int_equal(binary_read(binary, offset, &version, 1), 1);
    assert_int_equal(version, 1);
    binary_table_destroy(table);
}

/* Each is a file that says something impossible about itself; none may crash, hang or give a wild segment. */
static void test_hostile_headers(void **state)
{
    struct binary_table *table = binary_table_create();
    struct image image = make_image();
    int pipes[2];
    struct binary_key key = {.device = 2, .inode = 1};

    (void)state;
    assert_false(add_bytes(table, "", 0)->is_elf);
    assert_false(add_bytes(table, &image, sizeof image.header - 1)->is_elf);
    assert_int_equal(add_bytes(table, &image, offsetof(struct image, segments[2]))->segment_count, 2);
    assert_int_equal(pipe(pipes), 0);
    close(pipes[1]);
    assert_false(binary_table_add_file(table, &key, "pipe", pipes[0])->is_elf);

    image.header.e_shoff = UINT64_MAX;
    assert_true(add_bytes(table, &image, sizeof image)->is_elf);
    image.header.e_phnum = PN_XNUM; /* the count is said to be where e_shoff points */
    assert_false(add_bytes(table, &image, sizeof image)->is_elf);

    image = make_image();
    image.header.e_phoff = UINT64_MAX - 8;
    assert_false(add_bytes(table, &image, sizeof image)->is_elf);
    image.header.e_phoff = 1 << 20;
    assert_false(add_bytes(table, &image, sizeof image)->is_elf);

    image = make_image();
    image.header.e_phnum = 0xfffe;
    assert_false(add_bytes(table, &image, sizeof image)->is_elf);
    image.header.e_phnum = 4;
    image.header.e_phentsize = 8;
    assert_false(add_bytes(table, &image, sizeof image)->is_elf);
    image = make_image();
    image.header.e_ident[EI_CLASS] = ELFCLASS32;
    assert_false(add_bytes(table, &image, sizeof image)->is_elf);
    image = make_image();
    image.header.e_machine = EM_AARCH64;
    assert_false(add_bytes(table, &image, sizeof image)->is_elf);

    image = make_image();
    image.segments[0].p_offset = UINT64_MAX;
    image.segments[1].p_vaddr = UINT64_MAX - 4;
    assert_int_equal(add_bytes(table, &image, sizeof image)->segment_count, 0);
    image = make_image();
    image.segments[1].p_filesz = UINT64_MAX;
    assert_int_equal(add_bytes(table, &image, sizeof image)->segment_count, 1);
    image = make_image();
    image.note.head.n_namesz = UINT32_MAX;
    assert_int_equal(add_bytes(table, &image, sizeof image)->build_id_size_bytes, 0);
    image = make_image();
    image.note.head.n_descsz = UINT32_MAX;
    assert_int_equal(add_bytes(table, &image, sizeof image)->build_id_size_bytes, 0);
    image.note.head.n_descsz = 0;
    assert_int_equal(add_bytes(table, &image, sizeof image)->build_id_size_bytes, 0);
    image = make_image();
    image.segments[3].p_filesz = UINT64_MAX;
    assert_int_equal(add_bytes(table, &image, sizeof image)->build_id_size_bytes, 20);
    binary_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_headers),  cmocka_unit_test(test_translates_addresses),
        cmocka_unit_test(test_finds_by_key),   cmocka_unit_test(test_vdso_and_jit),
        cmocka_unit_test(test_own_executable), cmocka_unit_test(test_hostile_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
