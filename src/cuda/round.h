// SPDX-License-Identifier: Apache-2.0
/*
 * FP32 rounded to fewer bits, as bit patterns: to nearest, ties to even; what is beyond the largest
 * number becomes infinity, numbers below the smallest normal one are denormal. A NaN becomes 0x7fff,
 * whatever it was. So do __float2bfloat16_rn() and __float2half_rn() on a GPU, and whoever uses them.
 * Compiled for the CPU and for GPUs: one definition, integers only.
 */
#ifndef CUDA_ROUND_H
#define CUDA_ROUND_H

#include <stdint.h>

#ifdef __CUDACC__
#define ROUND_ANYWHERE __host__ __device__
#else
#define ROUND_ANYWHERE
#endif

#define ROUND_NAN 0x7fffu

/* The bits from `shift` on, rounded to even by those below. */
ROUND_ANYWHERE static inline uint32_t round_shifted(uint32_t bits, uint32_t shift) {
    return (bits + (1u << (shift - 1)) - 1 + (bits >> shift & 1)) >> shift;
}

ROUND_ANYWHERE static inline uint16_t round_to_bf16(uint32_t bits) {
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return ROUND_NAN;
    return (uint16_t)round_shifted(bits, 16);
}

ROUND_ANYWHERE static inline uint16_t round_to_f16(uint32_t bits) {
    const uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;

    if (size > 0x7f800000u)
        return ROUND_NAN;
    if (size >= 0x477ff000u) /* 65520, half-way to what would be the next number */
        return (uint16_t)(sign | 0x7c00u);
    if (size >= 0x38800000u) /* 2^-14: from here on only the bias of the exponent differs */
        return (uint16_t)(sign | round_shifted(size - 0x38000000u, 13));
    if (size < 0x33000000u) /* 2^-25, half of the smallest number */
        return (uint16_t)sign;
    return (uint16_t)(sign | round_shifted((size & 0x7fffffu) | 0x800000u, 126 - (size >> 23)));
}

#endif
