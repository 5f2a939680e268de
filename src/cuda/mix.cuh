// SPDX-License-Identifier: Apache-2.0
// Sums of the digest: of pairs of words, and delivered to the piece that they belong to.
#pragma once

#include "scan/digest_mix.h"

#include "cuda/device.cuh"

// One atomic addition per warp and lane of the sum; all threads of a warp come here.
__device__ static __forceinline__ void deliver_sum(struct ulp_sum sum, unsigned long long *lanes) {
    if (!__any_sync(ALL_LANES, (sum.lane[0] | sum.lane[1]) != 0))
        return;
    for (int lane = 0; lane < 2; lane++) {
        unsigned long long value = warp_sum((unsigned long long)sum.lane[lane]);

        if (lane_id() == 0 && value)
            atomicAdd(&lanes[lane], value);
    }
}

#define PAIRS_IN_FLIGHT 4u // 16-byte loads that a thread starts before it uses the first

__device__ static __forceinline__ struct ulp_sum add_pair(struct ulp_sum sum, uint64_t position, ulonglong2 pair) {
    sum_add(&sum, digest_mix(position, pair.x));
    sum_add(&sum, digest_mix(position + 1, pair.y));
    return sum;
}

// Pairs i, i + stride, ... below `end`; they are aligned to 16 bytes.
template <typename Index>
__device__ static __forceinline__ struct ulp_sum sum_pairs(const ulonglong2 *pairs, Index i, Index end, Index stride,
                                                           uint64_t first_word) {
    struct ulp_sum sum = {{0, 0}};

    for (; i + (PAIRS_IN_FLIGHT - 1) * stride < end; i += PAIRS_IN_FLIGHT * stride) {
        ulonglong2 loaded[PAIRS_IN_FLIGHT];

#pragma unroll
        for (unsigned k = 0; k < PAIRS_IN_FLIGHT; k++)
            loaded[k] = __ldcs(&pairs[i + k * stride]);
#pragma unroll
        for (unsigned k = 0; k < PAIRS_IN_FLIGHT; k++)
            sum = add_pair(sum, first_word + 2 * (i + k * stride), loaded[k]);
    }
    for (; i < end; i += stride)
        sum = add_pair(sum, first_word + 2 * i, pairs[i]);
    return sum;
}
