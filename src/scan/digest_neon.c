// SPDX-License-Identifier: Apache-2.0
/* For every 64-bit ARM. NEON multiplies 32 by 32 bits, so a 64-bit product is put together from
 * three of those. */
#include "scan/digest_twins.h"

#include <arm_neon.h>

#define LANES 2u

struct state {
    uint64x2_t key_a, key_b, sum_a, sum_b;
};

/* The low 64 bits of x * factor; the product of the two high halves falls out. */
static inline uint64x2_t multiply(uint64x2_t x, uint64_t factor) {
    const uint32x2_t low = vdup_n_u32((uint32_t)factor);
    const uint32x2_t high = vdup_n_u32((uint32_t)(factor >> 32));
    uint32x2_t x_low = vmovn_u64(x), x_high = vshrn_n_u64(x, 32);
    uint64x2_t cross = vmlal_u32(vmull_u32(x_low, high), x_high, low);

    return vmlal_u32(vshlq_n_u64(cross, 32), x_low, low);
}

static inline uint64x2_t keys(uint64_t start, uint64_t step, uint64_t position) {
    uint64_t key = start + position * step;

    return vcombine_u64(vcreate_u64(key), vcreate_u64(key + step));
}

static inline void mix(struct state *s, const uint8_t *from) {
    uint64x2_t x = veorq_u64(vreinterpretq_u64_u8(vld1q_u8(from)), s->key_a), a, b;

    x = veorq_u64(x, vshrq_n_u64(x, DIGEST_SHIFT_1));
    x = multiply(x, DIGEST_MULTIPLY_1);
    x = veorq_u64(x, vshrq_n_u64(x, DIGEST_SHIFT_2));
    a = multiply(veorq_u64(x, s->key_a), DIGEST_MULTIPLY_A);
    b = multiply(veorq_u64(x, s->key_b), DIGEST_MULTIPLY_B);
    s->sum_a = vaddq_u64(s->sum_a, veorq_u64(a, vshrq_n_u64(a, DIGEST_SHIFT_3)));
    s->sum_b = vaddq_u64(s->sum_b, veorq_u64(b, vshrq_n_u64(b, DIGEST_SHIFT_3)));
    s->key_a = vaddq_u64(s->key_a, vdupq_n_u64(LANES * DIGEST_KEY_A_STEP));
    s->key_b = vaddq_u64(s->key_b, vdupq_n_u64(LANES * DIGEST_KEY_B_STEP));
}

void digest_words_neon(const void *data, size_t words, uint64_t first_word, struct ulp_sum *sum) {
    const uint8_t *bytes = data;
    struct state s = {keys(DIGEST_KEY_A_START, DIGEST_KEY_A_STEP, first_word),
                      keys(DIGEST_KEY_B_START, DIGEST_KEY_B_STEP, first_word), vdupq_n_u64(0),
                      vdupq_n_u64(0)};
    size_t i = 0;

    for (; i + 4 * LANES <= words; i += 4 * LANES) {
        __builtin_prefetch(bytes + 8 * i + DIGEST_PREFETCH_BYTES);
        for (size_t v = 0; v < 4; v++)
            mix(&s, bytes + 8 * (i + v * LANES));
    }
    sum->lane[0] += vaddvq_u64(s.sum_a);
    sum->lane[1] += vaddvq_u64(s.sum_b);
    digest_words_portable(bytes + 8 * i, words - i, first_word + i, sum);
}
