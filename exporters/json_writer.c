#include "exporters/json_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#include "exporters/text_safe.h"

/* The comma before an item, unless it is the first one or follows its key. */
static void separate(struct json_writer *json)
{
    uint64_t bit = UINT64_C(1) << json->depth;

    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if ((json->has_items & bit) != 0)
        putc_unlocked(',', json->out);
    json->has_items |= bit;
}

static void begin(struct json_writer *json, char bracket)
{
    separate(json);
    putc_unlocked(bracket, json->out);
    assert(json->depth < JSON_MAX_DEPTH);
    json->depth++;
    json->has_items &= ~(UINT64_C(1) << json->depth);
}

static void end(struct json_writer *json, char bracket)
{
    assert(json->depth > 0);
    json->depth--;
    putc_unlocked(bracket, json->out);
}

void json_begin_object(struct json_writer *json)
{
    begin(json, '{');
}

void json_end_object(struct json_writer *json)
{
    end(json, '}');
}

void json_begin_array(struct json_writer *json)
{
    begin(json, '[');
}

void json_end_array(struct json_writer *json)
{
    end(json, ']');
}

void json_line(struct json_writer *json)
{
    separate(json);
    putc_unlocked('\n', json->out);
    json->after_key = true; /* the comma is written */
}

static void write_string(FILE *out, const char *text)
{
    char bytes[TEXT_ENCODED_MAX_BYTES];
    uint32_t code_point = 0;

    putc_unlocked('"', out);
    while ((code_point = text_decode(&text)) != 0) {
        if (code_point < 0x20) {
            fprintf(out, "\\u%04x", (unsigned)code_point);
            continue;
        }
        if (code_point == '"' || code_point == '\\')
            putc_unlocked('\\', out);
        size_t size = text_encode(code_point, bytes);

        for (size_t i = 0; i < size; i++)
            putc_unlocked(bytes[i], out);
    }
    putc_unlocked('"', out);
}

void json_key(struct json_writer *json, const char *key)
{
    separate(json);
    write_string(json->out, key);
    putc_unlocked(':', json->out);
    json->after_key = true;
}

void json_string(struct json_writer *json, const char *text)
{
    separate(json);
    write_string(json->out, text);
}

/* By hand: files hold millions of numbers, and printf takes several times as long. */
void json_uint(struct json_writer *json, uint64_t value)
{
    char digits[20];
    size_t start = sizeof digits;

    separate(json);
    do {
        digits[--start] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    for (size_t i = start; i < sizeof digits; i++)
        putc_unlocked(digits[i], json->out);
}

void json_int(struct json_writer *json, int64_t value)
{
    separate(json);
    fprintf(json->out, "%" PRId64, value);
}

void json_double(struct json_writer *json, double value)
{
    separate(json);
    if (isfinite(value))
        fprintf(json->out, "%.15g", value);
    else
        fputs("null", json->out);
}

void json_bool(struct json_writer *json, bool value)
{
    separate(json);
    fputs(value ? "true" : "false", json->out);
}

void json_key_string(struct json_writer *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json, text);
}

void json_key_uint(struct json_writer *json, const char *key, uint64_t value)
{
    json_key(json, key);
    json_uint(json, value);
}
