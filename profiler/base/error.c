#include "profiler/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(struct error *err, const char *format, va_list args)
{
    size_t used = strlen(err->message);

    vsnprintf(err->message + used, sizeof err->message - used, format, args);
}

__attribute__((format(printf, 2, 3))) static void append_text(struct error *err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    append(err, format, args);
    va_end(args);
}

static void begin(struct error *err, int code, const char *format, va_list args)
{
    err->code = code;
    err->message[0] = '\0';
    append(err, format, args);
}

int error_set(struct error *err, int code, const char *format, ...)
{
    va_list args;

    if (err == NULL)
        return code;
    va_start(args, format);
    begin(err, code, format, args);
    va_end(args);
    if (code < 0)
        append_text(err, ": %s", strerror(-code));
    return code;
}

int error_say(struct error *err, int code, const char *format, ...)
{
    va_list args;

    if (err == NULL)
        return code;
    va_start(args, format);
    begin(err, code, format, args);
    va_end(args);
    return code;
}

int error_hint(struct error *err, const char *format, ...)
{
    va_list args;

    if (err == NULL)
        return 0;
    append_text(err, "; ");
    va_start(args, format);
    append(err, format, args);
    va_end(args);
    return err->code;
}
