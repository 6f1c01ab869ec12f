/* Call frame information: what is read, and above all what is refused before libunwind sees it. */
#include <dwarf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profiler/unwind/cfi_index.h"
#include "profiler/unwind/cfi_program.h"
#include "profiler/unwind/cfi_reader.h"

static void test_reader(void **state)
{
    static const uint8_t bytes[] = {0xe5, 0x8e, 0x26, 0x7f, 0x80, 0x7f, 0x08, 0xff, 0xff, 0xff, 0x80};
    struct cfi_reader reader = cfi_reader_of(bytes, sizeof bytes, 0x1000);

    (void)state;
    assert_int_equal(cfi_read_uleb(&reader), 624485); /* the example of DWARF 5, appendix C */
    assert_int_equal(cfi_read_sleb(&reader), -1);
    assert_int_equal(cfi_read_sleb(&reader), -128);
    /* Relative to its own place, signed 4 bytes: 0x1006 - 248. */
    assert_int_equal(cfi_read_pointer(&reader, 0x1b, 0), 0x1006 - 248);
    assert_int_equal(cfi_read_uleb(&reader), 0); /* does not end */
    assert_true(reader.failed);
    assert_int_equal(cfi_read_u64(&reader), 0);
    assert_null(cfi_read_bytes(&reader, UINT64_MAX));
    assert_null(cfi_read_string(&reader));
}

/* Ten bytes and more: bits beyond the 64th are dropped, nothing is shifted too far. */
static void test_long_leb(void **state)
{
    static const uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    struct cfi_reader reader = cfi_reader_of(bytes, sizeof bytes, 0);

    (void)state;
    assert_int_equal(cfi_read_uleb(&reader), UINT64_MAX);
    assert_false(reader.failed);
}

#define PROGRAM(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* DW_CFA_def_cfa rsp+8; the return address at cfa-8: how every CIE begins. */
#define USUAL DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1

static long compose(const uint8_t *program, size_t size)
{
    static const uint8_t usual[] = {USUAL};
    static uint8_t bytes[CFI_PROGRAM_MAX_BYTES];
    struct cfi_record record = {
        .start = 0x1000,
        .end = 0x2000,
        .code_align = 1,
        .data_align = -8,
        .return_address_register = 16,
        .cie_program = usual,
        .cie_program_size_bytes = sizeof usual,
        .program = program,
        .program_size_bytes = size,
    };
    size_t fde_offset;
    bool has_expressions;

    return cfi_program_compose(&record, bytes, sizeof bytes, &fde_offset, &has_expressions);
}

static void test_what_compilers_write_is_kept(void **state)
{
    (void)state;
    assert_true(compose(NULL, 0) > 0);
    assert_true(compose(PROGRAM(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2,
                                DW_CFA_advance_loc1, 3, DW_CFA_def_cfa_register, 6, DW_CFA_remember_state,
                                DW_CFA_advance_loc2, 1, 1, DW_CFA_restore | 6, DW_CFA_restore_state)) > 0);
    /* A PLT's: breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus. */
    assert_true(compose(PROGRAM(DW_CFA_def_cfa_expression, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33,
                                0x24, 0x22)) > 0);
    assert_true(compose(PROGRAM(DW_CFA_undefined, 16)) > 0);
    /* Vector registers are no business of a walk. */
    assert_int_equal(
        compose(PROGRAM(DW_CFA_offset | 17, 4, DW_CFA_offset_extended, 40, 4, DW_CFA_restore | 30)),
        compose(NULL, 0));
}

static void test_what_would_hang_or_kill_is_refused(void **state)
{
    static uint8_t many[200];

    (void)state;
    assert_int_equal(compose(PROGRAM(DW_CFA_def_cfa_expression, 3, DW_OP_skip, 0xfd, 0xff)),
                     -EBADMSG); /* for ever */
    assert_int_equal(compose(PROGRAM(DW_CFA_expression, 3, 4, DW_OP_lit1, DW_OP_bra, 0xfc, 0xff)), -EBADMSG);
    assert_int_equal(compose(PROGRAM(DW_CFA_val_expression, 3, 3, DW_OP_lit1, DW_OP_lit0, DW_OP_div)),
                     -EBADMSG);
    assert_int_equal(compose(PROGRAM(DW_CFA_expression, 3, 4, DW_OP_bregx, 0xff, 0x7f, 0)), -EBADMSG);
    assert_int_equal(compose(PROGRAM(DW_CFA_expression, 3, 200, DW_OP_lit1)),
                     -EBADMSG); /* longer than the program */
    assert_int_equal(compose(PROGRAM(DW_CFA_restore_state)), -EBADMSG);
    assert_int_equal(compose(PROGRAM(DW_CFA_register, 3, 99)), -EBADMSG);
    assert_int_equal(compose(PROGRAM(DW_CFA_def_cfa, 99, 0)), -EBADMSG);
    assert_int_equal(compose(PROGRAM(DW_CFA_set_loc, 0, 0, 0, 0, 0, 0, 0, 0)), -EBADMSG);
    assert_int_equal(compose(PROGRAM(0x3f)), -EBADMSG);
    assert_int_equal(compose(PROGRAM(DW_CFA_advance_loc4, 1, 2)), -EBADMSG);
    memset(many, DW_CFA_remember_state, sizeof many);
    assert_int_equal(compose(many, sizeof many), -EBADMSG);
}

static void test_records_that_cannot_be_walked(void **state)
{
    static uint8_t bytes[CFI_PROGRAM_MAX_BYTES];
    static const uint8_t program[] = {DW_CFA_advance_loc | 1, USUAL};
    struct cfi_record record = {
        .return_address_register = 16, .program = program, .program_size_bytes = sizeof program};
    size_t fde_offset;
    bool has_expressions;

    (void)state;
    /* A row without a frame address, before the first definition. */
    assert_int_equal(cfi_program_compose(&record, bytes, sizeof bytes, &fde_offset, &has_expressions),
                     -EBADMSG);
    record.program++;
    record.program_size_bytes--;
    assert_true(cfi_program_compose(&record, bytes, sizeof bytes, &fde_offset, &has_expressions) > 0);
    assert_int_equal(cfi_program_compose(&record, bytes, 20, &fde_offset, &has_expressions), -ENOSPC);
    record.return_address_register = 200;
    assert_int_equal(cfi_program_compose(&record, bytes, sizeof bytes, &fde_offset, &has_expressions),
                     -EBADMSG);
}

/* Two functions out of order, and the CIE of both. */
static size_t make_debug_frame(uint8_t *bytes)
{
    static const uint8_t cie[] = {20, 0, 0, 0,    0xff, 0xff,  0xff, 0xff, 4, 0,
                                  8,  0, 1, 0x78, 16,   USUAL, 0,    0,    0, 0};
    static const struct {
        uint32_t length;
        uint32_t cie;
        uint64_t start;
        uint64_t size;
    } fdes[] = {{20, 0, 0x5000, 0x100}, {20, 0, 0x4000, 0x80}};

    memcpy(bytes, cie, sizeof cie);
    memcpy(bytes + sizeof cie, fdes, sizeof fdes);
    return sizeof cie + sizeof fdes;
}

static void test_index_of_debug_frame(void **state)
{
    uint8_t bytes[256];
    struct cfi_section section = {
        .bytes = bytes, .size_bytes = make_debug_frame(bytes), .is_debug_frame = true};
    struct cfi_index *index = cfi_index_create_section(&section);
    struct cfi_buffer *buffer = malloc(sizeof *buffer);
    struct cfi_record record = {0};

    (void)state;
    assert_int_equal(cfi_index_find(index, 0x3fff, buffer, &record), -ENOENT);
    assert_int_equal(cfi_index_find(index, 0x4000, buffer, &record), 0);
    assert_int_equal(record.start, 0x4000);
    assert_int_equal(record.end, 0x4080);
    assert_int_equal(record.data_align, -8);
    assert_int_equal(cfi_index_find(index, 0x4080, buffer, &record), -ENOENT);
    assert_int_equal(cfi_index_find(index, 0x50ff, buffer, &record), 0);
    assert_int_equal(cfi_index_find(index, 0x5100, buffer, &record), -ENOENT);
    assert_int_equal(cfi_index_find(index, UINT64_MAX, buffer, &record), -ENOENT);
    cfi_index_destroy(index);
    cfi_index_destroy(NULL);

    /* Cut anywhere, it is only shorter. */
    for (size_t size = 0; size < section.size_bytes; size++) {
        struct cfi_section cut = {.bytes = memcpy(malloc(size + 1), bytes, size), .size_bytes = size};

        cut.is_debug_frame = true;
        index = cfi_index_create_section(&cut);
        assert_int_equal(cfi_index_find(index, 0x4000, buffer, &record), -ENOENT);
        cfi_index_destroy(index);
        free((void *)cut.bytes);
    }
    free(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader),
        cmocka_unit_test(test_long_leb),
        cmocka_unit_test(test_what_compilers_write_is_kept),
        cmocka_unit_test(test_what_would_hang_or_kill_is_refused),
        cmocka_unit_test(test_records_that_cannot_be_walked),
        cmocka_unit_test(test_index_of_debug_frame),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
