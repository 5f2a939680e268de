// SPDX-License-Identifier: Apache-2.0
// Twin: scan/digest_portable.c. Each thread walks the words with a fixed stride, so that loads of a
// warp are contiguous, and keeps its own two lanes; addition does not care about order.
#include "cuda/digest.h"

#include "scan/digest_mix.h"

#include "cuda/device.cuh"
#include "cuda/status.cuh"

#define THREADS 256
#define BLOCKS_PER_PROCESSOR 8
#define PAIRS_IN_FLIGHT 4 // 16-byte loads that a thread starts before it uses the first

__device__ static ulp_sum add(ulp_sum sum, ulp_sum mix) {
    sum_add(&sum, mix);
    return sum;
}

__device__ static ulp_sum mix_pair(ulp_sum sum, uint64_t position, ulonglong2 pair) {
    return add(add(sum, digest_mix(position, pair.x)), digest_mix(position + 1, pair.y));
}

// One value per warp, then one atomic addition per warp and lane.
__device__ static void deliver(ulp_sum sum, unsigned long long *lanes) {
    for (int lane = 0; lane < 2; lane++) {
        unsigned long long value = sum.lane[lane];

        for (int offset = 16; offset > 0; offset /= 2)
            value += __shfl_down_sync(0xffffffffu, value, offset);
        if (threadIdx.x % 32 == 0)
            atomicAdd(&lanes[lane], value);
    }
}

// `pairs` must be 16-byte aligned.
__global__ static void __launch_bounds__(THREADS)
    digest_pairs(const ulonglong2 *pairs, size_t count, uint64_t first_word,
                 unsigned long long *lanes) {
    const size_t stride = (size_t)gridDim.x * THREADS;
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    ulp_sum sum = {{0, 0}};

    for (; i + (PAIRS_IN_FLIGHT - 1) * stride < count; i += PAIRS_IN_FLIGHT * stride) {
        ulonglong2 loaded[PAIRS_IN_FLIGHT];

#pragma unroll
        for (int k = 0; k < PAIRS_IN_FLIGHT; k++)
            loaded[k] = __ldcs(&pairs[i + k * stride]);
#pragma unroll
        for (int k = 0; k < PAIRS_IN_FLIGHT; k++)
            sum = mix_pair(sum, first_word + 2 * (i + k * stride), loaded[k]);
    }
    for (; i < count; i += stride)
        sum = mix_pair(sum, first_word + 2 * i, pairs[i]);
    deliver(sum, lanes);
}

// The odd word in front of or behind the pairs.
__global__ static void digest_single(const unsigned long long *word, uint64_t position,
                                     unsigned long long *lanes) {
    ulp_sum mix = digest_mix(position, *word);

    atomicAdd(&lanes[0], (unsigned long long)mix.lane[0]);
    atomicAdd(&lanes[1], (unsigned long long)mix.lane[1]);
}

static int processors(void) {
    int device = 0, count = 1;

    if (cudaGetDevice(&device) == cudaSuccess)
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    return count;
}

extern "C" enum ulp_status cuda_digest_words(const void *device_words, size_t words,
                                             uint64_t first_word, uint64_t *device_sum,
                                             void *stream) {
    const unsigned long long *word = (const unsigned long long *)device_words;
    unsigned long long *lanes = (unsigned long long *)device_sum;
    cudaStream_t on = (cudaStream_t)stream;

    if (words && (uintptr_t)word % 16 != 0) {
        launch(digest_single, 1, 1, 0, on, word++, first_word++, lanes);
        words--;
    }
    if (words % 2)
        launch(digest_single, 1, 1, 0, on, word + words - 1, first_word + words - 1, lanes);
    if (words / 2)
        launch(digest_pairs, (unsigned)(processors() * BLOCKS_PER_PROCESSOR), THREADS, 0, on,
               (const ulonglong2 *)word, words / 2, first_word, lanes);
    return cuda_status(cudaGetLastError());
}
