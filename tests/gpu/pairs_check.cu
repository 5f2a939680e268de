// SPDX-License-Identifier: Apache-2.0
// All 2^32 pairs of BF16 values: each is a change somewhere, among weights that stay, coded on the device and
// decoded on the device, and what comes out is compared bit by bit.
#include "gpu_bench.cuh"

extern "C" {
#include "gpu_cases.h"
}

#include <cstdint>
#include <cuda_runtime.h>
#include <vector>

#define LOG2_ELEMENTS 29
#define EVERY 16u // one element in so many is a pair

__global__ static void make_pairs(uint16_t *old, uint16_t *next, size_t count, uint64_t first) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        const uint64_t pair = first + i / EVERY;
        const bool here = i % EVERY == pair * 7 % EVERY; // not always at the same place

        old[i] = next[i] = (uint16_t)(0x3c00 + i * 40503 % 1024);
        if (here) {
            old[i] = (uint16_t)(pair >> 16);
            next[i] = (uint16_t)pair;
        }
    }
}

__global__ static void count_other(const uint4 *x, const uint4 *y, size_t count, unsigned long long *other) {
    unsigned long long seen = 0;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        seen += x[i].x != y[i].x || x[i].y != y[i].y || x[i].z != y[i].z || x[i].w != y[i].w;
    if (seen)
        atomicAdd(other, seen);
}

void pairs_check() {
    const size_t elements = (size_t)1 << LOG2_ELEMENTS;
    const uint64_t pairs = elements / EVERY;
    uint16_t *old, *next;
    unsigned long long *other, found = 0;
    uint64_t bytes = 0;

    must(cudaMalloc(&old, elements * 2), "allocating");
    must(cudaMalloc(&next, elements * 2), "allocating");
    must(cudaMalloc(&other, sizeof *other), "allocating");
    must(cudaMemset(other, 0, sizeof *other), "clearing");
    for (uint64_t first = 0; first < UINT64_C(1) << 32; first += pairs) {
        make_pairs<<<132 * 8, 256>>>(old, next, elements, first);
        bytes += step_in_place(old, next, elements);
        count_other<<<132 * 8, 256>>>((const uint4 *)old, (const uint4 *)next, elements / 8, other);
    }
    must(cudaMemcpy(&found, other, sizeof found, cudaMemcpyDeviceToHost), "reading");
    if (found) {
        fprintf(stderr, "pairs: %llu vectors are not what they should be\n", found);
        exit(1);
    }
    printf("pairs: all 2^32 of BF16, coded and decoded on the device, %.2f GB of patches: equal\n", (double)bytes / 1e9);
    must(cudaFree(old), "freeing");
    must(cudaFree(next), "freeing");
    must(cudaFree(other), "freeing");
}
