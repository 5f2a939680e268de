// SPDX-License-Identifier: Apache-2.0
/* For Intel servers since Skylake-SP and AMD since Zen 4, whose AVX-512DQ multiplies 64-bit lanes.
 * */
#include "scan/digest_twins.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512dq")))
#define LANES 8u

/* Keys of eight consecutive positions, and the running sums. */
struct state {
    __m512i key_a, key_b, sum_a, sum_b;
};

TARGET static inline __m512i constant(uint64_t value) {
    return _mm512_set1_epi64((long long)value);
}

TARGET static inline __m512i keys(uint64_t start, uint64_t step, uint64_t position) {
    const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);

    return _mm512_add_epi64(constant(start + position * step),
                            _mm512_mullo_epi64(lane, constant(step)));
}

TARGET static inline __m512i xor3(__m512i x, __m512i y, __m512i z) {
    return _mm512_ternarylogic_epi64(x, y, z, 0x96);
}

struct mixed {
    __m512i a, b;
};

TARGET static inline struct mixed mix_words(__m512i words, __m512i key_a, __m512i key_b) {
    __m512i x = _mm512_xor_si512(words, key_a), shifted, a, b;

    x = _mm512_xor_si512(x, _mm512_srli_epi64(x, DIGEST_SHIFT_1));
    x = _mm512_mullo_epi64(x, constant(DIGEST_MULTIPLY_1));
    shifted = _mm512_srli_epi64(x, DIGEST_SHIFT_2);
    a = _mm512_mullo_epi64(xor3(x, shifted, key_a), constant(DIGEST_MULTIPLY_A));
    b = _mm512_mullo_epi64(xor3(x, shifted, key_b), constant(DIGEST_MULTIPLY_B));
    return (struct mixed){_mm512_xor_si512(a, _mm512_srli_epi64(a, DIGEST_SHIFT_3)),
                          _mm512_xor_si512(b, _mm512_srli_epi64(b, DIGEST_SHIFT_3))};
}

TARGET static inline void mix(struct state *s, const uint8_t *from) {
    struct mixed mixed = mix_words(_mm512_loadu_si512((const void *)from), s->key_a, s->key_b);

    s->sum_a = _mm512_add_epi64(s->sum_a, mixed.a);
    s->sum_b = _mm512_add_epi64(s->sum_b, mixed.b);
    s->key_a = _mm512_add_epi64(s->key_a, constant(LANES * DIGEST_KEY_A_STEP));
    s->key_b = _mm512_add_epi64(s->key_b, constant(LANES * DIGEST_KEY_B_STEP));
}

/* Unsigned: the compiler's own reduction adds signed numbers, which must not overflow. */
TARGET static inline uint64_t total(__m512i lanes) {
    uint64_t lane[LANES], sum = 0;

    _mm512_storeu_si512(lane, lanes);
    for (unsigned i = 0; i < LANES; i++)
        sum += lane[i];
    return sum;
}

TARGET void digest_words_avx512(const void *data, size_t words, uint64_t first_word,
                                struct ulp_sum *sum) {
    const uint8_t *bytes = data;
    struct state s = {keys(DIGEST_KEY_A_START, DIGEST_KEY_A_STEP, first_word),
                      keys(DIGEST_KEY_B_START, DIGEST_KEY_B_STEP, first_word),
                      _mm512_setzero_si512(), _mm512_setzero_si512()};
    size_t i = 0;

    for (; i + LANES <= words; i += LANES) {
        __builtin_prefetch(bytes + 8 * i + DIGEST_PREFETCH_BYTES);
        mix(&s, bytes + 8 * i);
    }
    sum->lane[0] += total(s.sum_a);
    sum->lane[1] += total(s.sum_b);
    digest_words_portable(bytes + 8 * i, words - i, first_word + i, sum);
}

TARGET void digest_changes_avx512(const struct word_changes *changes, uint64_t first_word,
                                  struct ulp_sum *sum) {
    __m512i sum_a = _mm512_setzero_si512(), sum_b = sum_a;

    for (size_t i = 0; i < changes->count; i += LANES) {
        __m256i index = _mm256_loadu_si256((const __m256i *)(const void *)&changes->index[i]);
        __m512i position = _mm512_add_epi64(_mm512_cvtepu32_epi64(index), constant(first_word));
        __m512i key_a = _mm512_mullo_epi64(position, constant(DIGEST_KEY_A_STEP));
        __m512i key_b = _mm512_mullo_epi64(position, constant(DIGEST_KEY_B_STEP));
        struct mixed old, new;

        key_a = _mm512_add_epi64(key_a, constant(DIGEST_KEY_A_START));
        key_b = _mm512_add_epi64(key_b, constant(DIGEST_KEY_B_START));
        old = mix_words(_mm512_loadu_si512(&changes->old[i]), key_a, key_b);
        new = mix_words(_mm512_loadu_si512(&changes->new[i]), key_a, key_b);
        sum_a = _mm512_add_epi64(sum_a, _mm512_sub_epi64(new.a, old.a));
        sum_b = _mm512_add_epi64(sum_b, _mm512_sub_epi64(new.b, old.b));
    }
    sum->lane[0] += total(sum_a);
    sum->lane[1] += total(sum_b);
}
