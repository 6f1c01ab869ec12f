#include "profiler/symbolize/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"

enum {
    MANGLED_MAX_BYTES = 64 * 1024,
    DEMANGLED_MAX_BYTES = 64 * 1024,
    /* D's demangler has neither a limit of depth nor a way to stop it: both follow from the length. */
    D_MANGLED_MAX_BYTES = 1024,
    D_DEMANGLED_MAX_BYTES = 16 << 20,
    SUFFIX_TRIES_MAX = 16,
};

enum { OPTIONS = DMGL_PARAMS | DMGL_ANSI };

struct output {
    char *text;
    size_t length;
    size_t capacity;
    jmp_buf too_long;
};

/* Back references let 100 bytes stand for 2^30, and libiberty's callback cannot say stop: a jump is the only
 * way out of it. The printing side of both demanglers that get this callback keeps its state on the stack. */
static void append(const char *bytes, size_t length, void *context)
{
    struct output *output = context;

    if (length == 0)
        return;
    if (length >= DEMANGLED_MAX_BYTES - output->length)
        longjmp(output->too_long, 1);
    output->text = vec_reserve(output->text, &output->capacity, output->length + length + 1, 1);
    memcpy(output->text + output->length, bytes, length);
    output->length += length;
    output->text[output->length] = '\0';
}

/* NULL where it is not decodable. */
static char *decode_with_callback(const char *mangled,
                                  int (*decode)(const char *, int, demangle_callbackref, void *))
{
    struct output *output = memory_zeroed(1, sizeof *output);
    char *text = NULL;

    /* Only the heap changes between setjmp and longjmp, so no local is indeterminate after it. */
    if (setjmp(output->too_long) == 0 && decode(mangled, OPTIONS, append, output) != 0 &&
        output->length > 0) {
        text = output->text;
        output->text = NULL;
    }
    free(output->text);
    free(output);
    return text;
}

/* Every back reference ('Q') can at most stand for all that is before it, so k of them multiply the length by
 * 3^(k/3) at most. */
static bool is_bounded_d(const char *mangled)
{
    size_t length = strlen(mangled);
    double worst_bytes = (double)length;
    const double cube_root_of_3 = 1.4423;

    if (length > D_MANGLED_MAX_BYTES)
        return false;
    for (size_t i = 0; i < length; i++)
        if (mangled[i] == 'Q')
            worst_bytes *= cube_root_of_3;
    return worst_bytes < D_DEMANGLED_MAX_BYTES;
}

static char *decode_d(const char *mangled)
{
    char *text = is_bounded_d(mangled) ? cplus_demangle(mangled, OPTIONS | DMGL_DLANG) : NULL;

    if (text != NULL && strlen(text) >= DEMANGLED_MAX_BYTES) {
        free(text);
        text = NULL;
    }
    return text;
}

/* A whole mangled name, without suffixes. */
static char *decode(const char *mangled)
{
    char *text = NULL;

    switch (mangled[1]) {
    case 'R':
        return decode_with_callback(mangled, rust_demangle_callback);
    case 'Z':
        /* Legacy Rust is valid C++ mangling that ends in a hash: it has to be tried first. */
        text = decode_with_callback(mangled, rust_demangle_callback);
        return text != NULL ? text : decode_with_callback(mangled, cplus_demangle_v3_callback);
    case 'D':
        return decode_d(mangled);
    default:
        return NULL;
    }
}

/* Where a suffix may begin: at '.' or '@', but not within "..", which legacy Rust writes for "::". */
static size_t next_suffix(const char *name, size_t at)
{
    for (at++; name[at] != '\0'; at++)
        if (name[at] == '@' || (name[at] == '.' && name[at - 1] != '.' && name[at + 1] != '.'))
            return at;
    return at;
}

char *demangle_name(const char *name)
{
    size_t length = strlen(name);
    AUTO_FREE char *head = NULL;
    size_t cut = 1;

    if (name[0] != '_' || length > MANGLED_MAX_BYTES || strchr("ZRD", name[1]) == NULL || name[1] == '\0')
        return string_copy(name);
    head = string_copy(name);
    /* The first part that is a whole mangled name is it: libiberty would take suffixes too, but rewrites or
     * drops them. */
    for (int tries = 0; tries < SUFFIX_TRIES_MAX && cut < length; tries++) {
        AUTO_FREE char *text = NULL;

        cut = next_suffix(name, cut);
        head[cut] = '\0';
        text = decode(head);
        if (text != NULL)
            return string_format("%s%s", text, name + cut);
        head[cut] = name[cut];
    }
    return string_copy(name);
}
