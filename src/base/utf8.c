// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <stdint.h>

/* The ranges are those of the Unicode standard, table 3-7. */
size_t utf8_length(const uint8_t *s, size_t left) {
    uint8_t low = 0x80, high = 0xbf;
    size_t length;

    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (length > left)
        return 0;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if (s[i] < 0x80 || s[i] > 0xbf)
            return 0;
    }
    return length;
}

bool utf8_valid(const char *text, size_t bytes) {
    size_t at = 0;

    while (at < bytes) {
        size_t length = utf8_length((const uint8_t *)text + at, bytes - at);

        if (!length)
            return false;
        at += length;
    }
    return true;
}
