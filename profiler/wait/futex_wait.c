#include "profiler/wait/futex_wait.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <string.h>

enum {
    OWNER_OFFSET = 8,
    KIND_OFFSET = 16,
    MUTEX_BYTES = 20,
    MUTEX_KIND_BITS = 0x3ff, /* type, robust, priority, shared and elision bits of __kind */
    CONTENDED = 2,           /* a mutex word's value where somebody waits */
    RWLOCK_WAITED = 3,       /* a phase word's value where somebody waits */
    MAX_TID = 4 * 1024 * 1024,
};

static bool is_tid(uint32_t value)
{
    return value > 0 && value <= MAX_TID;
}

/* struct __pthread_mutex_s { int lock; unsigned count; int owner; unsigned nusers; int kind; ... } */
static void read_mutex(uint64_t address, const struct target_memory *memory, struct futex_wait *wait)
{
    uint8_t bytes[MUTEX_BYTES];
    uint32_t word;
    uint32_t owner;
    uint32_t kind;

    if (target_memory_read(memory, address, bytes, sizeof bytes) < 0)
        return;
    memcpy(&word, bytes, sizeof word);
    memcpy(&owner, bytes + OWNER_OFFSET, sizeof owner);
    memcpy(&kind, bytes + KIND_OFFSET, sizeof kind);
    if (word == CONTENDED && (kind & ~(uint32_t)MUTEX_KIND_BITS) == 0 && is_tid(owner))
        wait->owner = (pid_t)owner;
}

/* The word of priority-inheriting and robust ones is the owner's tid with flags. */
static void take_owner_word(uint32_t word, struct futex_wait *wait)
{
    word &= FUTEX_TID_MASK;
    if (is_tid(word))
        wait->owner = (pid_t)word;
}

/* struct __pthread_rwlock_arch_t is aligned to 8; a reader waits for the word at +8, a writer for that at
 * +12; the writer that holds it is at +24. */
static void read_rwlock(uint64_t address, const struct target_memory *memory, struct futex_wait *wait)
{
    uint32_t writer;

    wait->lock_address = address & ~UINT64_C(7);
    wait->lock_address -= 8;
    if (target_memory_read(memory, wait->lock_address + 24, &writer, sizeof writer) == 0 && is_tid(writer))
        wait->owner = (pid_t)writer;
}

void futex_wait_read(const uint64_t arguments[6], const struct target_memory *memory,
                     struct futex_wait *ret_wait)
{
    uint64_t address = arguments[0];
    uint32_t operation = (uint32_t)arguments[1];
    uint32_t value = (uint32_t)arguments[2];
    uint32_t word;

    *ret_wait = (struct futex_wait){.kind = FUTEX_WAIT_LOCK, .lock_address = address};
    switch (operation & (uint32_t)FUTEX_CMD_MASK) {
    case FUTEX_WAIT_REQUEUE_PI:
        ret_wait->kind = FUTEX_WAIT_CONDITION;
        return;
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        if (target_memory_read(memory, address, &word, sizeof word) == 0)
            take_owner_word(word, ret_wait);
        return;
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        break;
    default:
        return;
    }
    if (value == 0) {
        ret_wait->kind = FUTEX_WAIT_CONDITION;
        ret_wait->lock_address = 0;
    } else if (value == CONTENDED) {
        read_mutex(address, memory, ret_wait);
    } else if (value == RWLOCK_WAITED && (operation & (uint32_t)FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) {
        read_rwlock(address, memory, ret_wait);
    } else if ((value & FUTEX_WAITERS) != 0) {
        take_owner_word(value, ret_wait);
    } else if ((operation & FUTEX_PRIVATE_FLAG) == 0 && is_tid(value)) {
        ret_wait->kind = FUTEX_WAIT_JOIN; /* the kernel clears the word when the thread ends */
        ret_wait->lock_address = 0;
    }
}
