// SPDX-License-Identifier: Apache-2.0
/*
 * Rounding of binary32 to the narrower formats, to nearest, ties to even, on bit patterns alone:
 * the same result on every machine, and loops over these functions vectorise. For finite values
 * inside the range of the narrow format, which weights are; infinities and NaNs are not handled.
 */

#ifndef ULPSYNC_SYNTH_FLOAT_BITS_H
#define ULPSYNC_SYNTH_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/*
 * Drops the low bits of a pattern. Half an ulp less one is added first, and one more if the kept
 * part is odd, so that a tie goes to the even neighbour. A carry runs into the exponent, as it
 * should.
 */
static inline uint32_t bits_round_off(uint32_t bits, unsigned dropped) {
    uint32_t odd = (bits >> dropped) & 1u;
    return (bits + (1u << (dropped - 1)) - 1u + odd) >> dropped;
}

static inline uint16_t bf16_from_float(float value) {
    return (uint16_t)bits_round_off(float_to_bits(value), 16);
}

static inline float bf16_to_float(uint16_t bf16) {
    return float_from_bits((uint32_t)bf16 << 16);
}

/*
 * binary16 has exponent bias 15 against 127, and 10 bits of mantissa against 23. Below 2^-14 it is
 * subnormal: a multiple of 2^-24. Binary32 numbers in [0.5, 1) have just that ulp, so adding 0.5 to
 * a magnitude rounds it there, and the difference of the patterns is the multiple.
 */
static inline uint16_t f16_from_float(float value) {
    uint32_t bits = float_to_bits(value);
    uint32_t sign = bits >> 31;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = bits_round_off(magnitude, 13) - ((127u - 15u) << 10);
    uint32_t subnormal = float_to_bits(float_from_bits(magnitude) + 0.5f) - float_to_bits(0.5f);
    uint32_t is_normal = magnitude >= (127u - 14u) << 23;

    return (uint16_t)(sign << 15 | (is_normal ? normal : subnormal));
}

/*
 * 2^-24 times the integer for a subnormal; else the fields moved to their places and the bias
 * changed.
 */
static inline float f16_to_float(uint16_t f16) {
    uint32_t sign = (uint32_t)f16 >> 15;
    uint32_t magnitude = (uint32_t)f16 & 0x7fffu;
    uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
    uint32_t subnormal = float_to_bits((float)(int32_t)magnitude * 0x1p-24f);

    return float_from_bits(sign << 31 | (magnitude >= 1u << 10 ? normal : subnormal));
}

#endif
