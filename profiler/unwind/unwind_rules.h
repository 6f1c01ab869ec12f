/* How to step out of the function at an address: libunwind's register state for that address, computed once.
 *
 *   struct unwind_rules *rules = unwind_rules_create(binaries);
 *   const struct unwind_rule *rule = unwind_rules_find(rules, binary_id, vaddr);
 *   if (rule != NULL) unw_apply_reg_state(&cursor, rule->state);
 *
 * Why not libunwind's own cache: it knows an address space and an instruction pointer. Two processes that
 * share the first, or a process after exec or dlclose, would take each other's rules, so it had to be flushed
 * each time; it takes a lock with two rt_sigprocmask calls a frame (most of 2.7 us); and it mixes up a return
 * address with the same address as a leaf. Here a rule belongs to a place in a binary: it holds for every
 * process, load address and time. */
#ifndef STALLGRAPH_UNWIND_UNWIND_RULES_H
#define STALLGRAPH_UNWIND_UNWIND_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiler/model/binary.h"

struct unwind_rule {
    bool is_signal_frame; /* the frame above was interrupted, it did not call */
    bool is_outermost;    /* its return address is undefined: the first function of a thread or a program */
    void *state;          /* for unw_apply_reg_state, which does not change it */
};

struct unwind_rules;

/* Borrows binaries. NULL when libunwind has no memory. */
struct unwind_rules *unwind_rules_create(const struct binary_table *binaries);
void unwind_rules_destroy(struct unwind_rules *rules);

/* The rule for an ELF virtual address of a binary; NULL when it has no usable call frame information there.
 * Valid until the next call. */
const struct unwind_rule *unwind_rules_find(struct unwind_rules *rules, uint32_t binary, uint64_t vaddr);

/* DWARF expressions of rules live at addresses of our own, which no target has: an accessor of memory asks
 * here first. Returns false where the address is not such a one. */
bool unwind_rules_read(const struct unwind_rules *rules, uint64_t address, uint64_t *ret_word);

#endif
