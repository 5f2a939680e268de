// SPDX-License-Identifier: Apache-2.0
// Normally distributed numbers, the same in every run.
#pragma once

#include <cstdint>

__device__ static uint64_t scramble(uint64_t x) {
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

__device__ static float normal(uint64_t random) {
    float u = ((float)(random >> 40) + 1) * 5.9604645e-8f, v = (float)(random & 0xffffff) * 5.9604645e-8f;

    return sqrtf(-2 * logf(u)) * cospif(2 * v);
}
