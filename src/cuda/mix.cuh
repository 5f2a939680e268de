// SPDX-License-Identifier: Apache-2.0
// Sums of the digest, delivered to the piece that they belong to.
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
