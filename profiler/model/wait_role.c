#include "profiler/model/wait_role.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* By the words behind "[wait: ", up to a space, a comma or the closing bracket. The first that fits counts.
 */
static const struct {
    const char *words;
    enum wait_role role;
} rules[] = {
    {"send client", WAIT_ROLE_SEND_CLIENT},
    {"send pipe", WAIT_ROLE_UNKNOWN},
    {"client", WAIT_ROLE_CLIENT},
    {"accept", WAIT_ROLE_ACCEPT},
    {"accept4", WAIT_ROLE_ACCEPT},
    {"tcp", WAIT_ROLE_OUTBOUND},
    {"udp", WAIT_ROLE_OUTBOUND},
    {"sctp", WAIT_ROLE_OUTBOUND},
    {"vsock", WAIT_ROLE_OUTBOUND},
    {"unix", WAIT_ROLE_OUTBOUND},
    {"send", WAIT_ROLE_OUTBOUND},
    {"connect", WAIT_ROLE_OUTBOUND},
    {"epoll", WAIT_ROLE_EVENT_LOOP},
    {"events", WAIT_ROLE_EVENT_LOOP},
    {"signalfd", WAIT_ROLE_EVENT_LOOP},
    {"inotify", WAIT_ROLE_EVENT_LOOP},
    {"pause", WAIT_ROLE_EVENT_LOOP},
    {"rt_sigsuspend", WAIT_ROLE_EVENT_LOOP},
    {"rt_sigtimedwait", WAIT_ROLE_EVENT_LOOP},
    {"lock", WAIT_ROLE_LOCK},
    {"flock", WAIT_ROLE_LOCK},
    {"futex", WAIT_ROLE_LOCK},
    {"condition", WAIT_ROLE_CONDITION},
    {"semaphore", WAIT_ROLE_CONDITION},
    {"join", WAIT_ROLE_CONDITION},
    {"barrier", WAIT_ROLE_CONDITION},
    {"semop", WAIT_ROLE_CONDITION},
    {"semtimedop", WAIT_ROLE_CONDITION},
    {"task", WAIT_ROLE_TASK},
    {"pipe", WAIT_ROLE_QUEUE},
    {"eventfd", WAIT_ROLE_QUEUE},
    {"socketpair", WAIT_ROLE_QUEUE},
    {"tty", WAIT_ROLE_QUEUE},
    {"netlink", WAIT_ROLE_QUEUE},
    {"io_uring", WAIT_ROLE_QUEUE},
    {"mq_timedreceive", WAIT_ROLE_QUEUE},
    {"msgrcv", WAIT_ROLE_QUEUE},
    {"io_getevents", WAIT_ROLE_QUEUE},
    {"sleep", WAIT_ROLE_SLEEP},
    {"timerfd", WAIT_ROLE_SLEEP},
    {"disk", WAIT_ROLE_DISK},
    {"page fault", WAIT_ROLE_DISK},
    {"fsync", WAIT_ROLE_DISK},
    {"fdatasync", WAIT_ROLE_DISK},
    {"sync_file_range", WAIT_ROLE_DISK},
    {"syncfs", WAIT_ROLE_DISK},
    {"sync", WAIT_ROLE_DISK},
    {"msync", WAIT_ROLE_DISK},
    {"child", WAIT_ROLE_CHILD},
};

static bool begins_with_words(const char *text, const char *words)
{
    size_t length = strlen(words);

    return strncmp(text, words, length) == 0 &&
           (text[length] == ' ' || text[length] == ',' || text[length] == ']');
}

enum wait_role wait_role_of_text(const char *text)
{
    static const char opening[] = "[wait: ";

    if (strncmp(text, opening, sizeof opening - 1) != 0)
        return WAIT_ROLE_UNKNOWN;
    text += sizeof opening - 1;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (begins_with_words(text, rules[i].words))
            return rules[i].role;
    return WAIT_ROLE_UNKNOWN;
}
