#include "exporters/human.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "profiler/base/clock.h"

struct human_text human_count(uint64_t count)
{
    struct human_text human = {""};
    char digits[HUMAN_TEXT_SIZE];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t used = 0;

    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            human.text[used++] = ',';
        human.text[used++] = digits[i];
    }
    return human;
}

/* value is in thousandths of the unit; three digits that matter. */
static struct human_text three_digits(uint64_t value, const char *unit)
{
    struct human_text human = {""};

    if (value < 9995)
        snprintf(human.text, sizeof human.text, "%" PRIu64 ".%02" PRIu64 " %s", (value + 5) / 10 / 100,
                 (value + 5) / 10 % 100, unit);
    else if (value < 99950)
        snprintf(human.text, sizeof human.text, "%" PRIu64 ".%" PRIu64 " %s", (value + 50) / 100 / 10,
                 (value + 50) / 100 % 10, unit);
    else
        snprintf(human.text, sizeof human.text, "%.30s %s", human_count((value + 500) / 1000).text, unit);
    return human;
}

struct human_text human_time_us(uint64_t time_us)
{
    struct human_text human = {""};

    if (time_us >= 1000000)
        return three_digits(time_us / 1000, "s");
    if (time_us >= 1000)
        return three_digits(time_us, "ms");
    snprintf(human.text, sizeof human.text, "%" PRIu64 " \xC2\xB5s", time_us);
    return human;
}

struct human_text human_percent(uint64_t part, uint64_t whole)
{
    struct human_text human = {"0 %"};

    if (part == 0 || whole == 0)
        return human;
    uint64_t hundredths = (uint64_t)(((unsigned __int128)part * 10000 + whole / 2) / whole);

    if (hundredths == 0)
        snprintf(human.text, sizeof human.text, "< 0.01 %%");
    else if (hundredths < 100)
        snprintf(human.text, sizeof human.text, "0.%02" PRIu64 " %%", hundredths);
    else
        snprintf(human.text, sizeof human.text, "%" PRIu64 ".%" PRIu64 " %%", (hundredths + 5) / 10 / 10,
                 (hundredths + 5) / 10 % 10);
    return human;
}

struct human_text human_ratio(uint64_t part, uint64_t whole)
{
    struct human_text human = {"0"};

    if (part == 0 || whole == 0)
        return human;
    uint64_t hundredths = (uint64_t)(((unsigned __int128)part * 100 + whole / 2) / whole);

    snprintf(human.text, sizeof human.text, "%s%" PRIu64 ".%02" PRIu64, hundredths == 0 ? "< " : "",
             (hundredths == 0 ? 1 : hundredths) / 100, (hundredths == 0 ? 1 : hundredths) % 100);
    return human;
}

struct human_text human_utc(int64_t unix_ns)
{
    struct human_text human = {""};
    time_t seconds = (time_t)(unix_ns / (int64_t)NS_PER_S);
    struct tm utc;

    if (gmtime_r(&seconds, &utc) != NULL)
        strftime(human.text, sizeof human.text, "%Y-%m-%d %H:%M:%S UTC", &utc);
    return human;
}
