// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include "cli/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 4096u

/* Room for `bytes` more and a NUL. */
static bool reserve(struct text *text, size_t bytes) {
    size_t room = text->room ? text->room : ROOM_FIRST;
    char *data;

    if (text->out_of_memory || text->too_long)
        return false;
    if (bytes >= TEXT_BYTES_MAX - text->length) {
        text->too_long = true;
        return false;
    }
    while (room <= text->length + bytes)
        room *= 2;
    if (room == text->room)
        return true;
    data = realloc(text->data, room);
    if (!data) {
        text->out_of_memory = true;
        return false;
    }
    text->data = data;
    text->room = room;
    return true;
}

static void add_bytes(struct text *text, const char *bytes, size_t count) {
    if (!reserve(text, count))
        return;
    memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

void text_add(struct text *text, const char *words) {
    add_bytes(text, words, strlen(words));
}

void text_addf(struct text *text, const char *format, ...) {
    va_list words;
    int length;

    va_start(words, format);
    length = vsnprintf(NULL, 0, format, words);
    va_end(words);
    if (length < 0 || !reserve(text, (size_t)length))
        return;
    va_start(words, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, words);
    va_end(words);
    text->length += (size_t)length;
}

static void add_character(struct text *text, const char *character, size_t bytes) {
    switch (*character) {
    case '&':
        text_add(text, "&amp;");
        break;
    case '<':
        text_add(text, "&lt;");
        break;
    case '>':
        text_add(text, "&gt;");
        break;
    case '"':
        text_add(text, "&quot;");
        break;
    case '\'':
        text_add(text, "&#39;");
        break;
    default:
        add_bytes(text, character, bytes);
    }
}

void text_add_escaped_part(struct text *text, const char *words, size_t bytes) {
    const char *end = words + bytes;

    while (words < end && *words) {
        const size_t length = safe_character(words);

        if (length && length <= (size_t)(end - words))
            add_character(text, words, length);
        else
            text_addf(text, "\\x%02x", (unsigned char)*words);
        words += length && length <= (size_t)(end - words) ? length : 1;
    }
}

void text_add_escaped(struct text *text, const char *words) {
    text_add_escaped_part(text, words, strlen(words));
}

enum ulp_status text_status(const struct text *text) {
    if (text->out_of_memory)
        return ulp_fail(ULP_E_NOMEM, "out of memory for a page of %zu bytes", text->length);
    if (text->too_long)
        return ulp_fail(ULP_E_LIMIT, "a page would be longer than %zu MiB; ask for less of it",
                        TEXT_BYTES_MAX >> 20);
    return ULP_OK;
}

const char *text_words(const struct text *text) {
    return text->data ? text->data : "";
}

void text_release(struct text *text) {
    free(text->data);
    *text = (struct text){0};
}
