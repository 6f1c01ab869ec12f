#ifdef STALLGRAPH_HAVE_BPF

#include "profiler/collect/bpf_quiet.h"

#include <bpf/libbpf.h>
#include <stdarg.h>

static int print_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level;
    (void)format;
    (void)arguments;
    return 0;
}

void bpf_keep_quiet(void)
{
    libbpf_set_print(print_nothing);
}

#endif
