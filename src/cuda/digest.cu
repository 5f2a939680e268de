// SPDX-License-Identifier: Apache-2.0
// Twin: scan/digest_portable.c. Each thread walks the words with a fixed stride, so that loads of a
// warp are contiguous, and keeps its own two lanes; addition does not care about order.
#include "cuda/digest.h"

#include "cuda/mix.cuh"
#include "cuda/status.cuh"

#define THREADS 256
#define BLOCKS_PER_PROCESSOR 8

__global__ static void __launch_bounds__(THREADS)
    digest_pairs(const ulonglong2 *pairs, size_t count, uint64_t first_word,
                 unsigned long long *lanes) {
    const size_t stride = (size_t)gridDim.x * THREADS;

    deliver_sum(sum_pairs(pairs, (size_t)blockIdx.x * THREADS + threadIdx.x, count, stride, first_word), lanes);
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
