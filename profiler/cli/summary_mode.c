#include "profiler/cli/summary_mode.h"

#include <errno.h>
#include <string.h>

#include "profiler/cli/summary_json.h"
#include "profiler/cli/summary_text.h"

static const char *const words[] = {[SUMMARY_TEXT] = "text", [SUMMARY_JSON] = "json", [SUMMARY_OFF] = "none"};

int summary_mode_parse(const char *word, enum summary_mode *ret_mode, struct error *err)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], word) == 0) {
            *ret_mode = (enum summary_mode)i;
            return 0;
        }
    }
    return error_say(err, -EINVAL, "\"%s\": must be one of text, json, none", word);
}

void summary_mode_print(enum summary_mode mode, FILE *out, const struct profile *profile)
{
    switch (mode) {
    case SUMMARY_TEXT:
        summary_text_print(out, profile);
        break;
    case SUMMARY_JSON:
        summary_json_print(out, profile);
        break;
    case SUMMARY_OFF:
        break;
    }
}
