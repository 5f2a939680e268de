// SPDX-License-Identifier: Apache-2.0
/* For Intel servers since Skylake-SP and AMD since Zen 4: comparisons give bit masks directly. */
#include "base/cpu.h"
#include "scan/scan_twins.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,popcnt,bmi")))

TARGET static inline __m512i load(const uint8_t *from, unsigned vector) {
    return _mm512_loadu_si512((const void *)(from + 64u * vector));
}

TARGET static inline uint64_t mask_1(const uint8_t *a, const uint8_t *b) {
    return _mm512_cmpneq_epi8_mask(load(a, 0), load(b, 0));
}

TARGET static inline uint64_t mask_2(const uint8_t *a, const uint8_t *b) {
    uint64_t low = _mm512_cmpneq_epi16_mask(load(a, 0), load(b, 0));
    uint64_t high = _mm512_cmpneq_epi16_mask(load(a, 1), load(b, 1));

    return low | high << 32;
}

TARGET static inline uint64_t mask_4(const uint8_t *a, const uint8_t *b) {
    uint64_t mask = 0;

    for (unsigned v = 0; v < 4; v++)
        mask |= (uint64_t)_mm512_cmpneq_epi32_mask(load(a, v), load(b, v)) << (16 * v);
    return mask;
}

TARGET static inline uint64_t mask_8(const uint8_t *a, const uint8_t *b) {
    uint64_t mask = 0;

    for (unsigned v = 0; v < 8; v++)
        mask |= (uint64_t)_mm512_cmpneq_epi64_mask(load(a, v), load(b, v)) << (8 * v);
    return mask;
}

SCAN_DEFINE(TARGET, 1, SCAN_W1, mask_1)
SCAN_DEFINE(TARGET, 2, SCAN_W2, mask_2)
SCAN_DEFINE(TARGET, 4, SCAN_W4, mask_4)
SCAN_DEFINE(TARGET, 8, SCAN_W8, mask_8)

const struct scan_twin scan_avx512 = {
    "avx512",
    CPU_AVX512F | CPU_AVX512BW | CPU_POPCNT | CPU_BMI,
    SCAN_TWIN_TABLE,
};
