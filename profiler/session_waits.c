#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/memory.h"
#include "profiler/session_internal.h"
#include "profiler/symbolize/data_symbol.h"
#include "profiler/wait/wait_namer.h"

/* The place of a variable in a file, until its name is looked up: between control bytes, which no name holds.
 */
#define VARIABLE_BEGIN "\003"
#define VARIABLE_END "\004"

/* The last read: many threads wait for the same lock in one pass. */
struct last_read {
    uint64_t pass, address;
    uint32_t process;
    size_t size_bytes;
    int result;
    uint8_t bytes[64];
};

struct session_waits {
    struct wait_namer *namer;
    struct last_read last;
    VEC_OF(char *) variables; /* names that were looked up; NULL = it has none */
    struct id_map variable_of_place;
};

/* One look, as the namer's callbacks see it. */
struct asked {
    struct session *session;
    const struct process *process;
    const struct tick_look *look;
};

static struct session_waits *waits_of(struct session *session)
{
    if (session->waits == NULL) {
        session->waits = memory_zeroed(1, sizeof *session->waits);
        session->waits->namer = wait_namer_create();
    }
    return session->waits;
}

void session_waits_close(struct session *session)
{
    if (session->waits == NULL)
        return;
    wait_namer_destroy(session->waits->namer);
    for (size_t i = 0; i < session->waits->variables.count; i++)
        free(session->waits->variables.items[i]);
    free(session->waits->variables.items);
    id_map_finish(&session->waits->variable_of_place);
    free(session->waits);
    session->waits = NULL;
}

static int read_data(struct session *session, const struct process *process, uint64_t address, void *bytes,
                     size_t size_bytes)
{
    const struct memory_owner owner = {.process = process};
    const uint8_t *got;

    if (session_read_memory(session, &owner, address, size_bytes, &got) != (ssize_t)size_bytes)
        return -EFAULT;
    memcpy(bytes, got, size_bytes);
    return 0;
}

/* What lies on the stack was copied with it: of the very moment, and for free. */
static int read_memory(void *context, uint64_t address, void *ret_bytes, size_t size_bytes)
{
    const struct asked *asked = context;
    const struct raw_sample *sample = &asked->look->sample;
    struct last_read *last = &asked->session->waits->last;
    uint64_t pass = asked->session->tick.passes;

    if (sample->stack != NULL && address >= sample->stack_address && size_bytes <= sample->stack_size_bytes &&
        address - sample->stack_address <= sample->stack_size_bytes - size_bytes) {
        memcpy(ret_bytes, sample->stack + (address - sample->stack_address), size_bytes);
        return 0;
    }
    if (size_bytes > sizeof last->bytes)
        return read_data(asked->session, asked->process, address, ret_bytes, size_bytes);
    if (last->pass != pass || last->process != asked->process->id || last->address != address ||
        last->size_bytes != size_bytes) {
        *last = (struct last_read){
            .pass = pass, .process = asked->process->id, .address = address, .size_bytes = size_bytes};
        last->result = read_data(asked->session, asked->process, address, last->bytes, size_bytes);
    }
    if (last->result == 0)
        memcpy(ret_bytes, last->bytes, size_bytes);
    return last->result;
}

/* Only code is known to be mapped where; data of the same file lies as far from it in memory as in the file.
 */
static bool is_data_of(const struct binary *binary, uint64_t vaddr)
{
    for (size_t i = 0; i < binary->segment_count; i++) {
        const struct binary_segment *segment = &binary->segments[i];

        if (!segment->executable && vaddr >= segment->vaddr &&
            vaddr - segment->vaddr < segment->memory_size_bytes)
            return true;
    }
    return false;
}

static bool name_address(void *context, uint64_t address, char *ret_name, size_t size)
{
    const struct asked *asked = context;
    const struct address_space *space = &asked->process->space;

    for (size_t i = 0; i < space->count; i++) {
        const struct binary *binary = binary_table_get(asked->session->binaries, space->mappings[i].binary);
        uint64_t code_vaddr;
        uint64_t vaddr;

        if (!binary->is_elf || binary->kind != BINARY_FILE ||
            !binary_offset_to_vaddr(binary, space->mappings[i].file_offset, &code_vaddr))
            continue;
        vaddr = address - space->mappings[i].start + code_vaddr;
        if (!is_data_of(binary, vaddr))
            continue;
        snprintf(ret_name, size, VARIABLE_BEGIN "%" PRIx32 ":%" PRIx64 VARIABLE_END, binary->id, vaddr);
        return true;
    }
    return false;
}

void session_read_futex(struct session *session, const struct process *process, const uint64_t arguments[6],
                        struct futex_wait *ret_wait)
{
    const struct tick_look no_stack = {0};
    struct asked asked = {.session = session, .process = process, .look = &no_stack};
    const struct target_memory memory = {.context = &asked, .read = read_memory};

    waits_of(session);
    futex_wait_read(arguments, &memory, ret_wait);
}

uint32_t session_name_wait(struct session *session, const struct process *process,
                           const struct tick_look *look, uint64_t *ret_lock_address)
{
    struct asked asked = {.session = session, .process = process, .look = look};
    const struct target_memory memory = {.context = &asked, .read = read_memory};
    struct session_waits *waits = waits_of(session);
    struct wait_answer answer;
    struct wait_question question = {
        .process = process->id,
        .pid = process->pid,
        .tid = look->tid,
        .pid_fd = session->targets.items[process->id].pid_fd,
        .syscall = look->syscall,
        .uninterruptible = look->uninterruptible,
        .memory = &memory,
        .name_address = name_address,
        .name_context = &asked,
    };

    memcpy(question.arguments, look->arguments, sizeof question.arguments);
    wait_namer_name(waits->namer, &question, &answer);
    *ret_lock_address = answer.role == WAIT_ROLE_LOCK ? answer.lock_address : 0;
    return session_synthetic_location(session, answer.text);
}

void session_waits_forget(struct session *session, uint32_t process)
{
    if (session->waits != NULL)
        wait_namer_forget(session->waits->namer, process);
}

void session_waits_settle(struct session *session)
{
    if (session->waits != NULL)
        wait_namer_settle(session->waits->namer);
}

/* Once for each: a file's whole table of symbols is read for it. */
static const char *variable_at(const struct session *session, uint32_t binary, uint64_t vaddr)
{
    struct session_waits *waits = session->waits;
    uint64_t key = hash_mix(binary, vaddr);
    uint32_t index;

    if (waits == NULL || binary >= binary_table_count(session->binaries))
        return NULL;
    if (!id_map_get(&waits->variable_of_place, key, &index)) {
        index = (uint32_t)waits->variables.count;
        VEC_PUSH(&waits->variables, data_symbol_find(binary_table_get(session->binaries, binary), vaddr));
        id_map_put(&waits->variable_of_place, key, index);
    }
    return waits->variables.items[index];
}

/* A name in its place, or nothing where it has none. */
static void finish_variable(const struct session *session, const char *text, char *ret_text, size_t size)
{
    const char *begin = strchr(text, VARIABLE_BEGIN[0]);
    const char *end = begin != NULL ? strchr(begin, VARIABLE_END[0]) : NULL;
    const char *name;
    char *after;
    unsigned long binary;

    if (end == NULL) {
        snprintf(ret_text, size, "%s", text);
        return;
    }
    binary = strtoul(begin + 1, &after, 16);
    name = variable_at(session, (uint32_t)binary, strtoull(after + 1, NULL, 16));
    if (name == NULL && begin > text && begin[-1] == ' ')
        begin--;
    snprintf(ret_text, size, "%.*s%.*s%s", (int)(begin - text), text, (int)size / 2, name != NULL ? name : "",
             end + 1);
}

void session_wait_text(const struct session *session, const char *raw_text, char *ret_text, size_t size)
{
    char text[WAIT_TEXT_BYTES];

    finish_variable(session, raw_text, text, sizeof text);
    if (session->waits != NULL)
        wait_namer_finish_text(session->waits->namer, text, ret_text, size);
    else
        snprintf(ret_text, size, "%s", text);
}
