// SPDX-License-Identifier: Apache-2.0
#include "base/quote.h"

#include <stdio.h>
#include <string.h>

struct quoted quote(const char *text) {
    return quote_bytes(text, strlen(text));
}

struct quoted quote_bytes(const char *text, size_t length) {
    static const char cut[] = "...'";
    const size_t room = QUOTE_BYTES - sizeof cut - sizeof "\\xff";
    struct quoted out = {{0}};
    size_t at = 0;

    out.text[at++] = '\'';
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];

        if (at > room) {
            memcpy(out.text + at, cut, sizeof cut);
            return out;
        }
        if (byte >= 0x20 && byte < 0x7f && byte != '\'' && byte != '\\')
            out.text[at++] = (char)byte;
        else
            at += (size_t)snprintf(out.text + at, sizeof "\\xff", "\\x%02x", byte);
    }
    out.text[at] = '\'';
    return out;
}
