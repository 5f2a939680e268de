// SPDX-License-Identifier: Apache-2.0
#include "base/quote.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Of text that is too long both ends stay: paths tell most by their last part. */
#define HEAD_BYTES 60u
#define TAIL_BYTES 80u
#define CUT "..."

_Static_assert(HEAD_BYTES + TAIL_BYTES + sizeof CUT + 2 <= QUOTE_BYTES, "plain text fits");

struct quoting {
    struct quoted out;
    size_t used;
    bool full;
};

static void add(struct quoting *quoting, const char *text, size_t bytes) {
    const size_t room = QUOTE_BYTES - sizeof CUT - 1; /* for the cut and the closing quote */

    if (quoting->full)
        return;
    if (quoting->used + bytes > room) {
        quoting->full = true;
        text = CUT;
        bytes = sizeof CUT - 1;
    }
    memcpy(quoting->out.text + quoting->used, text, bytes);
    quoting->used += bytes;
}

/* Control characters, of C0, C1 and DEL, are escaped, and so is what would end the quotation. */
static size_t plain_length(const char *text, size_t left) {
    const uint8_t *s = (const uint8_t *)text;
    size_t length = utf8_length(s, left);

    if (s[0] < 0x20 || s[0] == 0x7f || s[0] == '\'' || s[0] == '\\' ||
        (s[0] == 0xc2 && length == 2 && s[1] < 0xa0))
        return 0;
    return length;
}

static void add_escaped(struct quoting *quoting, const char *text, size_t length) {
    for (size_t i = 0; i < length;) {
        size_t plain = plain_length(text + i, length - i);
        char escaped[sizeof "\\xff"];

        if (plain) {
            add(quoting, text + i, plain);
        } else {
            snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned char)text[i]);
            add(quoting, escaped, strlen(escaped));
        }
        i += plain ? plain : 1;
    }
}

struct quoted quote(const char *text) {
    return quote_bytes(text, strlen(text));
}

struct quoted quote_bytes(const char *text, size_t length) {
    struct quoting quoting = {.out = {"'"}, .used = 1};

    if (length <= HEAD_BYTES + TAIL_BYTES) {
        add_escaped(&quoting, text, length);
    } else {
        add_escaped(&quoting, text, HEAD_BYTES);
        add(&quoting, CUT, sizeof CUT - 1);
        add_escaped(&quoting, text + length - TAIL_BYTES, TAIL_BYTES);
    }
    quoting.out.text[quoting.used] = '\'';
    return quoting.out;
}
