// SPDX-License-Identifier: Apache-2.0
/* Little-endian integers at any alignment. Compilers turn each into one move on x86 and ARM. */
#ifndef BASE_ENDIAN_H
#define BASE_ENDIAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t load_le64(const void *from) {
    uint64_t value;

    memcpy(&value, from, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static inline void store_le64(void *to, uint64_t value) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    memcpy(to, &value, sizeof value);
}

/* The first `bytes` (1 to 8) bytes as a word, the rest zero. */
static inline uint64_t load_le_partial(const void *from, size_t bytes) {
    const uint8_t *byte = from;
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)byte[i] << (8 * i);
    return value;
}

static inline uint32_t load_be32(const void *from) {
    const uint8_t *byte = from;

    return (uint32_t)byte[0] << 24 | (uint32_t)byte[1] << 16 | (uint32_t)byte[2] << 8 | byte[3];
}

static inline void store_be32(void *to, uint32_t value) {
    uint8_t *byte = to;

    byte[0] = (uint8_t)(value >> 24);
    byte[1] = (uint8_t)(value >> 16);
    byte[2] = (uint8_t)(value >> 8);
    byte[3] = (uint8_t)value;
}

#endif
