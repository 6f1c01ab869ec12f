#include "profiler/unwind/cfi_program.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "profiler/model/registers.h"
#include "profiler/unwind/cfi_reader.h"

enum {
    MAX_REMEMBERED = 64, /* depth of DW_CFA_remember_state */
    PRIMARY_MASK = 0xc0, /* opcodes that hold an operand in their low six bits */
    OPERAND_MASK = 0x3f,
    RETURN_ADDRESS = REGISTER_IP,
};

struct output {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    bool full;
};

static void put(struct output *output, const void *bytes, size_t size)
{
    if (size > output->capacity - output->size) {
        output->full = true;
        return;
    }
    memcpy(output->bytes + output->size, bytes, size);
    output->size += size;
}

static void put_u8(struct output *output, uint8_t value)
{
    put(output, &value, sizeof value);
}

static void put_u32(struct output *output, uint32_t value)
{
    put(output, &value, sizeof value);
}

static void put_u64(struct output *output, uint64_t value)
{
    put(output, &value, sizeof value);
}

static void put_uleb(struct output *output, uint64_t value)
{
    do {
        uint8_t byte = value & 0x7f;

        value >>= 7;
        put_u8(output, value != 0 ? byte | 0x80 : byte);
    } while (value != 0);
}

static void put_sleb(struct output *output, int64_t value)
{
    for (;;) {
        uint8_t byte = value & 0x7f;
        int64_t rest = value >> 7;
        bool done = (rest == 0 && (byte & 0x40) == 0) || (rest == -1 && (byte & 0x40) != 0);

        put_u8(output, done ? byte : byte | 0x80);
        if (done)
            return;
        value = rest;
    }
}

/* What an expression may do: push, compute, read. No jumps, hence no loops; no division. A deeper stack than
 * libunwind's is its own error. */
static bool skip_operands(struct cfi_reader *expression, uint8_t opcode)
{
    if ((opcode >= DW_OP_lit0 && opcode <= DW_OP_lit31))
        return true;
    if (opcode >= DW_OP_breg0 && opcode < DW_OP_breg0 + REGISTER_COUNT) {
        cfi_read_sleb(expression);
        return true;
    }
    switch (opcode) {
    case DW_OP_deref:
    case DW_OP_dup:
    case DW_OP_drop:
    case DW_OP_over:
    case DW_OP_swap:
    case DW_OP_rot:
    case DW_OP_abs:
    case DW_OP_and:
    case DW_OP_minus:
    case DW_OP_mul:
    case DW_OP_neg:
    case DW_OP_not:
    case DW_OP_or:
    case DW_OP_plus:
    case DW_OP_shl:
    case DW_OP_shr:
    case DW_OP_shra:
    case DW_OP_xor:
    case DW_OP_eq:
    case DW_OP_ge:
    case DW_OP_gt:
    case DW_OP_le:
    case DW_OP_lt:
    case DW_OP_ne:
    case DW_OP_nop:
        return true;
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_pick:
        cfi_read_u8(expression);
        return true;
    case DW_OP_const2u:
    case DW_OP_const2s:
        cfi_read_u16(expression);
        return true;
    case DW_OP_const4u:
    case DW_OP_const4s:
        cfi_read_u32(expression);
        return true;
    case DW_OP_const8u:
    case DW_OP_const8s:
        cfi_read_u64(expression);
        return true;
    case DW_OP_plus_uconst:
        cfi_read_uleb(expression);
        return true;
    default:
        return false;
    }
}

static bool expression_is_safe(const uint8_t *bytes, size_t size)
{
    struct cfi_reader expression = cfi_reader_of(bytes, size, 0);

    while (cfi_reader_left(&expression) > 0 && !expression.failed)
        if (!skip_operands(&expression, cfi_read_u8(&expression)))
            return false;
    return size > 0 && !expression.failed;
}

/* The state of one pass over a program. */
struct check {
    struct cfi_reader in;
    struct output *out;
    bool is_cfa_defined; /* before that, no row may be made */
    bool has_expressions;
    unsigned remembered;
};

static bool is_general(uint64_t reg)
{
    return reg < REGISTER_COUNT;
}

/* A block: its size, then its bytes. */
static bool read_expression(struct check *check)
{
    uint64_t size = cfi_read_uleb(&check->in);
    const uint8_t *bytes = cfi_read_bytes(&check->in, size);

    check->has_expressions = true;
    return bytes != NULL && expression_is_safe(bytes, size);
}

/* Reads one instruction. Returns false when it cannot be let through; *ret_keep tells whether it is of use.
 */
static bool read_instruction(struct check *check, bool *ret_keep)
{
    struct cfi_reader *in = &check->in;
    uint8_t opcode = cfi_read_u8(in);
    uint64_t reg = opcode & OPERAND_MASK;

    *ret_keep = true;
    switch (opcode & PRIMARY_MASK) {
    case DW_CFA_advance_loc:
        return check->is_cfa_defined;
    case DW_CFA_offset:
        cfi_read_uleb(in);
        *ret_keep = is_general(reg);
        return true;
    case DW_CFA_restore:
        *ret_keep = is_general(reg);
        return true;
    default:
        break;
    }
    switch (opcode) {
    case DW_CFA_nop:
        *ret_keep = false;
        return true;
    case DW_CFA_advance_loc1:
        cfi_read_u8(in);
        return check->is_cfa_defined;
    case DW_CFA_advance_loc2:
        cfi_read_u16(in);
        return check->is_cfa_defined;
    case DW_CFA_advance_loc4:
        cfi_read_u32(in);
        return check->is_cfa_defined;
    case DW_CFA_offset_extended:
    case DW_CFA_GNU_negative_offset_extended:
    case DW_CFA_offset_extended_sf:
        *ret_keep = is_general(cfi_read_uleb(in));
        cfi_read_uleb(in); /* signed or not: as long */
        return true;
    case DW_CFA_register:
        *ret_keep = is_general(cfi_read_uleb(in));
        return is_general(cfi_read_uleb(in));
    case DW_CFA_restore_extended:
    case DW_CFA_undefined:
    case DW_CFA_same_value:
        *ret_keep = is_general(cfi_read_uleb(in));
        return true;
    case DW_CFA_remember_state:
        return check->is_cfa_defined && check->remembered++ < MAX_REMEMBERED;
    case DW_CFA_restore_state:
        return check->remembered-- > 0;
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_sf:
        check->is_cfa_defined = true;
        reg = cfi_read_uleb(in);
        cfi_read_uleb(in);
        return is_general(reg);
    case DW_CFA_def_cfa_register:
        return check->is_cfa_defined && is_general(cfi_read_uleb(in));
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_offset_sf:
        cfi_read_uleb(in);
        return check->is_cfa_defined;
    case DW_CFA_def_cfa_expression:
        check->is_cfa_defined = true;
        return read_expression(check);
    case DW_CFA_expression:
    case DW_CFA_val_expression:
        *ret_keep = is_general(cfi_read_uleb(in));
        return read_expression(check);
    case DW_CFA_GNU_args_size:
        cfi_read_uleb(in);
        *ret_keep = false; /* for landing pads, not for walking */
        return true;
    default: /* DW_CFA_set_loc too: assemblers write advance_loc */
        return false;
    }
}

static bool copy_program(struct check *check, const uint8_t *program, size_t size)
{
    check->in = cfi_reader_of(program, size, 0);
    check->remembered = 0;
    while (cfi_reader_left(&check->in) > 0) {
        const uint8_t *begin = check->in.at;
        bool keep;

        if (!read_instruction(check, &keep) || check->in.failed)
            return false;
        if (keep)
            put(check->out, begin, (size_t)(check->in.at - begin));
    }
    return true;
}

/* Fills in the length that stands at offset, once the record is written. */
static void close_record(struct output *output, size_t offset)
{
    uint32_t length = (uint32_t)(output->size - offset - sizeof length);

    if (!output->full)
        memcpy(output->bytes + offset, &length, sizeof length);
}

long cfi_program_compose(const struct cfi_record *record, uint8_t *bytes, size_t capacity_bytes,
                         size_t *ret_fde_offset, bool *ret_has_expressions)
{
    struct output output = {.bytes = bytes, .capacity = capacity_bytes};
    struct check check = {.out = &output};
    size_t fde_offset;

    if (record->return_address_register != RETURN_ADDRESS)
        return -EBADMSG;
    put_u32(&output, 0);
    put_u32(&output, 0); /* id of a CIE */
    put_u8(&output, 1);  /* version */
    put_u8(&output, 0);  /* augmentation "" */
    put_uleb(&output, record->code_align);
    put_sleb(&output, record->data_align);
    put_u8(&output, RETURN_ADDRESS);
    if (!copy_program(&check, record->cie_program, record->cie_program_size_bytes))
        return -EBADMSG;
    close_record(&output, 0);

    fde_offset = output.size;
    put_u32(&output, 0);
    put_u32(&output, (uint32_t)(fde_offset + sizeof(uint32_t))); /* back to the CIE, from here */
    put_u64(&output, record->start);
    put_u64(&output, record->end - record->start);
    if (!copy_program(&check, record->program, record->program_size_bytes) || !check.is_cfa_defined)
        return -EBADMSG;
    close_record(&output, fde_offset);
    if (output.full)
        return -ENOSPC;
    *ret_fde_offset = fde_offset;
    *ret_has_expressions = check.has_expressions;
    return (long)output.size;
}
