// SPDX-License-Identifier: Apache-2.0
// Timing on a GPU, and ending when something is wrong.
#pragma once

#include <algorithm>
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

template <typename Run> static float best_ms(Run run) {
    cudaEvent_t start, stop;
    float best = 1e9f;

    must(cudaEventCreate(&start), "event");
    must(cudaEventCreate(&stop), "event");
    for (int round = 0; round < ROUNDS; round++) {
        float ms;

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

void encode_bench(int log2_elements);

// All pairs of BF16 values.
void pairs_check();
