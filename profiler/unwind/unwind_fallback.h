/* One step out of code that has no call frame information: JIT code, hand-written assembly, a libc that has
 * none for its start and signal code. By what the ABI says, never by search: a frame that is not certain
 * enough is not given. */
#ifndef STALLGRAPH_UNWIND_UNWIND_FALLBACK_H
#define STALLGRAPH_UNWIND_UNWIND_FALLBACK_H

#include "profiler/model/registers.h"
#include "profiler/unwind/unwind_memory.h"

enum unwind_fallback {
    UNWIND_FALLBACK_CALLER,      /* the registers are those of a caller */
    UNWIND_FALLBACK_INTERRUPTED, /* the registers are those of code that a signal interrupted */
    UNWIND_FALLBACK_START,       /* a frame pointer or a return address of 0: the outermost frame */
    UNWIND_FALLBACK_NONE,        /* no usable frame pointer */
    UNWIND_FALLBACK_UNREADABLE,  /* the frame lies where memory cannot be read */
};

/* registers: ip, rsp and, where it is known, rbp. is_leaf: the thread is executing at ip, it is no return
 * address. */
enum unwind_fallback unwind_fallback_step(struct unwind_memory *memory, const struct registers *registers,
                                          bool is_leaf, struct registers *ret_registers);

/* The same by the frame pointer alone, without a look at the code: [rbp] holds the caller's rbp, [rbp+8] the return
 * address; the frame lies above the stack pointer. */
enum unwind_fallback unwind_fallback_step_frame_pointer(struct unwind_memory *memory,
                                                        const struct registers *registers,
                                                        struct registers *ret_registers);

#endif
