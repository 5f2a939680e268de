// SPDX-License-Identifier: Apache-2.0
// Timing on a GPU, and ending when something is wrong.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define ROUNDS 20

static inline void must(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "gpu_check: %s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

// The best of some rounds; `before` is not timed.
template <typename Before, typename Run> static float best_ms(Before before, Run run) {
    cudaEvent_t start, stop;
    float best = 1e9f;

    must(cudaEventCreate(&start), "event");
    must(cudaEventCreate(&stop), "event");
    for (int round = 0; round < ROUNDS; round++) {
        float ms;

        before();
        must(cudaEventRecord(start), "event");
        run();
        must(cudaEventRecord(stop), "event");
        must(cudaEventSynchronize(stop), "running");
        must(cudaEventElapsedTime(&ms, start, stop), "event");
        best = std::min(best, ms);
    }
    must(cudaEventDestroy(start), "event");
    must(cudaEventDestroy(stop), "event");
    return best;
}

template <typename Run> static float best_ms(Run run) {
    return best_ms([] {}, run);
}

// A limit: nothing is done with what is read.
__global__ static void read_all(const uint4 *from, size_t count, unsigned *sink) {
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    unsigned seen = 0;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (; i + 3 * stride < count; i += 4 * stride) {
        uint4 a = __ldcs(&from[i]), b = __ldcs(&from[i + stride]);
        uint4 c = __ldcs(&from[i + 2 * stride]), d = __ldcs(&from[i + 3 * stride]);

        seen |= a.x | a.y | a.z | a.w | b.x | b.y | b.z | b.w;
        seen |= c.x | c.y | c.z | c.w | d.x | d.y | d.z | d.w;
    }
    if (seen == 0x12345678)
        *sink = seen;
}

void encode_bench(int log2_elements);
void cast_bench_rows(int log2_elements);

// Diff and encode from a snapshot in the host's memory, which is made a copy of `old`.
extern "C" void host_bench(void *old, void *next, uint64_t elements);

// All pairs of BF16 values.
void pairs_check();
