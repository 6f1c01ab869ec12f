#include "profiler/cli/duration.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/clock.h"

static const double LONGEST_S = 100.0 * 365 * 86400;

static bool take(double seconds, uint64_t *ret_ns)
{
    if (!isfinite(seconds) || seconds * (double)NS_PER_S < 1 || seconds > LONGEST_S)
        return false;
    *ret_ns = (uint64_t)llround(seconds * (double)NS_PER_S);
    return true;
}

/* hh:mm:ss or dd:hh:mm:ss, digits only. */
static bool parse_clock(const char *text, uint64_t *ret_ns)
{
    static const double unit_s[] = {1, 60, 3600, 86400};
    double part[4];
    double seconds = 0;
    size_t count = 0;

    for (;;) {
        char *end;

        if (count == 4 || !isdigit((unsigned char)*text))
            return false;
        part[count++] = (double)strtoul(text, &end, 10);
        if (*end == '\0')
            break;
        if (*end != ':')
            return false;
        text = end + 1;
    }
    if (count < 3)
        return false;
    for (size_t i = 0; i < count; i++)
        seconds += part[i] * unit_s[count - 1 - i];
    return take(seconds, ret_ns);
}

bool duration_parse(const char *text, uint64_t *ret_ns)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"ms", 0.001}, {"us", 0.000001}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    double number;
    char *end;

    if (strchr(text, ':') != NULL)
        return parse_clock(text, ret_ns);
    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    number = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].name, end) == 0)
            return take(number * units[i].seconds, ret_ns);
    return false;
}
