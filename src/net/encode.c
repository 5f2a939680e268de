// SPDX-License-Identifier: Apache-2.0
#include "net/encode.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789ABCDEF";

static bool stays(char byte) {
    return strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", byte);
}

enum ulp_status encode_percent(struct buffer *into, const char *text, enum encode_slashes slashes) {
    enum ulp_status status = ULP_OK;

    for (; !status && *text; text++) {
        const unsigned byte = (unsigned char)*text;
        const char coded[3] = {'%', digits[byte >> 4], digits[byte & 15]};

        if (stays(*text) || (*text == '/' && slashes == KEEP_SLASHES))
            status = buffer_append(into, text, 1);
        else
            status = buffer_append(into, coded, sizeof coded);
    }
    return status;
}

/* Names are plain words, so their order is that of what they are encoded to. */
static int by_name(const void *a, const void *b) {
    return strcmp(((const struct query_pair *)a)->name, ((const struct query_pair *)b)->name);
}

enum ulp_status encode_query(struct buffer *into, struct query_pair *pairs, size_t count) {
    enum ulp_status status = ULP_OK;

    if (count)
        qsort(pairs, count, sizeof *pairs, by_name);
    for (size_t i = 0; !status && i < count; i++) {
        if (i)
            status = buffer_append_text(into, "&");
        if (!status)
            status = encode_percent(into, pairs[i].name, ENCODE_SLASHES);
        if (!status)
            status = buffer_append_text(into, "=");
        if (!status)
            status = encode_percent(into, pairs[i].value, ENCODE_SLASHES);
    }
    return status;
}

static int digit(char byte) {
    const char *upper = byte ? strchr(digits, byte) : NULL;

    if (upper)
        return (int)(upper - digits);
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

bool decode_percent(char *text, size_t length, size_t *ret_length) {
    size_t to = 0;

    for (size_t from = 0; from < length; from++) {
        int high, low;

        if (text[from] != '%') {
            text[to++] = text[from];
            continue;
        }
        if (length - from < 3)
            return false;
        high = digit(text[from + 1]);
        low = digit(text[from + 2]);
        if (high < 0 || low < 0 || !(high | low))
            return false;
        text[to++] = (char)(high << 4 | low);
        from += 2;
    }
    *ret_length = to;
    return true;
}
