// SPDX-License-Identifier: Apache-2.0
// GPU kernels against their CPU twins, bit for bit: gpu_check [SCALE [TRACES]]. Exit code 77 without a GPU, 1 on any difference.
// `gpu_check cast [SCALE]` is for the casts alone, for tools that take their time.
#include "cuda/digest.h"

#include "gpu_bench.cuh"
#include "gpu_cases.h"

#include <cstring>
#include <vector>

extern "C" void digest_add(const void *data, size_t bytes, uint64_t first_word, struct ulp_sum *sum);

static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 31);
}

static ulp_sum on_device(const uint64_t *words, size_t count, uint64_t first, uint64_t *device_sum) {
    ulp_sum sum;

    must(cudaMemset(device_sum, 0, sizeof sum), "clearing the sum");
    if (cuda_digest_words(words, count, first, device_sum, nullptr) != ULP_OK)
        must(cudaErrorUnknown, "launching the digest");
    must(cudaMemcpy(&sum, device_sum, sizeof sum, cudaMemcpyDeviceToHost), "reading the sum");
    return sum;
}

static void check_equal(ulp_sum x, ulp_sum y, size_t count, size_t shift) {
    if (x.lane[0] == y.lane[0] && x.lane[1] == y.lane[1])
        return;
    fprintf(stderr, "gpu_check: the digest of %zu words at +%zu differs from the CPU's\n", count, shift);
    exit(1);
}

// Every small length and alignment, and a few large ones.
static void check_digest(uint64_t *device_sum) {
    std::vector<uint64_t> host(1 << 20);
    uint64_t *words, random = 1;
    unsigned checks = 0;

    for (auto &word : host)
        word = next_random(&random);
    must(cudaMalloc((void **)&words, host.size() * 8), "allocating");
    must(cudaMemcpy(words, host.data(), host.size() * 8, cudaMemcpyHostToDevice), "copying");
    for (size_t count = 0; count < host.size() - 4; count = count < 600 ? count + 1 : count * 2 + 1) {
        for (size_t shift = 0; shift < 3; shift++, checks++) {
            uint64_t first = next_random(&random);
            ulp_sum expected = {{0, 0}};

            digest_add(host.data() + shift, count * 8, first, &expected);
            check_equal(on_device(words + shift, count, first, device_sum), expected, count, shift);
        }
    }
    must(cudaFree(words), "freeing");
    printf("digest: %u comparisons with the CPU, all equal\n", checks);
}

int main(int argc, char **argv) {
    int devices = 0;
    uint64_t *device_sum;

    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
        fprintf(stderr, "gpu_check: no GPU\n");
        return 77;
    }
    if (argc > 1 && strcmp(argv[1], "cast") == 0) {
        cast_cases(argc > 2 ? strtoull(argv[2], nullptr, 10) : 1);
        return 0;
    }
    must(cudaMalloc((void **)&device_sum, 2 * sizeof *device_sum), "allocating");
    check_digest(device_sum);
    const uint64_t scale = argc > 1 ? strtoull(argv[1], nullptr, 10) : 100;

    encode_cases(scale);
    second_cases(scale);
    host_cases(scale);
    part_cases(scale < 20 ? scale : 20);
    part_piece_cases();
    cast_cases(scale);
    trace_cases(argc > 2 ? argv[2] : "tests/trace");
    if (scale >= 100) // it takes a minute or so
        pairs_check();
    return 0;
}
