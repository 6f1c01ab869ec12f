#include <errno.h>

#include "profiler/session_internal.h"

/* As the counting BPF program keys a wait. */
static uint64_t site_key(pid_t tid, uint64_t ip, uint64_t sp, int64_t syscall, uint64_t argument)
{
    uint64_t key = hash_mix((uint64_t)tid, ip);

    key = hash_mix(key, sp);
    key = hash_mix(key, (uint64_t)syscall);
    return hash_mix(key, argument);
}

int session_counts_open(struct session *session, struct error *err)
{
    int r;

    if (session->tick.tick == NULL || session->tick.backend != &tick_bpf) {
        error_say(err, -EOPNOTSUPP,
                  "--counts: waits are counted by BPF beside the engine tick, which is not in use");
        return error_hint(err, "it wants root, or CAP_BPF and CAP_PERFMON");
    }
    r = wait_counts_open(&session->counts, err);
    return r < 0 ? error_hint(err, "leave --counts out") : 0;
}

void session_counts_close(struct session *session)
{
    wait_counts_close(session->counts);
    id_map_finish(&session->stack_of_wait);
}

void session_counts_add_process(struct session *session, pid_t pid)
{
    if (session->counts != NULL)
        wait_counts_add_process(session->counts, pid);
}

void session_counts_note(struct session *session, const struct tick_look *look, uint32_t stack)
{
    const struct registers *registers = &look->sample.registers;

    if (session->counts != NULL && look->state == TICK_BLOCKED && look->stack == TICK_STACK_WHOLE)
        id_map_put(&session->stack_of_wait,
                   site_key(look->tid, registers->value[REGISTER_IP], registers->value[REGISTER_RSP],
                            look->syscall, look->arguments[0]),
                   stack);
}

void session_counts_take(struct session *session,
                         uint32_t (*final_stack)(void *context, uint32_t raw_stack, enum thread_state state),
                         void *context)
{
    struct profile_loss *loss = &session->profile->loss;
    struct wait_site site;

    if (session->counts == NULL)
        return;
    while (wait_counts_next(session->counts, &site)) {
        uint32_t raw_stack;

        if (id_map_get(&session->stack_of_wait,
                       site_key(site.tid, site.ip, site.sp, site.syscall, site.argument), &raw_stack))
            profile_add_counted_wait(session->profile, final_stack(context, raw_stack, STATE_BLOCKED),
                                     &site.histogram);
        else
            loss->unplaced_waits += site.histogram.count;
    }
    loss->unplaced_waits += wait_counts_dropped(session->counts);
}
