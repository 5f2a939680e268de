// SPDX-License-Identifier: Apache-2.0
/*
 * How a twin is made. An instruction-set file supplies, for each width, a function that compares 64
 * elements and returns a bit for each that differs; these macros turn it into count and collect.
 * The rest of fewer than 64 elements goes to the portable definition, so nothing is over-read.
 */
#ifndef SCAN_SCAN_TWINS_H
#define SCAN_SCAN_TWINS_H

#include "scan/scan.h"

#define SCAN_GROUP 64u

/* Index of a width in tables: 1, 2, 4, 8 bytes. */
enum scan_width { SCAN_W1, SCAN_W2, SCAN_W4, SCAN_W8, SCAN_WIDTHS };

struct scan_twin {
    uint32_t needs; /* CPU features */
    struct scan_kernels kernels[SCAN_WIDTHS];
};

extern const struct scan_twin scan_portable;
extern const struct scan_twin scan_avx2;
extern const struct scan_twin scan_avx512;
extern const struct scan_twin scan_neon;

/*
 * Gather and scatter wait for memory, one cache line per element, and the wide instructions for them
 * wait for the same lines; bench/ shows no gain, so all twins share the plain loops.
 */
#define SCAN_DECLARE_MOVES(WIDTH)                                                                  \
    void scan_gather_##WIDTH(const void *from, const uint32_t *positions, size_t n, void *values); \
    void scan_scatter_##WIDTH(void *to, const uint32_t *positions, size_t n, const void *values);
SCAN_DECLARE_MOVES(1)
SCAN_DECLARE_MOVES(2)
SCAN_DECLARE_MOVES(4)
SCAN_DECLARE_MOVES(8)

/* The kernels of the file that includes this. */
#define SCAN_TWIN_TABLE                                                                            \
    {                                                                                              \
        {count_1, collect_1, scan_gather_1, scan_scatter_1},                                       \
            {count_2, collect_2, scan_gather_2, scan_scatter_2},                                   \
            {count_4, collect_4, scan_gather_4, scan_scatter_4},                                   \
            {count_8, collect_8, scan_gather_8, scan_scatter_8},                                   \
    }

/* Far enough ahead to hide DRAM latency, near enough to stay in the first-level cache: the best of
 * 0 to 8 KiB on Zen 4. A prefetch beyond the arrays has no effect. */
#define SCAN_PREFETCH_BYTES 2048u

static inline void scan_prefetch(const uint8_t *a, const uint8_t *b, size_t group_bytes) {
    for (size_t line = 0; line < group_bytes; line += 64) {
        __builtin_prefetch(a + SCAN_PREFETCH_BYTES + line);
        __builtin_prefetch(b + SCAN_PREFETCH_BYTES + line);
    }
}

/* Groups without a change are the common case at 1 %, and groups with one change the next. */
static inline uint32_t *scan_emit(uint64_t mask, uint32_t first, uint32_t *out) {
    while (mask) {
        *out++ = first + (uint32_t)__builtin_ctzll(mask);
        mask &= mask - 1;
    }
    return out;
}

#define SCAN_DEFINE(TARGET, WIDTH, TABLE_INDEX, MASK64)                                            \
    TARGET static uint64_t count_##WIDTH(const void *va, const void *vb, size_t n) {               \
        const uint8_t *a = va, *b = vb;                                                            \
        uint64_t total = 0;                                                                        \
        size_t i = 0;                                                                              \
                                                                                                   \
        for (; i + SCAN_GROUP <= n; i += SCAN_GROUP) {                                             \
            scan_prefetch(a + i * WIDTH, b + i * WIDTH, SCAN_GROUP * WIDTH);                       \
            total += (uint64_t)__builtin_popcountll(MASK64(a + i * WIDTH, b + i * WIDTH));         \
        }                                                                                          \
        return total +                                                                             \
               scan_portable.kernels[TABLE_INDEX].count(a + i * WIDTH, b + i * WIDTH, n - i);      \
    }                                                                                              \
                                                                                                   \
    TARGET static size_t collect_##WIDTH(const void *va, const void *vb, size_t n,                 \
                                         uint32_t *positions) {                                    \
        const uint8_t *a = va, *b = vb;                                                            \
        uint32_t *out = positions;                                                                 \
        size_t i = 0, rest;                                                                        \
                                                                                                   \
        for (; i + SCAN_GROUP <= n; i += SCAN_GROUP) {                                             \
            scan_prefetch(a + i * WIDTH, b + i * WIDTH, SCAN_GROUP * WIDTH);                       \
            out = scan_emit(MASK64(a + i * WIDTH, b + i * WIDTH), (uint32_t)i, out);               \
        }                                                                                          \
        rest = scan_portable.kernels[TABLE_INDEX].collect(a + i * WIDTH, b + i * WIDTH, n - i,     \
                                                          out);                                    \
        for (size_t k = 0; k < rest; k++)                                                          \
            out[k] += (uint32_t)i;                                                                 \
        return (size_t)(out - positions) + rest;                                                   \
    }

#endif
