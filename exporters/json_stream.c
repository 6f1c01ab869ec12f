#include "exporters/json_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "profiler/base/memory.h"

/* Of one value: yajl keeps the whole of it. A number that is longer than this is nobody's. */
enum { MAX_VALUE_BYTES = 16 << 20, MAX_NUMBER_BYTES = 64 };

enum { PLACE_SKIPPED = -1 };

struct level {
    int place;
    const char *key; /* of a rule or field that the object's latest key is; NULL: none, or an array */
};

struct json_stream {
    const struct json_grammar *grammar;
    void *record;
    struct string_table *strings;
    yajl_handle parser;
    struct level levels[JSON_STREAM_MAX_DEPTH + 1];
    size_t depth;
    uint64_t fed_bytes;        /* before the piece that is being read */
    uint64_t last_event_bytes; /* fed when the last value was told of */
    struct error *err;         /* where a callback says what is wrong */
};

static int fail(struct json_stream *stream, const char *message)
{
    error_say(stream->err, -EBADMSG, "%s", message);
    return 0;
}

static struct level *top(struct json_stream *stream)
{
    return &stream->levels[stream->depth];
}

static int begin_container(void *context)
{
    struct json_stream *stream = context;
    struct level *outer = top(stream);
    int place = PLACE_SKIPPED;

    if (stream->depth == JSON_STREAM_MAX_DEPTH)
        return fail(stream, "nested too deeply");
    for (size_t i = 0; i < stream->grammar->rule_count && outer->place != PLACE_SKIPPED; i++) {
        const struct json_rule *rule = &stream->grammar->rules[i];

        if (rule->parent == outer->place && (rule->key == NULL) == (outer->key == NULL) &&
            (rule->key == NULL || strcmp(rule->key, outer->key) == 0)) {
            place = rule->place;
            break;
        }
    }
    stream->levels[++stream->depth] = (struct level){.place = place};
    stream->last_event_bytes = stream->fed_bytes;
    if (place == PLACE_SKIPPED)
        return 1;
    return stream->grammar->begin(stream->record, place, stream->err) == 0;
}

static int end_container(void *context)
{
    struct json_stream *stream = context;
    int place = top(stream)->place;

    stream->depth--;
    stream->last_event_bytes = stream->fed_bytes;
    if (place == PLACE_SKIPPED)
        return 1;
    return stream->grammar->end(stream->record, place, stream->err) == 0;
}

static bool is_text(const char *wanted, const unsigned char *text, size_t length)
{
    return wanted != NULL && strlen(wanted) == length && memcmp(wanted, text, length) == 0;
}

/* An unknown key must not look like an array's element: those have none. */
static int take_key(void *context, const unsigned char *text, size_t length)
{
    static const char unknown[] = "";
    struct json_stream *stream = context;
    struct level *level = top(stream);

    stream->last_event_bytes = stream->fed_bytes;
    level->key = unknown;
    if (level->place == PLACE_SKIPPED)
        return 1;
    for (size_t i = 0; i < stream->grammar->rule_count; i++)
        if (stream->grammar->rules[i].parent == level->place &&
            is_text(stream->grammar->rules[i].key, text, length))
            level->key = stream->grammar->rules[i].key;
    for (size_t i = 0; i < stream->grammar->field_count; i++)
        if (stream->grammar->fields[i].place == level->place &&
            is_text(stream->grammar->fields[i].key, text, length))
            level->key = stream->grammar->fields[i].key;
    return 1;
}

/* The field that the next value is of, or NULL. */
static const struct json_field *current_field(struct json_stream *stream)
{
    const struct level *level = top(stream);

    stream->last_event_bytes = stream->fed_bytes;
    if (level->place == PLACE_SKIPPED || level->key == NULL)
        return NULL;
    for (size_t i = 0; i < stream->grammar->field_count; i++) {
        const struct json_field *field = &stream->grammar->fields[i];

        if (field->place == level->place && strcmp(field->key, level->key) == 0)
            return field;
    }
    return NULL;
}

static bool is_element(struct json_stream *stream)
{
    return top(stream)->place != PLACE_SKIPPED && top(stream)->key == NULL && stream->depth > 0;
}

static int refuse_type(struct json_stream *stream, const struct json_field *field)
{
    error_say(stream->err, -EBADMSG, "\"%s\" is of the wrong type", field->key);
    return 0;
}

static void *slot(struct json_stream *stream, const struct json_field *field)
{
    return (char *)stream->record + field->offset;
}

static int take_boolean(void *context, int value)
{
    struct json_stream *stream = context;
    const struct json_field *field = current_field(stream);
    bool truth = value != 0;

    if (field == NULL)
        return 1;
    if (field->type != JSON_BOOL)
        return refuse_type(stream, field);
    memcpy(slot(stream, field), &truth, sizeof truth);
    return 1;
}

static int take_null(void *context)
{
    current_field(context);
    return 1;
}

static uint32_t intern(struct json_stream *stream, const unsigned char *text, size_t length)
{
    char *copy;
    uint32_t id;

    if (memchr(text, '\0', length) == NULL)
        return string_table_intern_length(stream->strings, (const char *)text, length);
    copy = string_copy_length((const char *)text, length);
    for (size_t i = 0; i < length; i++)
        if (copy[i] == '\0')
            copy[i] = '?';
    id = string_table_intern_length(stream->strings, copy, length);
    free(copy);
    return id;
}

static int take_string(void *context, const unsigned char *text, size_t length)
{
    struct json_stream *stream = context;
    const struct json_field *field = current_field(stream);
    uint32_t id;

    if (is_element(stream))
        return stream->grammar->string(stream->record, top(stream)->place, intern(stream, text, length),
                                       stream->err) == 0;
    if (field == NULL)
        return 1;
    if (field->type != JSON_STRING)
        return refuse_type(stream, field);
    id = intern(stream, text, length);
    memcpy(slot(stream, field), &id, sizeof id);
    return 1;
}

/* Whole numbers beyond 2^53 must come through exactly, so they do not go by way of a double. */
static int store_number(struct json_stream *stream, const struct json_field *field, const char *text)
{
    double value = strtod(text, NULL);
    bool whole = strpbrk(text, ".eE") == NULL;
    uint64_t natural;
    int64_t integer;

    switch (field->type) {
    case JSON_UINT:
        if (value < 0 || value >= 0x1p64)
            return fail(stream, "a number is out of range");
        natural = whole ? strtoull(text, NULL, 10) : (uint64_t)value;
        memcpy(slot(stream, field), &natural, sizeof natural);
        return 1;
    case JSON_INT:
        if (!(value > -0x1p63 && value < 0x1p63))
            return fail(stream, "a number is out of range");
        integer = whole ? strtoll(text, NULL, 10) : (int64_t)value;
        memcpy(slot(stream, field), &integer, sizeof integer);
        return 1;
    case JSON_DOUBLE:
        memcpy(slot(stream, field), &value, sizeof value);
        return 1;
    case JSON_BOOL:
    case JSON_STRING:
        break;
    }
    return refuse_type(stream, field);
}

static int take_number(void *context, const char *digits, size_t length)
{
    struct json_stream *stream = context;
    const struct json_field *field = current_field(stream);
    char text[MAX_NUMBER_BYTES];

    if (length >= sizeof text)
        return fail(stream, "a number is too long");
    memcpy(text, digits, length);
    text[length] = '\0';
    if (is_element(stream)) {
        struct json_number number = {.value = strtod(text, NULL)};

        if (number.value >= 0 && number.value < 0x1p64 && strpbrk(text, ".eE") == NULL)
            number.whole = strtoull(text, NULL, 10);
        return stream->grammar->number(stream->record, top(stream)->place, number, stream->err) == 0;
    }
    return field == NULL ? 1 : store_number(stream, field, text);
}

static const yajl_callbacks callbacks = {
    .yajl_null = take_null,
    .yajl_boolean = take_boolean,
    .yajl_number = take_number,
    .yajl_string = take_string,
    .yajl_start_map = begin_container,
    .yajl_map_key = take_key,
    .yajl_end_map = end_container,
    .yajl_start_array = begin_container,
    .yajl_end_array = end_container,
};

struct json_stream *json_stream_create(const struct json_grammar *grammar, void *record,
                                       struct string_table *strings)
{
    struct json_stream *stream = memory_zeroed(1, sizeof *stream);

    stream->grammar = grammar;
    stream->record = record;
    stream->strings = strings;
    stream->parser = yajl_alloc(&callbacks, NULL, stream);
    /* Names are any bytes for us: who writes them makes them safe. */
    yajl_config(stream->parser, yajl_dont_validate_strings, 1);
    return stream;
}

void json_stream_destroy(struct json_stream *stream)
{
    if (stream == NULL)
        return;
    yajl_free(stream->parser);
    free(stream);
}

/* "... at byte 1234" */
static int explain(struct json_stream *stream, yajl_status status, const unsigned char *bytes, size_t size,
                   struct error *err)
{
    /* At the end yajl counts a byte of its own. */
    uint64_t offset = stream->fed_bytes + (size > 0 ? yajl_get_bytes_consumed(stream->parser) : 0);
    unsigned char *why;
    size_t length;

    if (status == yajl_status_client_canceled) {
        char message[sizeof err->message];

        snprintf(message, sizeof message, "%s", err->message);
        return error_say(err, err->code < 0 ? err->code : -EBADMSG, "at byte %" PRIu64 ": %s", offset,
                         message);
    }
    why = yajl_get_error(stream->parser, 0, bytes, size);
    length = strcspn((const char *)why, "\n");
    error_say(err, -EBADMSG, "at byte %" PRIu64 ": %.*s", offset, (int)length, (const char *)why);
    yajl_free_error(stream->parser, why);
    return -EBADMSG;
}

int json_stream_feed(struct json_stream *stream, const void *bytes, size_t size, struct error *err)
{
    yajl_status status;

    stream->err = err;
    status = yajl_parse(stream->parser, bytes, size);
    if (status != yajl_status_ok)
        return explain(stream, status, bytes, size, err);
    stream->fed_bytes += size;
    if (stream->fed_bytes - stream->last_event_bytes > MAX_VALUE_BYTES)
        return error_say(err, -EBADMSG, "at byte %" PRIu64 ": a text is longer than %d bytes",
                         stream->fed_bytes, MAX_VALUE_BYTES);
    return 0;
}

int json_stream_end(struct json_stream *stream, struct error *err)
{
    yajl_status status;

    stream->err = err;
    status = yajl_complete_parse(stream->parser);
    return status == yajl_status_ok ? 0 : explain(stream, status, NULL, 0, err);
}
