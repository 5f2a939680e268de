// SPDX-License-Identifier: Apache-2.0
/*
 * The mix of one word: about twenty 64-bit operations, three of them multiplications, which is some
 * forty operations on a machine of 32 bits such as a GPU.
 *
 * Two rounds of xor-shift and multiply, as in the well-known finalisers of 64-bit hashes, spread
 * every bit of the word over all bits of the result; the first round is shared by both lanes. The
 * position enters in front of both rounds: were it only in front of the first, a word that moves
 * would be cancelled by just the difference of the two keys.
 *
 * The constants are odd, with about half of their bits set, and carry no other meaning: they are
 * the fractional parts of square roots and cube roots of small primes, times 2^64, with the lowest
 * bit set. tests/digest/test_mixing.c tests what they are for.
 */
#ifndef SCAN_DIGEST_MIX_H
#define SCAN_DIGEST_MIX_H

#include <stdint.h>
#include <ulpsync/model.h>

#define DIGEST_KEY_A_START UINT64_C(0x6a09e667f3bcc909) /* sqrt 2 */
#define DIGEST_KEY_A_STEP UINT64_C(0xbb67ae8584caa73b)  /* sqrt 3 */
#define DIGEST_KEY_B_START UINT64_C(0x3c6ef372fe94f82b) /* sqrt 5 */
#define DIGEST_KEY_B_STEP UINT64_C(0xa54ff53a5f1d36f1)  /* sqrt 7 */
#define DIGEST_MULTIPLY_1 UINT64_C(0x428a2f98d728ae23)  /* cbrt 2 */
#define DIGEST_MULTIPLY_A UINT64_C(0x7137449123ef65cd)  /* cbrt 3 */
#define DIGEST_MULTIPLY_B UINT64_C(0xb5c0fbcfec4d3b2f)  /* cbrt 5 */
#define DIGEST_SHIFT_1 32
#define DIGEST_SHIFT_2 29
#define DIGEST_SHIFT_3 32

/* The GPU kernels compile these very lines. */
#ifdef __CUDACC__
#define DIGEST_INLINE __host__ __device__ static inline
#else
#define DIGEST_INLINE static inline
#endif

DIGEST_INLINE struct ulp_sum digest_mix(uint64_t position, uint64_t word) {
    uint64_t key_a = DIGEST_KEY_A_START + position * DIGEST_KEY_A_STEP;
    uint64_t key_b = DIGEST_KEY_B_START + position * DIGEST_KEY_B_STEP;
    uint64_t x = word ^ key_a, a, b;
    struct ulp_sum mix;

    x ^= x >> DIGEST_SHIFT_1;
    x *= DIGEST_MULTIPLY_1;
    x ^= x >> DIGEST_SHIFT_2;
    a = (x ^ key_a) * DIGEST_MULTIPLY_A;
    b = (x ^ key_b) * DIGEST_MULTIPLY_B;
    a ^= a >> DIGEST_SHIFT_3;
    b ^= b >> DIGEST_SHIFT_3;
    mix.lane[0] = a;
    mix.lane[1] = b;
    return mix;
}

DIGEST_INLINE void sum_add(struct ulp_sum *sum, struct ulp_sum mix) {
    sum->lane[0] += mix.lane[0];
    sum->lane[1] += mix.lane[1];
}

DIGEST_INLINE void sum_subtract(struct ulp_sum *sum, struct ulp_sum mix) {
    sum->lane[0] -= mix.lane[0];
    sum->lane[1] -= mix.lane[1];
}

#endif
