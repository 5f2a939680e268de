// SPDX-License-Identifier: Apache-2.0
// Digest, diff, encode and cast beside the limits of device memory, in one run: gpu_bench [LOG2_ELEMENTS]. Exit
// code 77 without a GPU. The follower's half is timed by gpu_decode_check.
#include "cuda/digest.h"
#include "gpu_bench.cuh"

static void bench_digest(int log2_elements, uint64_t *device_sum) {
    const size_t bytes = (size_t)2 << log2_elements;
    void *weights;
    float read_ms, digest_ms;

    must(cudaMalloc(&weights, bytes), "allocating the weights");
    must(cudaMemset(weights, 0x3c, bytes), "filling the weights");
    read_ms = best_ms([&] {
        read_all<<<132 * 8, 512>>>((const uint4 *)weights, bytes / 16, (unsigned *)device_sum);
    });
    digest_ms = best_ms([&] { cuda_digest_words(weights, bytes / 8, 0, device_sum, nullptr); });
    printf("2^%d BF16 elements: read %.3f ms (%.0f GB/s), digest %.3f ms, %.2f times the read\n",
           log2_elements, read_ms, (double)bytes / read_ms / 1e6, digest_ms, digest_ms / read_ms);
    must(cudaFree(weights), "freeing");
}

int main(int argc, char **argv) {
    const int log2_elements = argc > 1 ? atoi(argv[1]) : 30;
    int devices = 0;
    uint64_t *device_sum;

    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
        fprintf(stderr, "gpu_bench: no GPU\n");
        return 77;
    }
    must(cudaMalloc((void **)&device_sum, 2 * sizeof *device_sum), "allocating");
    bench_digest(log2_elements, device_sum);
    encode_bench(log2_elements);
    cast_bench_rows(log2_elements);
    return 0;
}
