#include <stdlib.h>
#include <string.h>

#include "profiler/base/clock.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/collect/proc_task.h"
#include "profiler/session_internal.h"
#include "profiler/wait/futex_wait.h"

/* Reading a lock's owner takes two switches to the process that reads memory: so many locks a tick, in turns. */
enum { READS_PER_TURN = 2, MAX_LOCKS = 10000, MAX_ENTRIES = 20000, NO_LOCK = 0, NO_THREAD = UINT32_MAX };

static const uint64_t rescan_pause_ns = NS_PER_S;

/* Who waits for it, since when that time is not yet told of. */
struct waiter {
    uint32_t thread;
    uint32_t stack;
    uint64_t since_ns;
};

struct lock {
    uint32_t process;
    uint64_t arguments[6]; /* of a futex call that waits for it */
    VEC_OF(struct waiter) waiters;
    /* As read last: who held it, and where that thread was. */
    uint64_t read_ns;
    uint32_t owner; /* NO_THREAD = it could not be read */
    uint32_t owner_stack;
    enum thread_state owner_state;
};

struct session_locks {
    VEC_OF(struct lock) locks;
    struct id_map lock_of_address;
    VEC_OF(uint32_t) lock_of_thread; /* place of its lock + 1; NO_LOCK */
    size_t next;                     /* to be read */
    VEC_OF(struct lock_wait) entries;
    struct id_map index_of_entry;
    struct id_map thread_of_inner; /* numbers of the target's own pid namespace, where it has one */
    uint64_t rescan_ns;
};

static struct session_locks *locks_of(struct session *session)
{
    if (session->locks == NULL)
        session->locks = memory_zeroed(1, sizeof *session->locks);
    return session->locks;
}

void session_locks_close(struct session *session)
{
    struct session_locks *locks = session->locks;

    if (locks == NULL)
        return;
    for (size_t i = 0; i < locks->locks.count; i++)
        free(locks->locks.items[i].waiters.items);
    free(locks->locks.items);
    free(locks->lock_of_thread.items);
    free(locks->entries.items);
    id_map_finish(&locks->lock_of_address);
    id_map_finish(&locks->index_of_entry);
    id_map_finish(&locks->thread_of_inner);
    free(locks);
    session->locks = NULL;
}

static void add_wait(struct session_locks *locks, uint32_t stack, const struct lock *lock, uint64_t waited_ns)
{
    bool known = lock != NULL && lock->owner != NO_THREAD && locks->entries.count < MAX_ENTRIES;
    struct lock_wait wait = {
        .stack = stack,
        .owner = known ? lock->owner : LOCK_OWNER_UNKNOWN,
        .owner_stack = known ? lock->owner_stack : STACK_EMPTY,
        .owner_state = known ? lock->owner_state : STATE_UNKNOWN,
        .waited_ns = waited_ns,
    };
    uint64_t key = hash_mix(hash_mix(wait.stack, wait.owner), hash_mix(wait.owner_stack, wait.owner_state));
    uint32_t index;

    if (id_map_get(&locks->index_of_entry, key, &index)) {
        locks->entries.items[index].waited_ns += waited_ns;
        return;
    }
    id_map_put(&locks->index_of_entry, key, (uint32_t)locks->entries.count);
    VEC_PUSH(&locks->entries, wait);
}

/* What was read is true of the time around it for those who waited before it, and still wait. */
static void tell_wait(struct session_locks *locks, const struct lock *lock, struct waiter *waiter,
                      uint64_t now_ns, bool still_there)
{
    bool known = still_there && lock->read_ns > waiter->since_ns;

    if (now_ns <= waiter->since_ns)
        return;
    add_wait(locks, waiter->stack, known ? lock : NULL, now_ns - waiter->since_ns);
    waiter->since_ns = now_ns;
}

static void end_wait(struct session_locks *locks, uint32_t thread, uint64_t now_ns)
{
    uint32_t place = thread < locks->lock_of_thread.count ? locks->lock_of_thread.items[thread] : NO_LOCK;
    struct lock *lock;

    if (place == NO_LOCK)
        return;
    locks->lock_of_thread.items[thread] = NO_LOCK;
    lock = &locks->locks.items[place - 1];
    for (size_t i = 0; i < lock->waiters.count; i++) {
        if (lock->waiters.items[i].thread != thread)
            continue;
        tell_wait(locks, lock, &lock->waiters.items[i], now_ns, false);
        lock->waiters.items[i] = lock->waiters.items[--lock->waiters.count];
        return;
    }
}

static uint32_t find_lock(struct session_locks *locks, uint32_t process, uint64_t address)
{
    uint64_t key = hash_mix(process, address);
    uint32_t place;

    if (id_map_get(&locks->lock_of_address, key, &place))
        return place;
    if (locks->locks.count >= MAX_LOCKS)
        return NO_LOCK;
    VEC_PUSH(&locks->locks, ((struct lock){.process = process, .owner = NO_THREAD}));
    place = (uint32_t)locks->locks.count;
    id_map_put(&locks->lock_of_address, key, place);
    return place;
}

void session_locks_note(struct session *session, const struct thread *thread, const struct tick_look *look,
                        uint32_t stack, uint64_t lock_address)
{
    struct session_locks *locks = session->locks;
    struct lock *lock;
    uint32_t place;

    if (locks != NULL)
        end_wait(locks, thread->id, look->time_ns);
    if (lock_address == 0)
        return;
    locks = locks_of(session);
    place = find_lock(locks, thread->process, lock_address);
    if (place == NO_LOCK)
        return;
    while (locks->lock_of_thread.count <= thread->id)
        VEC_PUSH(&locks->lock_of_thread, NO_LOCK);
    locks->lock_of_thread.items[thread->id] = place;
    lock = &locks->locks.items[place - 1];
    memcpy(lock->arguments, look->arguments, sizeof lock->arguments);
    VEC_PUSH(&lock->waiters,
             ((struct waiter){.thread = thread->id, .stack = stack, .since_ns = look->time_ns}));
}

/* Numbers in a lock are those of the target's own pid namespace. */
static void list_inner_threads(struct session *session, const struct process *process)
{
    struct session_locks *locks = session->locks;
    uint32_t count = process_table_thread_count(session->processes);

    for (uint32_t i = 0; i < count; i++) {
        const struct thread *thread = process_table_thread(session->processes, i);

        if (thread->process == process->id && thread->alive)
            id_map_put(&locks->thread_of_inner,
                       hash_mix(process->id, (uint64_t)proc_read_inner_pid(thread->tid)), thread->id);
    }
}

static uint32_t find_owner(struct session *session, const struct process *process, pid_t tid)
{
    struct session_locks *locks = session->locks;
    const struct thread *thread;
    uint64_t now_ns = clock_now_ns();
    uint64_t key = hash_mix(process->id, (uint64_t)tid);
    uint32_t id;

    if (tid == 0)
        return NO_THREAD;
    if (session_inner_pid(session, process->id) == process->pid) {
        thread = process_table_find_thread(session->processes, tid);
        return thread != NULL && thread->process == process->id ? thread->id : NO_THREAD;
    }
    if (!id_map_get(&locks->thread_of_inner, key, &id) && now_ns >= locks->rescan_ns) {
        locks->rescan_ns = now_ns + rescan_pause_ns;
        list_inner_threads(session, process);
    }
    return id_map_get(&locks->thread_of_inner, key, &id) ? id : NO_THREAD;
}

static void read_owner(struct session *session, struct lock *lock)
{
    const struct process *process = process_table_process(session->processes, lock->process);
    const struct thread_record *owner;
    struct futex_wait wait;

    session_read_futex(session, process, lock->arguments, &wait);
    lock->owner = find_owner(session, process, wait.owner);
    lock->read_ns = clock_now_ns();
    if (lock->owner == NO_THREAD)
        return;
    owner = &session->threads.items[lock->owner];
    lock->owner_state = owner->last_state;
    lock->owner_stack = owner->last_state == STATE_ON_CPU ? owner->last_on_cpu_stack : owner->last_stack;
}

void session_locks_turn(struct session *session, uint64_t now_ns)
{
    struct session_locks *locks = session->locks;
    int reads = 0;

    if (locks == NULL)
        return;
    for (size_t i = 0; i < locks->locks.count && reads < READS_PER_TURN; i++) {
        struct lock *lock = &locks->locks.items[locks->next++ % locks->locks.count];

        if (lock->waiters.count == 0)
            continue;
        for (size_t w = 0; w < lock->waiters.count; w++)
            if (lock->read_ns > lock->waiters.items[w].since_ns)
                tell_wait(locks, lock, &lock->waiters.items[w], now_ns, true);
        read_owner(session, lock);
        reads++;
    }
}

void session_locks_end(struct session *session)
{
    struct session_locks *locks = session->locks;

    for (size_t i = 0; locks != NULL && i < locks->locks.count; i++)
        for (size_t w = 0; w < locks->locks.items[i].waiters.count; w++)
            tell_wait(locks, &locks->locks.items[i], &locks->locks.items[i].waiters.items[w],
                      session->window_end_ns, true);
}

void session_locks_take(struct session *session,
                        uint32_t (*final_stack)(void *context, uint32_t raw_stack, enum thread_state state),
                        void *context)
{
    struct session_locks *locks = session->locks;

    for (size_t i = 0; locks != NULL && i < locks->entries.count; i++) {
        struct lock_wait wait = locks->entries.items[i];

        wait.stack = final_stack(context, wait.stack, STATE_BLOCKED);
        if (wait.owner != LOCK_OWNER_UNKNOWN)
            wait.owner_stack = final_stack(context, wait.owner_stack, wait.owner_state);
        profile_add_lock_wait(session->profile, &wait);
    }
}
