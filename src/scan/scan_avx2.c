// SPDX-License-Identifier: Apache-2.0
/* For Intel since Haswell and AMD since Zen: equal bytes are found, then packed to one bit each. */
#include "base/cpu.h"
#include "scan/scan_twins.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,popcnt,bmi")))

TARGET static inline __m256i load(const uint8_t *from, unsigned vector) {
    return _mm256_loadu_si256((const __m256i *)(const void *)(from + 32u * vector));
}

/* One bit per byte of the vector. */
TARGET static inline uint64_t bits(__m256i equal) {
    return (uint32_t)~_mm256_movemask_epi8(equal);
}

TARGET static inline __m256i equal_2(const uint8_t *a, const uint8_t *b, unsigned v) {
    return _mm256_cmpeq_epi16(load(a, v), load(b, v));
}

TARGET static inline __m256i equal_4(const uint8_t *a, const uint8_t *b, unsigned v) {
    return _mm256_cmpeq_epi32(load(a, v), load(b, v));
}

/* Packing works within 128-bit halves; the permutation puts the quarters back into order. */
TARGET static inline __m256i pack_2_to_1(__m256i low, __m256i high) {
    return _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
}

TARGET static inline __m256i pack_4_to_2(__m256i low, __m256i high) {
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
}

TARGET static inline uint64_t mask_1(const uint8_t *a, const uint8_t *b) {
    uint64_t low = bits(_mm256_cmpeq_epi8(load(a, 0), load(b, 0)));
    uint64_t high = bits(_mm256_cmpeq_epi8(load(a, 1), load(b, 1)));

    return low | high << 32;
}

TARGET static inline uint64_t mask_2(const uint8_t *a, const uint8_t *b) {
    uint64_t low = bits(pack_2_to_1(equal_2(a, b, 0), equal_2(a, b, 1)));
    uint64_t high = bits(pack_2_to_1(equal_2(a, b, 2), equal_2(a, b, 3)));

    return low | high << 32;
}

TARGET static inline uint64_t half_mask_4(const uint8_t *a, const uint8_t *b) {
    return bits(pack_2_to_1(pack_4_to_2(equal_4(a, b, 0), equal_4(a, b, 1)),
                            pack_4_to_2(equal_4(a, b, 2), equal_4(a, b, 3))));
}

TARGET static inline uint64_t mask_4(const uint8_t *a, const uint8_t *b) {
    return half_mask_4(a, b) | half_mask_4(a + 128, b + 128) << 32;
}

TARGET static inline uint64_t mask_8(const uint8_t *a, const uint8_t *b) {
    uint64_t mask = 0;

    for (unsigned v = 0; v < 16; v++) {
        __m256i equal = _mm256_cmpeq_epi64(load(a, v), load(b, v));
        unsigned same = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(equal));

        mask |= (uint64_t)(~same & 15u) << (4 * v);
    }
    return mask;
}

SCAN_DEFINE(TARGET, 1, SCAN_W1, mask_1)
SCAN_DEFINE(TARGET, 2, SCAN_W2, mask_2)
SCAN_DEFINE(TARGET, 4, SCAN_W4, mask_4)
SCAN_DEFINE(TARGET, 8, SCAN_W8, mask_8)

const struct scan_twin scan_avx2 = {
    "avx2",
    CPU_AVX2 | CPU_POPCNT | CPU_BMI,
    SCAN_TWIN_TABLE,
};
