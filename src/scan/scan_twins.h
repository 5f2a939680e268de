// SPDX-License-Identifier: Apache-2.0
/*
 * How a twin is made. An instruction-set file supplies, for each width, a function that compares 64
 * elements and returns a bit for each that differs; these macros turn it into count and collect.
 * The rest of fewer than 64 elements goes to the portable definition, so nothing is over-read.
 */
#ifndef SCAN_SCAN_TWINS_H
#define SCAN_SCAN_TWINS_H

#include "scan/scan.h"

#include <string.h>

#define SCAN_GROUP 64u

/* Index of a width in tables: 1, 2, 4, 8 bytes. */
enum scan_width { SCAN_W1, SCAN_W2, SCAN_W4, SCAN_W8, SCAN_WIDTHS };

struct scan_twin {
    const char *name;
    uint32_t needs; /* CPU features */
    struct scan_kernels kernels[SCAN_WIDTHS];
};

extern const struct scan_twin scan_portable;
extern const struct scan_twin scan_avx2;
extern const struct scan_twin scan_avx512;
extern const struct scan_twin scan_neon;

/*
 * Gather and scatter wait for memory: at 1 % they take as long as reading the whole array does, and
 * neither wide instructions nor prefetching make memory faster. All twins share the plain loops.
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

/*
 * Both arrays are read from front to back, which hardware foresees by itself; asking this little
 * ahead costs nothing then, and saves a third of the time when the arrays lie a large power of two
 * apart and get into each other's way (Zen 4; 1 KiB and more made the common case slower). A
 * prefetch beyond the arrays has no effect.
 */
#define SCAN_PREFETCH_BYTES 512u

static inline void scan_prefetch(const uint8_t *a, const uint8_t *b, size_t group_bytes) {
    for (size_t line = 0; line < group_bytes; line += 64) {
        __builtin_prefetch(a + SCAN_PREFETCH_BYTES + line);
        __builtin_prefetch(b + SCAN_PREFETCH_BYTES + line);
    }
}

/*
 * Positions gather here before they are copied out, because emitting writes up to two of them
 * beyond what it counts: at 1 % a group of 64 has no, one or two changes 97 times in 100, and
 * writing two without asking is cheaper than a branch that cannot be predicted.
 */
#define SCAN_STAGE 448u

struct scan_stage {
    uint32_t *out;
    size_t used;
    uint32_t positions[SCAN_STAGE + SCAN_GROUP + 2];
};

static inline void scan_flush(struct scan_stage *stage) {
    memcpy(stage->out, stage->positions, stage->used * sizeof stage->positions[0]);
    stage->out += stage->used;
    stage->used = 0;
}

/* The place of the lowest bit; anything when there is none. */
static inline uint32_t scan_lowest(uint64_t mask, uint32_t first) {
    return first + (uint32_t)__builtin_ctzll(mask | UINT64_C(1) << 63);
}

static inline void scan_emit(struct scan_stage *stage, uint64_t mask, uint32_t first) {
    uint32_t *to = stage->positions + stage->used;

    stage->used += (size_t)__builtin_popcountll(mask);
    to[0] = scan_lowest(mask, first);
    mask &= mask - 1;
    to[1] = scan_lowest(mask, first);
    mask &= mask - 1;
    for (to += 2; __builtin_expect(mask != 0, 0); mask &= mask - 1)
        *to++ = scan_lowest(mask, first);
    if (__builtin_expect(stage->used >= SCAN_STAGE, 0))
        scan_flush(stage);
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
        struct scan_stage stage;                                                                   \
        size_t i = 0, rest;                                                                        \
                                                                                                   \
        stage.out = positions;                                                                     \
        stage.used = 0;                                                                            \
        for (; i + SCAN_GROUP <= n; i += SCAN_GROUP) {                                             \
            scan_prefetch(a + i * WIDTH, b + i * WIDTH, SCAN_GROUP * WIDTH);                       \
            scan_emit(&stage, MASK64(a + i * WIDTH, b + i * WIDTH), (uint32_t)i);                  \
        }                                                                                          \
        scan_flush(&stage);                                                                        \
        rest = scan_portable.kernels[TABLE_INDEX].collect(a + i * WIDTH, b + i * WIDTH, n - i,     \
                                                          stage.out);                              \
        for (size_t k = 0; k < rest; k++)                                                          \
            stage.out[k] += (uint32_t)i;                                                           \
        return (size_t)(stage.out - positions) + rest;                                             \
    }

#endif
