// SPDX-License-Identifier: Apache-2.0
/* The definition: plain C, one element after the other. */
#include "scan/scan_twins.h"

#include <string.h>

/* Elements may stand at any address, so they are loaded by memcpy, which costs one move. */
#define DEFINE_WIDTH(WIDTH, TYPE)                                                                  \
    static TYPE load_##WIDTH(const void *from, size_t index) {                                     \
        TYPE value;                                                                                \
                                                                                                   \
        memcpy(&value, (const uint8_t *)from + index * WIDTH, WIDTH);                              \
        return value;                                                                              \
    }                                                                                              \
                                                                                                   \
    static uint64_t count_##WIDTH(const void *a, const void *b, size_t n) {                        \
        uint64_t total = 0;                                                                        \
                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            total += load_##WIDTH(a, i) != load_##WIDTH(b, i);                                     \
        return total;                                                                              \
    }                                                                                              \
                                                                                                   \
    static size_t collect_##WIDTH(const void *a, const void *b, size_t n, uint32_t *positions) {   \
        size_t found = 0;                                                                          \
                                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            if (load_##WIDTH(a, i) != load_##WIDTH(b, i))                                          \
                positions[found++] = (uint32_t)i;                                                  \
        }                                                                                          \
        return found;                                                                              \
    }                                                                                              \
                                                                                                   \
    void scan_gather_##WIDTH(const void *from, const uint32_t *positions, size_t n,                \
                             void *values) {                                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            TYPE value = load_##WIDTH(from, positions[i]);                                         \
                                                                                                   \
            memcpy((uint8_t *)values + i * WIDTH, &value, WIDTH);                                  \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    void scan_scatter_##WIDTH(void *to, const uint32_t *positions, size_t n, const void *values) { \
        for (size_t i = 0; i < n; i++) {                                                           \
            TYPE value = load_##WIDTH(values, i);                                                  \
                                                                                                   \
            memcpy((uint8_t *)to + (size_t)positions[i] * WIDTH, &value, WIDTH);                   \
        }                                                                                          \
    }

DEFINE_WIDTH(1, uint8_t)
DEFINE_WIDTH(2, uint16_t)
DEFINE_WIDTH(4, uint32_t)
DEFINE_WIDTH(8, uint64_t)

const struct scan_twin scan_portable = {
    "portable",
    0,
    SCAN_TWIN_TABLE,
};
