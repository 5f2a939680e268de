// SPDX-License-Identifier: Apache-2.0
#include "sync/telling.h"

#include "base/json.h"
#include "base/quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(LIMIT_TOLD_LINE_BYTES == ULP_TOLD_LINE_BYTES_MAX, "one limit, two names");
_Static_assert(LIMIT_TELLER_NAME_BYTES == ULP_TELLER_NAME_BYTES_MAX, "one limit, two names");

#define PATH_BYTES_MAX 200u

/* ---- names ---- */

enum ulp_status teller_name_check(const char *name) {
    if (strchr(name, '/') || strlen(name) > LIMIT_TELLER_NAME_BYTES)
        return fail(ULP_E_NAME,
                    "%s is not the name of a teller: give up to %u letters, digits, '.', '-', '_'",
                    quote(name).text, LIMIT_TELLER_NAME_BYTES);
    return key_check(name);
}

void told_prefix(const char *run, const char *name, char key[ULP_KEY_BYTES_MAX + 1]) {
    snprintf(key, ULP_KEY_BYTES_MAX, "%s/told/%s%s", run, name ? name : "", name ? "/" : "");
}

void told_key(const char *run, const char *name, uint32_t number, char key[ULP_KEY_BYTES_MAX + 1]) {
    snprintf(key, ULP_KEY_BYTES_MAX, "%s/told/%s/%08u", run, name, number);
}

uint32_t told_number(const char *digits) {
    if (strlen(digits) != TOLD_NUMBER_DIGITS || strspn(digits, "0123456789") != TOLD_NUMBER_DIGITS)
        return 0;
    return (uint32_t)strtoul(digits, NULL, 10);
}

/* ---- lines ---- */

struct walking {
    struct json json;
    ulp_told_value value; /* NULL: the line is only checked */
    void *user;
    struct buffer key, text;
    char path[PATH_BYTES_MAX + 1];
};

/* Makes `path`, whose first `length` bytes lead to the object, lead to the member; or says that it
 * gets too long. */
static bool extend_path(struct walking *w, size_t length, size_t *ret_length) {
    const size_t dot = length ? 1 : 0, more = w->key.used;

    if (length + dot + more > PATH_BYTES_MAX)
        return false;
    if (dot)
        w->path[length] = '.';
    memcpy(w->path + length + dot, buffer_text(&w->key), more + 1);
    *ret_length = length + dot + more;
    return true;
}

static enum ulp_status walk_single(struct walking *w, bool is_text) {
    const size_t start = w->json.at;
    enum ulp_status status;

    buffer_clear(&w->text);
    if (is_text) {
        status = json_string(&w->json, &w->text);
    } else {
        status = json_skip(&w->json);
        if (!status)
            status = buffer_append(&w->text, w->json.text + start, w->json.at - start);
    }
    if (!status && w->value)
        w->value(w->user, w->path, buffer_text(&w->text), is_text);
    return status;
}

/* Recursion is bounded by LIMIT_JSON_DEPTH. */
static enum ulp_status walk_object(struct walking *w, size_t path_length) {
    enum ulp_status status = json_object_begin(&w->json);
    bool more = true;

    while (!status && !(status = json_member(&w->json, &w->key, &more)) && more) {
        const int first = json_peek(&w->json);
        size_t length = 0;

        if (first == '[' || !extend_path(w, path_length, &length))
            status = json_skip(&w->json);
        else if (first == '{')
            status = walk_object(w, length);
        else
            status = walk_single(w, first == '"');
    }
    return status;
}

static enum ulp_status walk_line(const char *line, size_t bytes, ulp_told_value value, void *user) {
    struct walking w = {.value = value,
                        .user = user,
                        .key = BUFFER(LIMIT_TOLD_LINE_BYTES),
                        .text = BUFFER(LIMIT_TOLD_LINE_BYTES)};
    enum ulp_status status;

    if (bytes > LIMIT_TOLD_LINE_BYTES)
        return fail(ULP_E_LIMIT, "a line of %zu bytes cannot be told: the most is %u", bytes,
                    LIMIT_TOLD_LINE_BYTES);
    if (memchr(line, '\n', bytes) || memchr(line, '\r', bytes))
        return fail(ULP_E_JSON, "what is told must stand on one line");
    json_init(&w.json, line, bytes, "a line that is told");
    status = walk_object(&w, 0);
    if (!status)
        status = json_end(&w.json);
    buffer_release(&w.key);
    buffer_release(&w.text);
    return status;
}

enum ulp_status told_line_check(const char *line, size_t bytes) {
    return walk_line(line, bytes, NULL, NULL);
}

enum ulp_status told_line_values(const char *line, ulp_told_value value, void *user) {
    return walk_line(line, strlen(line), value, user);
}
