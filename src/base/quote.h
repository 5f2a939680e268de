// SPDX-License-Identifier: Apache-2.0
/*
 * Text from outside, made safe to show: in single quotes, control characters and ill-formed UTF-8
 * escaped, its middle left out when it is long. The result lives until the end of the full
 * expression, so it can be used in place:
 *     fail(..., "%s", quote(name).text)
 */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stddef.h>

#define QUOTE_BYTES 160

struct quoted {
    char text[QUOTE_BYTES];
};

struct quoted quote(const char *text);
struct quoted quote_bytes(const char *text, size_t length);

#endif
