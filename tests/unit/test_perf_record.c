/* Records made by hand, as perf_event_open(2) lays them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "profiler/collect/perf_record.h"
#include "profiler/collect/perf_registers.h"

enum { ID_ON_CPU = 11, ID_SWITCH, ID_WAKEUP, ID_STACK, ID_DUMMY, MAX_BYTES = 4096 };

static const uint64_t common = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
static const uint64_t kernel_marker = (uint64_t)PERF_CONTEXT_KERNEL,
                      user_marker = (uint64_t)PERF_CONTEXT_USER;

struct builder {
    _Alignas(8) uint8_t bytes[MAX_BYTES];
    size_t size;
};

static void put(struct builder *b, const void *bytes, size_t size)
{
    assert_true(b->size + size <= MAX_BYTES);
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static void put_u64(struct builder *b, uint64_t value)
{
    put(b, &value, sizeof value);
}

static void put_u32(struct builder *b, uint32_t value)
{
    put(b, &value, sizeof value);
}

/* Text is padded with zeros to a multiple of 8, its NUL included. */
static void put_text(struct builder *b, const char *text)
{
    static const uint8_t zeros[8];
    put(b, text, strlen(text) + 1);
    put(b, zeros, (8 - b->size % 8) % 8);
}

static void begin(struct builder *b, uint32_t type, uint16_t misc)
{
    struct perf_event_header header = {.type = type, .misc = misc};
    memset(b, 0, sizeof *b);
    put(b, &header, sizeof header);
}

static void end(struct builder *b)
{
    uint16_t size = (uint16_t)b->size;
    memcpy(b->bytes + offsetof(struct perf_event_header, size), &size, sizeof size);
}

/* pid 100, tid 101, time 5000, CPU 3, as every record has them. */
static void put_trailer(struct builder *b, uint64_t id)
{
    put_u32(b, 100);
    put_u32(b, 101);
    put_u64(b, 5000);
    put_u32(b, 3);
    put_u32(b, 0);
    put_u64(b, id);
}

static void begin_sample(struct builder *b, uint64_t id)
{
    begin(b, PERF_RECORD_SAMPLE, 0);
    put_u64(b, id);
    put_u32(b, 100);
    put_u32(b, 101);
    put_u64(b, 5000);
    put_u32(b, 3);
    put_u32(b, 0);
}

struct fixture {
    struct id_map sources;
    struct perf_layout layout;
};

static int set_up(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof f);
    id_map_put(&f.sources, ID_ON_CPU, PERF_SOURCE_ON_CPU);
    id_map_put(&f.sources, ID_SWITCH, PERF_SOURCE_SWITCH);
    id_map_put(&f.sources, ID_WAKEUP, PERF_SOURCE_WAKEUP);
    id_map_put(&f.sources, ID_STACK, PERF_SOURCE_SWITCH_STACK);
    id_map_put(&f.sources, ID_DUMMY, PERF_SOURCE_DUMMY);
    f.layout = (struct perf_layout){
        .source_by_id = &f.sources,
        .registers_mask = perf_registers_mask,
        .tracepoint = {.switch_prev_pid = 24,
                       .switch_prev_state = 32,
                       .switch_prev_state_size = 8,
                       .switch_next_pid = 56,
                       .wakeup_pid = 24},
        .sample_type = {[PERF_SOURCE_ON_CPU] =
                            common | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                        [PERF_SOURCE_SWITCH] = common | PERF_SAMPLE_RAW,
                        [PERF_SOURCE_WAKEUP] = common | PERF_SAMPLE_RAW,
                        [PERF_SOURCE_SWITCH_STACK] = common | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
                                                     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                        [PERF_SOURCE_DUMMY] = common},
    };
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    id_map_finish(&f->sources);
    return 0;
}

/* Every shorter piece of the record lies right before a page that cannot be read, once with the header as it
 * is and once with one that tells the piece's size: nothing may be read beyond, and the former is always
 * refused. */
static void check_cuts(const struct builder *b, const struct perf_layout *layout)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct perf_record record;
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(mprotect(map + page, page, PROT_NONE), 0);
    for (size_t size = 0; size < b->size; size += 8) {
        uint8_t *cut = map + page - size;
        memcpy(cut, b->bytes, size);
        assert_int_equal(perf_record_parse(cut, size, layout, &record), -EBADMSG);
        perf_record_time(cut, size, layout);
        if (size < sizeof(struct perf_event_header))
            continue;
        uint16_t told = (uint16_t)size;
        memcpy(cut + offsetof(struct perf_event_header, size), &told, sizeof told);
        perf_record_time(cut, size, layout);
        ssize_t r = perf_record_parse(cut, size, layout, &record);
        assert_true(r == -EBADMSG || r == (ssize_t)size);
    }
    munmap(map, 2 * page);
}

static void parse(struct builder *b, const struct fixture *f, struct perf_record *ret_record)
{
    end(b);
    assert_int_equal(perf_record_parse(b->bytes, b->size, &f->layout, ret_record), b->size);
    assert_int_equal(perf_record_time(b->bytes, b->size, &f->layout), 5000);
    assert_int_equal(ret_record->time_ns, 5000);
    assert_int_equal(ret_record->pid, 100);
    assert_int_equal(ret_record->tid, 101);
    assert_int_equal(ret_record->cpu, 3);
    check_cuts(b, &f->layout);
}

/* Each register holds 1000 + its number in the kernel's order. */
static void put_registers(struct builder *b, uint64_t abi)
{
    put_u64(b, abi);
    for (uint64_t number = 0; abi != PERF_SAMPLE_REGS_ABI_NONE && number < 64; number++) {
        if ((perf_registers_mask >> number & 1) != 0)
            put_u64(b, 1000 + number);
    }
}

static void put_stack(struct builder *b, size_t size, uint64_t real)
{
    put_u64(b, size);
    for (size_t i = 0; i < size / 8; i++)
        put_u64(b, 0xabc0 + i);
    if (size > 0)
        put_u64(b, real);
}

static void test_on_cpu(void **state)
{
    struct builder b;
    struct perf_record r;
    begin_sample(&b, ID_ON_CPU);
    put_u64(&b, 6);
    put_u64(&b, kernel_marker);
    put_u64(&b, 0xffffffff81000000);
    put_u64(&b, 0xffffffff81000010);
    put_u64(&b, user_marker);
    put_u64(&b, 0x401000);
    put_u64(&b, 0x402000);
    put_registers(&b, PERF_SAMPLE_REGS_ABI_64);
    put_stack(&b, 64, 40);
    parse(&b, *state, &r);

    assert_int_equal(r.type, RECORD_ON_CPU);
    assert_int_equal(r.event_id, ID_ON_CPU);
    assert_int_equal(r.sample.time_ns, 5000);
    assert_int_equal(r.sample.pid, 100);
    assert_int_equal(r.sample.tid, 101);
    assert_int_equal(r.sample.kernel_chain_count, 2);
    assert_int_equal(r.sample.kernel_chain[1], 0xffffffff81000010);
    assert_int_equal(r.sample.user_chain_count, 2);
    assert_int_equal(r.sample.user_chain[0], 0x401000);
    assert_int_equal(r.sample.stack_size_bytes, 40);
    assert_int_equal(r.sample.stack_address, 1000 + PERF_REG_X86_SP);
    assert_int_equal(((const uint64_t *)(const void *)r.sample.stack)[4], 0xabc4);
}

static void test_registers_are_renumbered(void **state)
{
    static const struct {
        enum register_number ours;
        uint64_t kernels;
    } pairs[] = {
        {REGISTER_RAX, PERF_REG_X86_AX},  {REGISTER_RDX, PERF_REG_X86_DX},  {REGISTER_RCX, PERF_REG_X86_CX},
        {REGISTER_RBX, PERF_REG_X86_BX},  {REGISTER_RSI, PERF_REG_X86_SI},  {REGISTER_RDI, PERF_REG_X86_DI},
        {REGISTER_RBP, PERF_REG_X86_BP},  {REGISTER_RSP, PERF_REG_X86_SP},  {REGISTER_R8, PERF_REG_X86_R8},
        {REGISTER_R9, PERF_REG_X86_R9},   {REGISTER_R10, PERF_REG_X86_R10}, {REGISTER_R11, PERF_REG_X86_R11},
        {REGISTER_R12, PERF_REG_X86_R12}, {REGISTER_R13, PERF_REG_X86_R13}, {REGISTER_R14, PERF_REG_X86_R14},
        {REGISTER_R15, PERF_REG_X86_R15}, {REGISTER_IP, PERF_REG_X86_IP},
    };
    struct builder b;
    struct perf_record r;
    begin_sample(&b, ID_ON_CPU);
    put_u64(&b, 0);
    put_registers(&b, PERF_SAMPLE_REGS_ABI_64);
    put_stack(&b, 0, 0);
    parse(&b, *state, &r);
    assert_int_equal(sizeof pairs / sizeof pairs[0], REGISTER_COUNT);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_true(registers_has(&r.sample.registers, pairs[i].ours));
        assert_int_equal(r.sample.registers.value[pairs[i].ours], 1000 + pairs[i].kernels);
    }
    assert_int_equal(r.sample.stack_size_bytes, 0);
    assert_null(r.sample.stack);
    assert_int_equal(r.sample.kernel_chain_count, 0);
}

/* A kernel thread has no user registers, a 32-bit program has such as we cannot unwind with. */
static void test_no_registers(void **state)
{
    struct builder b;
    struct perf_record r;
    begin_sample(&b, ID_ON_CPU);
    put_u64(&b, 0);
    put_registers(&b, PERF_SAMPLE_REGS_ABI_NONE);
    put_stack(&b, 0, 0);
    parse(&b, *state, &r);
    assert_int_equal(r.sample.registers.known, 0);

    begin_sample(&b, ID_ON_CPU);
    put_u64(&b, 0);
    put_registers(&b, PERF_SAMPLE_REGS_ABI_32);
    put_stack(&b, 64, 64);
    parse(&b, *state, &r);
    assert_int_equal(r.sample.registers.known, 0);
    assert_int_equal(r.sample.stack_size_bytes, 0);
}

/* A BPF output event: raw bytes stand before the registers. */
static void test_switch_stack(void **state)
{
    struct builder b;
    struct perf_record r;
    begin_sample(&b, ID_STACK);
    put_u64(&b, 2);
    put_u64(&b, kernel_marker);
    put_u64(&b, 0xffffffff81000000);
    put_u32(&b, 12);
    put_u32(&b, 0);
    put_u64(&b, 0);
    put_registers(&b, PERF_SAMPLE_REGS_ABI_64);
    put_stack(&b, 64, 64);
    parse(&b, *state, &r);
    assert_int_equal(r.type, RECORD_SWITCH_STACK);
    assert_int_equal(r.sample.kernel_chain_count, 1);
    assert_int_equal(r.sample.user_chain_count, 0);
    assert_int_equal(r.sample.stack_size_bytes, 64);
}

static void test_hostile_sizes(void **state)
{
    const struct fixture *f = *state;
    const uint64_t huge[] = {65, 1 << 16, UINT64_C(1) << 61, UINT64_MAX, UINT64_MAX - 7};
    struct builder b;
    struct perf_record r;
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        begin_sample(&b, ID_ON_CPU); /* the chain's length */
        put_u64(&b, huge[i]);
        put_registers(&b, PERF_SAMPLE_REGS_ABI_64);
        put_stack(&b, 0, 0);
        end(&b);
        assert_int_equal(perf_record_parse(b.bytes, b.size, &f->layout, &r), -EBADMSG);

        begin_sample(&b, ID_ON_CPU); /* how much of the stack is real */
        put_u64(&b, 0);
        put_registers(&b, PERF_SAMPLE_REGS_ABI_64);
        put_stack(&b, 64, huge[i]);
        end(&b);
        assert_int_equal(perf_record_parse(b.bytes, b.size, &f->layout, &r), -EBADMSG);

        begin_sample(&b, ID_ON_CPU); /* the stack's size */
        put_u64(&b, 0);
        put_registers(&b, PERF_SAMPLE_REGS_ABI_64);
        put_u64(&b, huge[i]);
        put_u64(&b, 0);
        end(&b);
        assert_int_equal(perf_record_parse(b.bytes, b.size, &f->layout, &r), -EBADMSG);

        begin_sample(&b, ID_SWITCH); /* the raw bytes */
        put_u32(&b, (uint32_t)huge[i]);
        put_u32(&b, 0);
        end(&b);
        assert_int_equal(perf_record_parse(b.bytes, b.size, &f->layout, &r), -EBADMSG);
    }
}

/* What the chain may hold besides: no marker at all, and other ones. */
static void test_odd_chains(void **state)
{
    struct builder b;
    struct perf_record r;
    begin_sample(&b, ID_ON_CPU);
    put_u64(&b, 5);
    put_u64(&b, 0x1234);
    put_u64(&b, (uint64_t)PERF_CONTEXT_GUEST);
    put_u64(&b, 0x5678);
    put_u64(&b, user_marker);
    put_u64(&b, kernel_marker);
    put_registers(&b, PERF_SAMPLE_REGS_ABI_NONE);
    put_stack(&b, 0, 0);
    parse(&b, *state, &r);
    assert_int_equal(r.sample.user_chain_count, 0);
    assert_int_equal(r.sample.kernel_chain_count, 0);
}

static void put_switch(struct builder *b, int64_t prev_state)
{
    uint8_t raw[68] = {0}; /* with its u32 size a multiple of 8, as the kernel pads it */
    int32_t prev = 101, next = 202;
    memcpy(raw + 24, &prev, sizeof prev);
    memcpy(raw + 32, &prev_state, sizeof prev_state);
    memcpy(raw + 56, &next, sizeof next);
    begin_sample(b, ID_SWITCH);
    put_u32(b, sizeof raw);
    put(b, raw, sizeof raw);
}

static void test_switch(void **state)
{
    struct fixture *f = *state;
    struct builder b;
    struct perf_record r;
    put_switch(&b, 0x100);
    parse(&b, f, &r);
    assert_int_equal(r.type, RECORD_SWITCH);
    assert_int_equal(r.sched_switch.prev_tid, 101);
    assert_int_equal(r.sched_switch.prev_state, 0x100);
    assert_int_equal(r.sched_switch.next_tid, 202);

    f->layout.tracepoint.switch_prev_state_size = 4;
    parse(&b, f, &r);
    assert_int_equal(r.sched_switch.prev_state, 0x100);

    f->layout.tracepoint.switch_next_pid = 66; /* beyond the bytes that are there */
    assert_int_equal(perf_record_parse(b.bytes, b.size, &f->layout, &r), -EBADMSG);
}

static void test_wakeup(void **state)
{
    uint8_t raw[36] = {0};
    int32_t woken = 303;
    struct builder b;
    struct perf_record r;
    memcpy(raw + 24, &woken, sizeof woken);
    begin_sample(&b, ID_WAKEUP);
    put_u32(&b, sizeof raw);
    put(&b, raw, sizeof raw);
    parse(&b, *state, &r);
    assert_int_equal(r.type, RECORD_WAKEUP);
    assert_int_equal(r.wakeup.tid, 303);
}

static void put_mmap2(struct builder *b, uint16_t misc, uint32_t protection, const char *path)
{
    begin(b, PERF_RECORD_MMAP2, misc);
    put_u32(b, 100);
    put_u32(b, 101);
    put_u64(b, 0x7f0000000000);
    put_u64(b, 0x2000);
    put_u64(b, 0x1000);
    put_u32(b, 8);
    put_u32(b, 2);
    put_u64(b, 77);
    put_u64(b, 5);
    put_u32(b, protection);
    put_u32(b, 2);
    put_text(b, path);
    put_trailer(b, ID_DUMMY);
}

static void test_mmap2(void **state)
{
    struct builder b;
    struct perf_record r;
    put_mmap2(&b, 0, PROT_READ | PROT_EXEC, "/usr/lib/a library.so");
    parse(&b, *state, &r);
    assert_int_equal(r.type, RECORD_MMAP);
    assert_int_equal(r.mmap.pid, 100);
    assert_int_equal(r.mmap.start, 0x7f0000000000);
    assert_int_equal(r.mmap.size_bytes, 0x2000);
    assert_int_equal(r.mmap.file_offset, 0x1000);
    assert_int_equal(r.mmap.device, makedev(8, 2));
    assert_int_equal(r.mmap.inode, 77);
    assert_int_equal(r.mmap.generation, 5);
    assert_true(r.mmap.executable);
    assert_string_equal(r.mmap.path, "/usr/lib/a library.so");

    put_mmap2(&b, 0, PROT_READ, "");
    parse(&b, *state, &r);
    assert_false(r.mmap.executable);
    assert_string_equal(r.mmap.path, "");

    put_mmap2(&b, PERF_RECORD_MISC_MMAP_BUILD_ID, PROT_EXEC, "//anon");
    parse(&b, *state, &r);
    assert_int_equal(r.mmap.device, 0);
    assert_int_equal(r.mmap.inode, 0);
    assert_int_equal(r.mmap.generation, 0);
}

static void test_mmap(void **state)
{
    struct builder b;
    struct perf_record r;
    for (int data = 0; data < 2; data++) {
        begin(&b, PERF_RECORD_MMAP, data != 0 ? PERF_RECORD_MISC_MMAP_DATA : 0);
        put_u32(&b, 100);
        put_u32(&b, 101);
        put_u64(&b, 0x400000);
        put_u64(&b, 0x1000);
        put_u64(&b, 0);
        put_text(&b, "/bin/true");
        put_trailer(&b, ID_DUMMY);
        parse(&b, *state, &r);
        assert_int_equal(r.type, RECORD_MMAP);
        assert_int_equal(r.mmap.executable, data == 0);
        assert_int_equal(r.mmap.inode, 0);
        assert_string_equal(r.mmap.path, "/bin/true");
    }
}

/* A name whose end the record does not hold must not be read on into the trailer. */
static void test_unterminated_names(void **state)
{
    const struct fixture *f = *state;
    struct builder b;
    struct perf_record r;
    begin(&b, PERF_RECORD_COMM, 0);
    put_u32(&b, 100);
    put_u32(&b, 101);
    put(&b, "abcdefgh", 8);
    put_trailer(&b, ID_DUMMY);
    end(&b);
    assert_int_equal(perf_record_parse(b.bytes, b.size, &f->layout, &r), -EBADMSG);
}

static void test_comm(void **state)
{
    struct builder b;
    struct perf_record r;
    for (int exec = 0; exec < 2; exec++) {
        begin(&b, PERF_RECORD_COMM, exec != 0 ? PERF_RECORD_MISC_COMM_EXEC : 0);
        put_u32(&b, 100);
        put_u32(&b, 105);
        put_text(&b, "a b;c\n\xff\"<&");
        put_trailer(&b, ID_DUMMY);
        parse(&b, *state, &r);
        assert_int_equal(r.type, RECORD_COMM);
        assert_int_equal(r.comm.pid, 100);
        assert_int_equal(r.comm.tid, 105);
        assert_int_equal(r.comm.exec, exec);
        assert_string_equal(r.comm.comm, "a b;c\n\xff\"<&");
    }
}

static void test_fork_and_exit(void **state)
{
    struct builder b;
    struct perf_record r;
    for (int exit = 0; exit < 2; exit++) {
        begin(&b, exit != 0 ? PERF_RECORD_EXIT : PERF_RECORD_FORK, 0);
        put_u32(&b, 110);
        put_u32(&b, 100);
        put_u32(&b, 111);
        put_u32(&b, 101);
        put_u64(&b, 4999);
        put_trailer(&b, ID_DUMMY);
        parse(&b, *state, &r);
        assert_int_equal(r.type, exit != 0 ? RECORD_EXIT : RECORD_FORK);
        assert_int_equal(r.task.pid, 110);
        assert_int_equal(r.task.parent_pid, 100);
        assert_int_equal(r.task.tid, 111);
        assert_int_equal(r.task.parent_tid, 101);
    }
}

static void test_lost(void **state)
{
    struct builder b;
    struct perf_record r;
    begin(&b, PERF_RECORD_LOST, 0);
    put_u64(&b, ID_SWITCH);
    put_u64(&b, 42);
    put_trailer(&b, ID_ON_CPU);
    parse(&b, *state, &r);
    assert_int_equal(r.type, RECORD_LOST);
    assert_int_equal(r.lost.count, 42);
    assert_int_equal(r.lost.since_ns, 0);

    begin(&b, PERF_RECORD_LOST_SAMPLES, 0);
    put_u64(&b, 43);
    put_trailer(&b, ID_ON_CPU);
    parse(&b, *state, &r);
    assert_int_equal(r.type, RECORD_LOST);
    assert_int_equal(r.lost.count, 43);
}

static void test_task_switch(void **state)
{
    struct builder b;
    struct perf_record r;
    begin(&b, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
    put_trailer(&b, ID_ON_CPU);
    parse(&b, *state, &r);
    assert_int_equal(r.type, RECORD_TASK_SWITCH);
    assert_true(r.task_switch.out);
    assert_true(r.task_switch.preempted);

    begin(&b, PERF_RECORD_SWITCH_CPU_WIDE, 0);
    put_u32(&b, 7);
    put_u32(&b, 8);
    put_trailer(&b, ID_DUMMY);
    parse(&b, *state, &r);
    assert_int_equal(r.type, RECORD_TASK_SWITCH);
    assert_false(r.task_switch.out);
}

static void test_others(void **state)
{
    struct fixture *f = *state;
    struct builder b;
    struct perf_record r;
    begin(&b, PERF_RECORD_THROTTLE, 0);
    put_u64(&b, 5000);
    put_u64(&b, ID_ON_CPU);
    put_u64(&b, ID_ON_CPU);
    put_trailer(&b, ID_ON_CPU);
    parse(&b, f, &r);
    assert_int_equal(r.type, RECORD_OTHER);

    begin(&b, 9999, 0); /* a type of tomorrow, with nothing in it */
    end(&b);
    assert_int_equal(perf_record_parse(b.bytes, b.size, &f->layout, &r), b.size);
    assert_int_equal(r.type, RECORD_OTHER);
    assert_int_equal(r.time_ns, 0);
    assert_int_equal(r.pid, -1);
}

static void test_refused(void **state)
{
    struct fixture *f = *state;
    struct builder b;
    struct perf_record r;
    begin_sample(&b, 999); /* an event that we did not open */
    end(&b);
    assert_int_equal(perf_record_parse(b.bytes, b.size, &f->layout, &r), -EBADMSG);
    assert_int_equal(perf_record_time(b.bytes, b.size, &f->layout), 0);

    begin_sample(&b, ID_DUMMY); /* it never samples */
    end(&b);
    assert_int_equal(perf_record_parse(b.bytes, b.size, &f->layout, &r), -EBADMSG);

    put_switch(&b, 1);
    end(&b);
    assert_int_equal(perf_record_parse(b.bytes + 4, b.size - 4, &f->layout, &r), -EBADMSG); /* not aligned */
    b.bytes[offsetof(struct perf_event_header, size)]++; /* no multiple of 8 */
    assert_int_equal(perf_record_parse(b.bytes, b.size + 8, &f->layout, &r), -EBADMSG);

    put_switch(&b, 1);
    end(&b);
    f->layout.sample_type[PERF_SOURCE_SWITCH] |= PERF_SAMPLE_READ; /* a field that the parser does not know */
    assert_int_equal(perf_record_parse(b.bytes, b.size, &f->layout, &r), -EBADMSG);
}

/* Fields that we do not ask for but may meet: IP before, ADDR, ID, STREAM_ID and PERIOD between the others.
 */
static void test_all_fixed_fields(void **state)
{
    struct fixture *f = *state;
    struct builder b;
    struct perf_record r;
    f->layout.sample_type[PERF_SOURCE_ON_CPU] = common | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
                                                PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_PERIOD |
                                                PERF_SAMPLE_CALLCHAIN;
    begin(&b, PERF_RECORD_SAMPLE, 0);
    put_u64(&b, ID_ON_CPU);
    put_u64(&b, 0x401000); /* IP */
    put_u32(&b, 100);
    put_u32(&b, 101);
    put_u64(&b, 5000);
    put_u64(&b, 1); /* ADDR, ID, STREAM_ID */
    put_u64(&b, 2);
    put_u64(&b, 3);
    put_u32(&b, 3); /* CPU */
    put_u32(&b, 0);
    put_u64(&b, 10101); /* PERIOD */
    put_u64(&b, 2);
    put_u64(&b, user_marker);
    put_u64(&b, 0x401000);
    parse(&b, f, &r);
    assert_int_equal(r.type, RECORD_ON_CPU);
    assert_int_equal(r.sample.user_chain_count, 1);
    assert_int_equal(r.sample.user_chain[0], 0x401000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_on_cpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_registers_are_renumbered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_registers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_switch_stack, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hostile_sizes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_odd_chains, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_switch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wakeup, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mmap2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mmap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unterminated_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_comm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fork_and_exit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_task_switch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_fixed_fields, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
