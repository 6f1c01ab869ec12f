#include "profiler/wait/service_finder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "profiler/base/clock.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/wait/service_name.h"
#include "profiler/wait/socket_owner.h"

/* Each holds an fd until it is answered; a batch is searched for in one go. */
enum { MAX_QUESTIONS = 4096, BATCH = 32 };

struct entry {
    struct far_end_question question; /* proc_fd is ours; -1 once it is answered */
    char name[SOCKET_OWNER_NAME_BYTES];
};

struct service_finder {
    pthread_t thread;
    bool started;
    struct far_end_finder *far_ends; /* the thread's own */
    pthread_mutex_t lock;            /* of all that follows */
    pthread_cond_t changed;
    VEC_OF(struct entry *) entries; /* their addresses stay */
    struct id_map id_of_remote;
    size_t answered; /* the first so many */
    atomic_bool stop;
};

struct service_finder *service_finder_create(void)
{
    struct service_finder *finder = memory_zeroed(1, sizeof *finder);
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&finder->lock, NULL);
    pthread_cond_init(&finder->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return finder;
}

void service_finder_destroy(struct service_finder *finder)
{
    if (finder == NULL)
        return;
    pthread_mutex_lock(&finder->lock);
    atomic_store(&finder->stop, true);
    pthread_cond_broadcast(&finder->changed);
    pthread_mutex_unlock(&finder->lock);
    if (finder->started)
        pthread_join(finder->thread, NULL);
    for (size_t i = 0; i < finder->entries.count; i++) {
        if (finder->entries.items[i]->question.proc_fd >= 0)
            close(finder->entries.items[i]->question.proc_fd);
        free(finder->entries.items[i]);
    }
    free(finder->entries.items);
    id_map_finish(&finder->id_of_remote);
    pthread_cond_destroy(&finder->changed);
    pthread_mutex_destroy(&finder->lock);
    free(finder);
}

/* Without the lock: the entries' questions do not change, and their names are not read before they are
 * counted as answered. */
static void answer(struct service_finder *finder, struct entry *const *entries, size_t count)
{
    struct socket_owner owners[BATCH] = {0};
    size_t owner_of[BATCH];
    size_t owner_count = 0;

    for (size_t i = 0; i < count; i++) {
        struct far_end far_end;

        owner_of[i] = BATCH;
        if (atomic_load(&finder->stop) || far_end_find(finder->far_ends, &entries[i]->question, &far_end) < 0)
            continue;
        owner_of[i] = owner_count;
        owners[owner_count++] = (struct socket_owner){.inode = far_end.inode, .network = far_end.network};
    }
    if (owner_count > 0)
        socket_owner_find(owners, owner_count, &finder->stop);
    for (size_t i = 0; i < count; i++)
        if (owner_of[i] < BATCH)
            memcpy(entries[i]->name, owners[owner_of[i]].name, sizeof entries[i]->name);
}

static void *serve(void *context)
{
    struct service_finder *finder = context;

    finder->far_ends = far_end_finder_create();
    pthread_mutex_lock(&finder->lock);
    while (!atomic_load(&finder->stop)) {
        struct entry *batch[BATCH];
        size_t count = finder->entries.count - finder->answered;

        if (count == 0) {
            pthread_cond_wait(&finder->changed, &finder->lock);
            continue;
        }
        if (count > BATCH)
            count = BATCH;
        memcpy(batch, finder->entries.items + finder->answered, count * sizeof batch[0]);
        pthread_mutex_unlock(&finder->lock);
        answer(finder, batch, count);
        pthread_mutex_lock(&finder->lock);
        for (size_t i = 0; i < count; i++) {
            close(batch[i]->question.proc_fd);
            batch[i]->question.proc_fd = -1;
        }
        finder->answered += count;
        pthread_cond_broadcast(&finder->changed);
    }
    pthread_mutex_unlock(&finder->lock);
    far_end_finder_destroy(finder->far_ends);
    return NULL;
}

/* Signals are for the thread that samples: it must be the one that wakes up. */
static bool start(struct service_finder *finder)
{
    sigset_t all;
    sigset_t before;

    if (finder->started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    finder->started = pthread_create(&finder->thread, NULL, serve, finder) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return finder->started;
}

static uint64_t key_of(const struct far_end_question *question)
{
    uint64_t key = hash_mix(question->network, question->remote.port);

    key = hash_mix(key, (uint64_t)question->remote.family);
    return hash_mix(key, hash_bytes(question->remote.ip, sizeof question->remote.ip));
}

uint32_t service_finder_ask(struct service_finder *finder, const struct far_end_question *question)
{
    uint64_t key = key_of(question);
    struct entry *entry;
    uint32_t id;

    pthread_mutex_lock(&finder->lock);
    if (!id_map_get(&finder->id_of_remote, key, &id)) {
        entry = memory_zeroed(1, sizeof *entry);
        entry->question = *question;
        entry->question.proc_fd = -1;
        if (finder->entries.count < MAX_QUESTIONS && start(finder))
            entry->question.proc_fd = fcntl(question->proc_fd, F_DUPFD_CLOEXEC, 0);
        id = (uint32_t)finder->entries.count;
        VEC_PUSH(&finder->entries, entry);
        id_map_put(&finder->id_of_remote, key, id);
        pthread_cond_broadcast(&finder->changed);
    }
    pthread_mutex_unlock(&finder->lock);
    return id;
}

void service_finder_settle(struct service_finder *finder, int timeout_ms)
{
    uint64_t until_ns = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                                   .tv_nsec = (long)(until_ns % NS_PER_S)};
    int r = 0;

    pthread_mutex_lock(&finder->lock);
    while (finder->started && finder->answered < finder->entries.count && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&finder->changed, &finder->lock, &until);
    pthread_mutex_unlock(&finder->lock);
}

const char *service_finder_name(struct service_finder *finder, uint32_t id)
{
    const char *name = "";

    pthread_mutex_lock(&finder->lock);
    if (id < finder->entries.count) {
        const struct entry *entry = finder->entries.items[id];
        const char *port_name = service_name_of_port(entry->question.remote.port);

        if (id < finder->answered && entry->name[0] != '\0')
            name = entry->name;
        else if (port_name != NULL)
            name = port_name;
    }
    pthread_mutex_unlock(&finder->lock);
    return name;
}
