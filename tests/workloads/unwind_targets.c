/* Stops in a known place and prints its own truth: the return addresses that stand on its stack, leaf first.
 *
 *   unwind_targets plain | deep N | big N | thread | signal | altstack | null | jit | steps | jit_steps
 *
 * prints one line, flushed, then blocks in read(2) on its standard input:
 *
 *   stack TID INTERRUPTED ADDRESS ADDRESS ...
 *
 * INTERRUPTED is how many addresses stand before the one that a signal interrupted (which is no return
 * address), or -1. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { MAX_DEPTH = 4096, BIG_FRAME_BYTES = 30000, JIT_BYTES = 4096, STEP_ROUNDS = 40 };

static uint64_t truth[MAX_DEPTH];
static int depth;
static int interrupted = -1;
static volatile unsigned long sink;

#define NOINLINE __attribute__((noinline))

/* Root first; printed the other way round. */
#define ENTER() (truth[depth++] = (uint64_t)__builtin_return_address(0))

NOINLINE static void block_here(void)
{
    char byte;

    ENTER();
    printf("stack %ld %d", syscall(SYS_gettid), interrupted < 0 ? -1 : depth - 1 - interrupted);
    for (int i = depth; i-- > 0;)
        printf(" %lx", (unsigned long)truth[i]);
    printf("\n");
    fflush(stdout);
    sink += (unsigned long)read(STDIN_FILENO, &byte, 1);
}

NOINLINE static void small(void)
{
    ENTER();
    block_here();
    sink++;
}

NOINLINE static long many_saved(long a, long b, long c, long d, long e, long f)
{
    ENTER();
    small();
    sink += (unsigned long)(a + b + c + d + e + f);
    return a * b + c * d + e * f;
}

/* A frame whose size is known only at run time is found through rbp, or through a saved copy of it. */
NOINLINE static void variable(size_t size)
{
    char *bytes = __builtin_alloca(size);

    ENTER();
    memset(bytes, 1, size);
    sink += (unsigned long)many_saved(1, 2, 3, 4, bytes[0], bytes[size - 1]);
}

typedef double wide __attribute__((vector_size(64)));

/* Aligns the stack, which makes compilers find the frame by an expression. */
NOINLINE static void aligned(void)
{
    volatile wide value __attribute__((aligned(64))) = {1, 2, 3};

    ENTER();
    variable(100 + (size_t)value[0]);
    sink += (unsigned long)value[1];
}

static int compare(const void *left, const void *right)
{
    if (depth == 2) { /* once, below qsort, whose own frame has no entry here */
        ENTER();
        aligned();
    }
    return *(const char *)left - *(const char *)right;
}

NOINLINE static int recursive(int n)
{
    volatile char bytes[64];

    ENTER();
    bytes[0] = (char)n;
    if (n == 0)
        small();
    else
        recursive(n - 1);
    return bytes[0];
}

NOINLINE static int big(int n)
{
    volatile char bytes[BIG_FRAME_BYTES];

    ENTER();
    memset((void *)bytes, n, sizeof bytes);
    if (n == 0)
        small();
    else
        big(n - 1);
    return bytes[0];
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const ucontext_t *interrupted_context = context;

    (void)info;
    interrupted = depth;
    truth[depth++] = (uint64_t)interrupted_context->uc_mcontext.gregs[REG_RIP];
    ENTER(); /* of the restorer */
    small();
    if (number == SIGSEGV)
        _exit(0); /* returning would repeat the fault */
}

static void catch_signal(int number, int flags)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};

    sigaction(number, &action, NULL);
}

/* A leaf that needs no frame, wherever the signal finds it. */
NOINLINE static unsigned long spin(unsigned long value)
{
    ENTER();
    while (sink == 0)
        value = value * 31 + 7;
    return value;
}

NOINLINE static void work(void)
{
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};

    ENTER();
    setitimer(ITIMER_REAL, &soon, NULL);
    sink += spin(1);
    sink++;
}

NOINLINE static void call_null(void (*function)(void))
{
    ENTER();
    function();
    sink++;
}

typedef void (*jit_code)(void (*function)(void));

/* What a JIT compiler with frame pointers makes. */
NOINLINE static jit_code make_jit_code(void)
{
    static const unsigned char code[] = {
        0x55,                   /* push %rbp */
        0x48, 0x89, 0xe5,       /* mov %rsp,%rbp */
        0x48, 0x83, 0xec, 0x40, /* sub $64,%rsp */
        0xff, 0xd7,             /* call *%rdi */
        0xc9,                   /* leave */
        0xc3,                   /* ret */
    };
    char *memory = mmap(NULL, JIT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memcpy(memory, code, sizeof code);
    mprotect(memory, JIT_BYTES, PROT_READ | PROT_EXEC);
    return (jit_code)(uintptr_t)memory;
}

NOINLINE static void through_jit(void (*function)(void))
{
    ENTER();
    make_jit_code()(function);
    sink++;
}

NOINLINE static void nothing(void)
{
    sink += 2;
}

NOINLINE static void jit_steps(void)
{
    jit_code code = make_jit_code();

    ENTER();
    block_here();
    depth--;
    for (int i = 0; i < STEP_ROUNDS; i++)
        code(nothing);
    sink++;
}

static void *thread_start(void *argument)
{
    ENTER();
    many_saved(1, 2, 3, 4, 5, (long)argument);
    return NULL;
}

static int compare_for_steps(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

/* Calls through the PLT, into libc, the vDSO and back, for a test that stops at every instruction. */
NOINLINE static void stepped(void)
{
    int numbers[16];
    char text[64];
    struct timespec now;

    for (int round = 0; round < STEP_ROUNDS; round++) {
        for (int i = 0; i < 16; i++)
            numbers[i] = (i * 7919 + round) % 31;
        qsort(numbers, 16, sizeof *numbers, compare_for_steps);
        clock_gettime(CLOCK_MONOTONIC, &now);
        snprintf(text, sizeof text, "%d %ld", numbers[0], now.tv_nsec);
        sink += strlen(text) + (unsigned long)getppid();
    }
}

NOINLINE static void steps(void)
{
    ENTER();
    block_here();
    depth--;
    stepped();
    sink++;
}

NOINLINE static int run(const char *mode, int count)
{
    static char alternate[1 << 16];
    char letters[] = "ba";

    ENTER();
    if (strcmp(mode, "plain") == 0) {
        qsort(letters, 2, 1, compare);
    } else if (strcmp(mode, "deep") == 0) {
        recursive(count);
    } else if (strcmp(mode, "big") == 0) {
        big(count);
    } else if (strcmp(mode, "signal") == 0) {
        catch_signal(SIGALRM, 0);
        work();
    } else if (strcmp(mode, "altstack") == 0) {
        stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};

        sigaltstack(&stack, NULL);
        catch_signal(SIGALRM, SA_ONSTACK);
        work();
    } else if (strcmp(mode, "null") == 0) {
        catch_signal(SIGSEGV, 0);
        call_null((void (*)(void))(uintptr_t)(sink * 8));
    } else if (strcmp(mode, "jit") == 0) {
        through_jit(small);
    } else if (strcmp(mode, "steps") == 0) {
        steps();
    } else if (strcmp(mode, "jit_steps") == 0) {
        jit_steps();
    } else {
        return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int code;

    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "thread") == 0) {
        pthread_create(&thread, NULL, thread_start, argv);
        pthread_join(thread, NULL);
        return 0;
    }
    ENTER();
    code = run(argv[1], argc > 2 ? atoi(argv[2]) : 0);
    sink++;
    return code;
}
