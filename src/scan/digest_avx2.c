// SPDX-License-Identifier: Apache-2.0
/* For Intel since Haswell and AMD since Zen. AVX2 multiplies only 32 by 32 bits, so a 64-bit
 * product is put together from three of those. */
#include "scan/digest_twins.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))
#define LANES 4u

struct state {
    __m256i key_a, key_b, sum_a, sum_b;
};

TARGET static inline __m256i constant(uint64_t value) {
    return _mm256_set1_epi64x((long long)value);
}

/* The low 64 bits of x * factor; the product of the two high halves falls out. */
TARGET static inline __m256i multiply(__m256i x, uint64_t factor) {
    const __m256i low = constant(factor & 0xffffffff), high = constant(factor >> 32);
    __m256i cross = _mm256_add_epi64(_mm256_mul_epu32(x, high),
                                     _mm256_mul_epu32(_mm256_srli_epi64(x, 32), low));

    return _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64(cross, 32));
}

TARGET static inline __m256i keys(uint64_t start, uint64_t step, uint64_t position) {
    uint64_t key = start + position * step;

    return _mm256_set_epi64x((long long)(key + 3 * step), (long long)(key + 2 * step),
                             (long long)(key + step), (long long)key);
}

TARGET static inline void mix(struct state *s, const uint8_t *from) {
    __m256i word = _mm256_loadu_si256((const __m256i *)(const void *)from);
    __m256i x = _mm256_xor_si256(word, s->key_a), a, b;

    x = _mm256_xor_si256(x, _mm256_srli_epi64(x, DIGEST_SHIFT_1));
    x = multiply(x, DIGEST_MULTIPLY_1);
    x = _mm256_xor_si256(x, _mm256_srli_epi64(x, DIGEST_SHIFT_2));
    a = multiply(_mm256_xor_si256(x, s->key_a), DIGEST_MULTIPLY_A);
    b = multiply(_mm256_xor_si256(x, s->key_b), DIGEST_MULTIPLY_B);
    a = _mm256_xor_si256(a, _mm256_srli_epi64(a, DIGEST_SHIFT_3));
    b = _mm256_xor_si256(b, _mm256_srli_epi64(b, DIGEST_SHIFT_3));
    s->sum_a = _mm256_add_epi64(s->sum_a, a);
    s->sum_b = _mm256_add_epi64(s->sum_b, b);
    s->key_a = _mm256_add_epi64(s->key_a, constant(LANES * DIGEST_KEY_A_STEP));
    s->key_b = _mm256_add_epi64(s->key_b, constant(LANES * DIGEST_KEY_B_STEP));
}

TARGET static inline uint64_t total(__m256i lanes) {
    uint64_t lane[LANES];

    _mm256_storeu_si256((__m256i *)(void *)lane, lanes);
    return lane[0] + lane[1] + lane[2] + lane[3];
}

TARGET void digest_words_avx2(const void *data, size_t words, uint64_t first_word,
                              struct ulp_sum *sum) {
    const uint8_t *bytes = data;
    struct state s = {keys(DIGEST_KEY_A_START, DIGEST_KEY_A_STEP, first_word),
                      keys(DIGEST_KEY_B_START, DIGEST_KEY_B_STEP, first_word),
                      _mm256_setzero_si256(), _mm256_setzero_si256()};
    size_t i = 0;

    for (; i + 2 * LANES <= words; i += 2 * LANES) {
        __builtin_prefetch(bytes + 8 * i + DIGEST_PREFETCH_BYTES);
        mix(&s, bytes + 8 * i);
        mix(&s, bytes + 8 * (i + LANES));
    }
    sum->lane[0] += total(s.sum_a);
    sum->lane[1] += total(s.sum_b);
    digest_words_portable(bytes + 8 * i, words - i, first_word + i, sum);
}
