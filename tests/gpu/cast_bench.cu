// SPDX-License-Identifier: Apache-2.0
// Casting in place and the patch of it, beside a read of what a cast must read, and beside a patch that compares with
// a snapshot.
#include "gpu_bench.cuh"

#include "cast_bench.h"

#include "bench_weights.cuh"
#include "cuda/round.h"

__global__ static void make_masters(float *masters, uint16_t *weights, uint16_t *snapshot, size_t count) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        masters[i] = normal(scramble(2 * i)) * 0.02f;
        weights[i] = snapshot[i] = round_to_bf16(__float_as_uint(masters[i]));
    }
}

// As Adam steps at a small learning rate.
__global__ static void step_masters(float *masters, size_t count, uint64_t seed) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        masters[i] += normal(scramble(2 * i + 1 + (seed << 40))) * 2.75e-7f;
}

static void step(const cast_bench *bench, unsigned number) {
    step_masters<<<132 * 8, 256>>>(bench->masters, bench->elements, number + 1);
    must(cudaDeviceSynchronize(), "stepping the masters");
}

void cast_bench_rows(int log2_elements) {
    cast_bench bench = {(uint64_t)1 << log2_elements, nullptr, nullptr, nullptr, step};
    const double bytes = (double)bench.elements * 2;
    unsigned *sink;

    must(cudaMalloc(&bench.weights, bench.elements * 2), "allocating");
    must(cudaMalloc(&bench.snapshot, bench.elements * 2), "allocating");
    must(cudaMalloc(&bench.masters, bench.elements * 4), "allocating");
    must(cudaMalloc(&sink, sizeof *sink), "allocating");
    make_masters<<<132 * 8, 256>>>(bench.masters, bench.weights, bench.snapshot, bench.elements);
    const float read_ms = best_ms([&] {
        read_all<<<132 * 8, 512>>>((const uint4 *)bench.masters, bench.elements / 4, sink);
        read_all<<<132 * 8, 512>>>((const uint4 *)bench.weights, bench.elements / 8, sink);
    });
    const cast_times times = cast_bench_run(&bench);

    printf("2^%d BF16 elements, cast from FP32 masters, %.2f %% changed, %.2f MB\n", log2_elements,
           100 * times.changed / (double)bench.elements, times.patch_bytes / 1e6);
    printf("    %-36s %7.3f ms\n", "read masters and weights", read_ms);
    printf("    %-36s %7.3f ms %6.2f times the read; %.2f %% of the weights in device memory\n", "cast in place",
           times.cast_ms, times.cast_ms / read_ms, 100 * (double)times.cast_bytes / bytes);
    printf("    %-36s %7.3f ms; %.2f %% of the weights more\n", "patch of it", times.cast_diff_ms,
           100 * (double)times.encoder_bytes / bytes);
    printf("    %-36s %7.3f ms; the weights once more, and the same bytes\n", "patch from a snapshot", times.diff_ms);
    must(cudaFree(bench.weights), "freeing");
    must(cudaFree(bench.snapshot), "freeing");
    must(cudaFree(bench.masters), "freeing");
    must(cudaFree(sink), "freeing");
}
