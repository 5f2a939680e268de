// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed UTF-8 sequence that starts at `s` (`left` >= 1 bytes), or 0. */
size_t utf8_length(const uint8_t *s, size_t left);

bool utf8_valid(const char *text, size_t bytes);

#endif
