// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_WORD_H
#define BASE_WORD_H

#include <stdint.h>

/* The machine word, in bytes, that elements of this many bits are compared and aligned as: 8, 4, 2
 * or 1. Packed elements (4 or 6 bits) count as bytes. */
static inline unsigned word_bytes_of(uint32_t bits) {
    return bits % 64 == 0 ? 8 : bits % 32 == 0 ? 4 : bits % 16 == 0 ? 2 : 1;
}

#endif
