// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include "base/limits.h"
#include "base/quote.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

_Static_assert(LIMIT_JSON_DEPTH < 32, "has_member holds one bit per depth");

#define END_OF_TEXT (-1)

void json_init(struct json *json, const void *text, size_t bytes, const char *what) {
    *json = (struct json){.text = text, .bytes = bytes, .what = what};
}

enum ulp_status json_fail(const struct json *json, enum ulp_status status, const char *message) {
    return fail(status, "%s: at byte %zu of the JSON text: %s", quote(json->what).text, json->at,
                message);
}

static int peek(const struct json *json) {
    return json->at < json->bytes ? json->text[json->at] : END_OF_TEXT;
}

static void skip_space(struct json *json) {
    for (;;) {
        int c = peek(json);

        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return;
        json->at++;
    }
}

int json_peek(struct json *json) {
    skip_space(json);
    return peek(json);
}

static bool is_digit(int c) {
    return c >= '0' && c <= '9';
}

/* The word true, false or null if it stands here. */
static const char *word_here(const struct json *json) {
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);

        if (json->bytes - json->at >= length && !memcmp(json->text + json->at, words[i], length))
            return words[i];
    }
    return NULL;
}

/* What kind of value begins here; NULL when none can. */
static const char *value_here(const struct json *json) {
    int c = peek(json);

    if (is_digit(c))
        return "a number";
    switch (c) {
    case '{':
        return "an object";
    case '[':
        return "an array";
    case '"':
        return "a string";
    case '-':
        return "a negative number";
    default:
        return word_here(json);
    }
}

/* Something else stands here. When that is a value, of the wrong kind, `wrong_kind` is the status;
 * otherwise the text is no JSON. */
static enum ulp_status fail_expected(const struct json *json, const char *expected,
                                     enum ulp_status wrong_kind) {
    const char *found = value_here(json);
    char byte[24], message[128];
    int c = peek(json);

    if (c == END_OF_TEXT)
        snprintf(byte, sizeof byte, "the end of the text");
    else
        snprintf(byte, sizeof byte, c > 0x20 && c < 0x7f ? "'%c'" : "the byte 0x%02x", c);
    snprintf(message, sizeof message, "expected %s, found %s", expected, found ? found : byte);
    return json_fail(json, found ? wrong_kind : ULP_E_JSON, message);
}

static enum ulp_status expect(struct json *json, char wanted, const char *expected,
                              enum ulp_status wrong_kind) {
    skip_space(json);
    if (peek(json) != wanted)
        return fail_expected(json, expected, wrong_kind);
    json->at++;
    return ULP_OK;
}

static enum ulp_status begin(struct json *json, char bracket, const char *expected) {
    enum ulp_status status = expect(json, bracket, expected, ULP_E_SCHEMA);

    if (status)
        return status;
    if (json->depth >= LIMIT_JSON_DEPTH)
        return json_fail(json, ULP_E_LIMIT, "nested too deeply");
    json->depth++;
    json->has_member &= ~(1u << json->depth);
    return ULP_OK;
}

enum ulp_status json_object_begin(struct json *json) {
    return begin(json, '{', "an object");
}

enum ulp_status json_array_begin(struct json *json) {
    return begin(json, '[', "an array");
}

/* In front of a member: the closing bracket, or the comma that all but the first need. */
static enum ulp_status next(struct json *json, char closing, bool *ret_more) {
    uint32_t bit = 1u << json->depth;

    skip_space(json);
    if (peek(json) == closing) {
        json->at++;
        json->depth--;
        *ret_more = false;
        return ULP_OK;
    }
    if (json->has_member & bit) {
        enum ulp_status status = expect(json, ',', "',' or a closing bracket", ULP_E_JSON);

        if (status)
            return status;
    }
    json->has_member |= bit;
    *ret_more = true;
    return ULP_OK;
}

static enum ulp_status append_code_point(struct buffer *out, uint32_t code) {
    uint8_t utf8[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = length; i-- > 1; code >>= 6)
        utf8[i] = (uint8_t)(0x80 | (code & 0x3f));
    utf8[0] = (uint8_t)(lead[length] | code);
    return buffer_append(out, utf8, length);
}

/* Four hexadecimal digits behind "\u". */
static enum ulp_status hex4(struct json *json, uint32_t *ret_code) {
    uint32_t code = 0;

    for (int i = 0; i < 4; i++) {
        int c = peek(json);
        int lower = c | 0x20;
        bool letter = lower >= 'a' && lower <= 'f';

        if (!letter && (c < '0' || c > '9'))
            return fail_expected(json, "four hexadecimal digits behind \\u", ULP_E_JSON);
        code = code << 4 | (uint32_t)(letter ? lower - 'a' + 10 : c - '0');
        json->at++;
    }
    *ret_code = code;
    return ULP_OK;
}

static enum ulp_status unicode_escape(struct json *json, struct buffer *text) {
    uint32_t code = 0, low = 0;
    enum ulp_status status = hex4(json, &code);

    if (status)
        return status;
    if (code == 0)
        return json_fail(json, ULP_E_UTF8, "a NUL character inside text");
    if (code >= 0xdc00 && code <= 0xdfff)
        return json_fail(json, ULP_E_UTF8, "a low surrogate without its high half");
    if (code >= 0xd800 && code <= 0xdbff) {
        if (json->bytes - json->at < 2 || memcmp(json->text + json->at, "\\u", 2) != 0)
            return json_fail(json, ULP_E_UTF8, "a high surrogate without its low half");
        json->at += 2;
        status = hex4(json, &low);
        if (status)
            return status;
        if (low < 0xdc00 || low > 0xdfff)
            return json_fail(json, ULP_E_UTF8, "a high surrogate without its low half");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return append_code_point(text, code);
}

static enum ulp_status escape(struct json *json, struct buffer *text) {
    static const char letters[] = "\"\\/bfnrt";
    static const char meaning[] = "\"\\/\b\f\n\r\t";
    int c;
    const char *found;

    json->at++; /* the backslash */
    c = peek(json);
    found = c > 0 ? strchr(letters, c) : NULL;
    if (c == 'u') {
        json->at++;
        return unicode_escape(json, text);
    }
    if (!found)
        return fail_expected(json, "one of \"\\/bfnrtu behind a backslash", ULP_E_JSON);
    json->at++;
    return buffer_append(text, meaning + (found - letters), 1);
}

static enum ulp_status fail_utf8(const struct json *json, int byte) {
    char message[64];

    snprintf(message, sizeof message, "the byte 0x%02x here is not UTF-8", byte);
    return json_fail(json, ULP_E_UTF8, message);
}

/* As many plain characters as stand here: printable ASCII and well-formed UTF-8. */
static enum ulp_status plain_run(struct json *json, struct buffer *text) {
    size_t start = json->at;

    for (;;) {
        int c = peek(json);
        size_t length;

        if (c == END_OF_TEXT)
            return json_fail(json, ULP_E_JSON, "the text ends inside a string");
        if (c < 0x20)
            return json_fail(json, ULP_E_JSON, "a control character inside a string");
        if (c == '"' || c == '\\')
            break;
        length = utf8_length(json->text + json->at, json->bytes - json->at);
        if (!length)
            return fail_utf8(json, c);
        json->at += length;
    }
    return buffer_append(text, json->text + start, json->at - start);
}

static enum ulp_status read_string(struct json *json, const char *expected,
                                   enum ulp_status wrong_kind, struct buffer *text) {
    size_t start;
    enum ulp_status status = expect(json, '"', expected, wrong_kind);

    start = json->at;
    buffer_clear(text);
    while (!status) {
        status = plain_run(json, text);
        if (status || peek(json) == '"')
            break;
        status = escape(json, text);
    }
    if (!status)
        json->at++; /* the closing quote */
    if (status != ULP_E_LIMIT)
        return status;
    return fail(ULP_E_LIMIT, "%s: the string at byte %zu of the JSON text exceeds %zu bytes",
                quote(json->what).text, start, text->max);
}

enum ulp_status json_string(struct json *json, struct buffer *text) {
    return read_string(json, "a string", ULP_E_SCHEMA, text);
}

enum ulp_status json_member(struct json *json, struct buffer *key, bool *ret_more) {
    bool more = false;
    enum ulp_status status = next(json, '}', &more);

    if (!status && more)
        status = read_string(json, "a name in double quotes", ULP_E_JSON, key);
    if (!status && more)
        status = expect(json, ':', "':' behind a name", ULP_E_JSON);
    if (!status)
        *ret_more = more;
    return status;
}

enum ulp_status json_element(struct json *json, bool *ret_more) {
    return next(json, ']', ret_more);
}

enum ulp_status json_u64(struct json *json, uint64_t *ret_value) {
    uint64_t value = 0;
    int c;

    skip_space(json);
    if (!is_digit(peek(json)))
        return fail_expected(json, "a whole number, zero or more", ULP_E_SCHEMA);
    if (peek(json) == '0' && json->at + 1 < json->bytes && is_digit(json->text[json->at + 1]))
        return json_fail(json, ULP_E_JSON, "a number with a leading zero");
    for (; is_digit(c = peek(json)); json->at++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
            return json_fail(json, ULP_E_LIMIT, "a number above 2^64 - 1");
    }
    if (c == '.' || c == 'e' || c == 'E')
        return json_fail(json, ULP_E_SCHEMA, "expected a whole number without point or exponent");
    *ret_value = value;
    return ULP_OK;
}

static void skip_digits(struct json *json) {
    while (is_digit(peek(json)))
        json->at++;
}

static enum ulp_status skip_number(struct json *json) {
    if (peek(json) == '-')
        json->at++;
    if (!is_digit(peek(json)))
        return fail_expected(json, "a value", ULP_E_JSON);
    if (peek(json) == '0')
        json->at++;
    else
        skip_digits(json);
    if (is_digit(peek(json)))
        return json_fail(json, ULP_E_JSON, "a number with a leading zero");
    if (peek(json) == '.') {
        json->at++;
        if (!is_digit(peek(json)))
            return json_fail(json, ULP_E_JSON, "a number needs digits behind its point");
        skip_digits(json);
    }
    if ((peek(json) | 0x20) == 'e') {
        json->at++;
        if (peek(json) == '+' || peek(json) == '-')
            json->at++;
        if (!is_digit(peek(json)))
            return json_fail(json, ULP_E_JSON, "a number needs digits in its exponent");
        skip_digits(json);
    }
    return ULP_OK;
}

static enum ulp_status skip_word(struct json *json) {
    const char *word = word_here(json);

    if (!word)
        return skip_number(json);
    json->at += strlen(word);
    return ULP_OK;
}

/* Recursion is bounded by LIMIT_JSON_DEPTH, which begin() checks. */
static enum ulp_status skip_container(struct json *json, bool object, struct buffer *text) {
    bool more = true;
    enum ulp_status status = object ? json_object_begin(json) : json_array_begin(json);

    while (!status) {
        status = object ? json_member(json, text, &more) : json_element(json, &more);
        if (status || !more)
            break;
        status = json_skip(json);
    }
    return status;
}

enum ulp_status json_skip(struct json *json) {
    struct buffer text = BUFFER(json->bytes);
    enum ulp_status status;

    skip_space(json);
    switch (peek(json)) {
    case '{':
        status = skip_container(json, true, &text);
        break;
    case '[':
        status = skip_container(json, false, &text);
        break;
    case '"':
        status = json_string(json, &text);
        break;
    default:
        status = skip_word(json);
    }
    buffer_release(&text);
    return status;
}

enum ulp_status json_end(struct json *json) {
    skip_space(json);
    if (json->at != json->bytes)
        return json_fail(json, ULP_E_JSON, "something follows the end of the JSON value");
    return ULP_OK;
}

enum ulp_status json_append_string(struct buffer *out, const char *text) {
    size_t before = out->used;
    enum ulp_status status = buffer_append_text(out, "\"");

    for (; !status && *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            status = buffer_append_format(out, "\\%c", c);
        else if (c < 0x20)
            status = buffer_append_format(out, "\\u%04x", c);
        else
            status = buffer_append(out, text, 1);
    }
    if (!status)
        status = buffer_append_text(out, "\"");
    if (status)
        buffer_cut(out, before);
    return status;
}
