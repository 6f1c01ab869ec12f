#include "exporters/xml_text.h"

#include <stdarg.h>

#include "exporters/text_safe.h"
#include "profiler/base/cleanup.h"

void xml_text(FILE *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        switch (*c) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            putc_unlocked(*c, out);
        }
    }
}

void xml_raw_text(FILE *out, const char *raw)
{
    AUTO_FREE char *safe = text_safe(raw, TEXT_XML);

    xml_text(out, safe);
}

void xml_format(FILE *out, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    xml_raw_text(out, text);
}
