// SPDX-License-Identifier: Apache-2.0
// Twin: code/fixed.c. Powers in units of 2^-32, in integers: both sides must build the same tables.
#pragma once

#include "cuda/device.cuh"

#define FIXED_ONE (UINT64_C(1) << 32)

__device__ static uint64_t fixed_multiply(uint64_t a, uint64_t b) {
    if (a == FIXED_ONE)
        return b;
    return b == FIXED_ONE ? a : a * b >> 32;
}

// 2^(-x / 2048), for x up to 65535.
__device__ static uint64_t fixed_exp2_negative(uint32_t x) {
    const uint32_t steps[] = {4293513906u, 4292061009u, 4289156690u, 4283353945u, 4271771996u, 4248701964u,
                              4202935003u, 4112874773u, 3938502375u, 3611622602u, 3037000499u};
    uint64_t power = FIXED_ONE >> (x >> 11);

#pragma unroll
    for (int i = 0; i < 11; i++) {
        if (x >> i & 1)
            power = fixed_multiply(power, steps[i]);
    }
    return power;
}

__device__ static uint64_t fixed_power(uint64_t q, uint32_t n) {
    uint64_t power = FIXED_ONE;

    for (; n; n >>= 1) {
        if (n & 1)
            power = fixed_multiply(power, q);
        q = fixed_multiply(q, q);
    }
    return power;
}
