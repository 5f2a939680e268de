// SPDX-License-Identifier: Apache-2.0
// Decoding on a GPU against the CPU, and what it takes: gpu_decode_check [LOG2_ELEMENTS], by default
// 30; 0 leaves the benchmark out. `gpu_decode_check bench LOG2_ELEMENTS` is the benchmark alone, for
// who counts what kernels do; `gpu_decode_check small` goes through all kernels with little data and
// no fault, for compute-sanitizer. Exit code 77 without a GPU, 1 on any difference.
#include "cuda/decode.h"
#include "cuda/decode_second.h"
#include "cuda/digest_blocks.h"
#include "cuda/memory.h"
#include "tests/gpu/device_state.h"

#include "tests/gpu/gpu_bench.cuh"

#include <cstring>
#include <vector>

#define DENSITY 0.012
#define SIGMA 0.02f

// ---- weights that move as those of a model do ----

__device__ static uint64_t hash(uint64_t x) {
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

__device__ static float normal(uint64_t seed) {
    const uint64_t bits = hash(seed);
    const float u = ((float)(uint32_t)(bits >> 32) + 1.0f) * 0x1p-32f;

    return sqrtf(-2 * logf(fminf(u, 1.0f))) * cospif((float)(uint32_t)bits * 0x1p-31f);
}

__device__ static uint16_t to_bf16(float value) {
    const uint32_t bits = __float_as_uint(value);

    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// A master of each weight, known from its number, and `steps` steps of noise on it.
__global__ static void make_weights(uint16_t *to, size_t count, float noise, int steps) {
    const size_t stride = (size_t)gridDim.x * blockDim.x;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        float master = SIGMA * normal(8 * i);

        for (int k = 1; k <= steps; k++)
            master += noise * normal(8 * i + (uint64_t)k);
        to[i] = to_bf16(master);
    }
}

__global__ static void count_changes(const uint16_t *a, const uint16_t *b, size_t count,
                                     unsigned long long *changed) {
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    unsigned long long here = 0;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        here += a[i] != b[i];
    atomicAdd(changed, here);
}

// The noise at which DENSITY of the elements change in a step.
static float find_noise(uint16_t *old, uint16_t *next, unsigned long long *changed) {
    const size_t count = (size_t)1 << 24;
    float noise = 6e-7f;

    make_weights<<<1024, 256>>>(old, count, 0, 0);
    for (int round = 0; round < 3; round++) {
        unsigned long long seen = 0;

        make_weights<<<1024, 256>>>(next, count, noise, 1);
        must(cudaMemset(changed, 0, sizeof seen), "clearing");
        count_changes<<<1024, 256>>>(old, next, count, changed);
        must(cudaMemcpy(&seen, changed, sizeof seen, cudaMemcpyDeviceToHost), "counting");
        noise *= (float)(DENSITY * (double)count / (double)seen);
    }
    return noise;
}

// ---- the benchmark ----

struct bench {
    size_t elements;
    uint16_t *weights, *next, *second; // on the device
    uint16_t *host, *host_next;
    unsigned long long *counter;
    float read_ms, copy_ms;
};

static void row(const struct bench *bench, const char *what, float ms) {
    printf("    %-34s %8.3f ms  %5.2f times a read\n", what, ms, ms / bench->read_ms);
}

// The blocks of the plan, in the second state.
static struct cuda_block *second_blocks(const struct bench *bench, const struct cuda_plan *plan) {
    std::vector<cuda_block> blocks(plan->block_count);
    const size_t bytes = blocks.size() * sizeof blocks[0];
    struct cuda_block *copy = nullptr;

    must(cudaMemcpy(blocks.data(), plan->blocks, bytes, cudaMemcpyDeviceToHost), "copying");
    for (struct cuda_block &block : blocks)
        block.old = (const uint8_t *)bench->second + (block.old - (const uint8_t *)bench->weights);
    must(cudaMalloc((void **)&copy, bytes), "allocating");
    must(cudaMemcpy(copy, blocks.data(), bytes, cudaMemcpyHostToDevice), "copying");
    return copy;
}

// What a commit with two states does. Values are lost: decode them again.
static void time_second(const struct bench *bench, const struct cuda_decode *decode, const struct cuda_plan *plan) {
    const auto nothing = [] {};
    struct cuda_block *second = second_blocks(bench, plan);
    float catch_up_ms, write_ms, take_ms;

    must(cudaMemcpy(bench->second, bench->weights, bench->elements * sizeof *bench->weights, cudaMemcpyDeviceToDevice),
         "copying");
    write_ms = best_ms(nothing, [&] { cuda_second_write(decode, plan->blocks, second, nullptr); });
    catch_up_ms = best_ms(nothing, [&] { cuda_second_catch_up(decode, plan->blocks, second, nullptr); });
    take_ms = best_ms(nothing, [&] { cuda_second_write(decode, plan->blocks, nullptr, nullptr); });
    row(bench, "two states: catch up", catch_up_ms);
    row(bench, "two states: write", write_ms);
    row(bench, "two states: undo, back to the other", take_ms);
    must(cudaFree(second), "freeing");
}

static void time_kernels(void *user, const struct cuda_decode *decode, const struct cuda_plan *plan,
                         uint32_t *poisoned) {
    const struct bench *bench = (const struct bench *)user;
    const auto nothing = [] {};
    const auto payload = [&] { cuda_decode_payload(decode, nullptr); };
    unsigned swaps = 0;
    float tables_ms, payload_ms, scan_ms, remember_ms, swap_ms, all_ms, digest_ms;
    decode_move *moves = nullptr;
    unsigned long long *sums = nullptr;
    size_t changes = 0;
    uint32_t failed = 1;

    for (const struct decode_range &range : decode->ranges)
        changes += range.all;
    // no more than one for each element of its blocks
    must(cudaMalloc((void **)&moves, bench->elements / 4 * sizeof *moves), "allocating");
    must(cudaMalloc((void **)&sums, plan->piece_count * 2 * sizeof *sums), "allocating");
    tables_ms = best_ms(nothing, [&] { cuda_decode_tables(decode, nullptr); });
    payload_ms = best_ms(nothing, payload);
    scan_ms = best_ms(payload, [&] { cuda_decode_scan(decode, nullptr); });
    all_ms = best_ms(nothing, [&] {
        cuda_decode_tables(decode, nullptr);
        cuda_decode_payload(decode, nullptr);
        cuda_decode_scan(decode, nullptr);
    });
    remember_ms = best_ms(nothing, [&] { cuda_decode_remember(decode, moves, nullptr); });
    const auto swap = [&] {
        cuda_decode_swap(decode, poisoned, nullptr);
        swaps++;
    };

    swap_ms = best_ms(nothing, swap);
    if (swaps % 2) // an even number of times: the old ones are back
        swap();
    digest_ms = best_ms(nothing, [&] { cuda_digest_blocks(plan, sums, nullptr); });
    time_second(bench, decode, plan);
    payload();
    cuda_decode_scan(decode, nullptr);
    must(cudaMemcpy(&failed, decode->failed, sizeof failed, cudaMemcpyDeviceToHost), "looking");
    if (failed || changes == 0)
        must(cudaErrorUnknown, "decoding when it is repeated");
    row(bench, "tables", tables_ms);
    row(bench, "entropy decoding", payload_ms);
    row(bench, decode->moves ? "scan and sums, with history" : "scan and sums", scan_ms);
    row(bench, "all three, one behind the other", all_ms);
    row(bench, "remember moves", remember_ms);
    row(bench, "swap: inside the pause", swap_ms);
    row(bench, "decode, verify, swap", all_ms + swap_ms);
    row(bench, "digest of everything", digest_ms);
    must(cudaFree(moves), "freeing");
    must(cudaFree(sums), "freeing");
}

static void bench_step(struct bench *bench, struct followers *followers, float noise, int step, bool kernels) {
    const size_t bytes = bench->elements * sizeof *bench->weights;
    struct step_report report = {};

    make_weights<<<132 * 16, 256>>>(bench->next, bench->elements, noise, step);
    must(cudaMemcpy(bench->host_next, bench->next, bytes, cudaMemcpyDeviceToHost), "copying");
    followers_step(followers, bench->host_next, kernels ? time_kernels : nullptr, bench, &report);
    printf("    %.2f %% changed, %.2f MB %s, %.2f bits each, made on the CPU in %.0f ms\n",
           100.0 * (double)report.changed / (double)bench->elements,
           (double)report.patch_bytes / 1e6, report.history ? "with history" : "without history",
           8.0 * (double)report.patch_bytes / (double)report.changed, report.encode_ms);
    printf("    patch in host memory: prepared in %.2f ms, committed in %.2f ms; %.2f %% of the "
           "weights in device memory\n",
           report.prepare_ms, report.commit_ms,
           100.0 * (double)report.device_bytes / (double)bytes);
}

static void bench_limits(struct bench *bench) {
    const size_t bytes = bench->elements * sizeof *bench->weights;

    bench->read_ms = best_ms([] {},
                             [&] {
                                 read_all<<<132 * 8, 512>>>((const uint4 *)bench->weights,
                                                            bytes / 16, (unsigned *)bench->counter);
                             });
    bench->copy_ms = best_ms(
        [] {},
        [&] {
            must(cudaMemcpyAsync(bench->next, bench->weights, bytes, cudaMemcpyDeviceToDevice),
                 "copying");
        });
    printf("    %-34s %8.3f ms  %.0f GB/s\n", "read", bench->read_ms,
           (double)bytes / bench->read_ms / 1e6);
    row(bench, "copy on the device", bench->copy_ms);
}

static void bench_decoding(int log2_elements) {
    struct bench bench = {};
    const size_t bytes = (bench.elements = (size_t)1 << log2_elements) * sizeof *bench.weights;
    struct followers *followers;
    float noise;

    must(cudaMalloc((void **)&bench.weights, bytes), "allocating");
    must(cudaMalloc((void **)&bench.next, std::max(bytes, (size_t)2 << 24)), "allocating");
    must(cudaMalloc((void **)&bench.second, bytes), "allocating");
    must(cudaMalloc((void **)&bench.counter, 64), "allocating");
    must(cudaMallocHost((void **)&bench.host, bytes), "allocating");
    must(cudaMallocHost((void **)&bench.host_next, bytes), "allocating");
    noise = log2_elements >= 24 ? find_noise(bench.weights, bench.next, bench.counter) : 6e-7f;
    make_weights<<<132 * 16, 256>>>(bench.weights, bench.elements, 0, 0);
    must(cudaMemcpy(bench.host, bench.weights, bytes, cudaMemcpyDeviceToHost), "copying");
    printf("2^%d BF16 elements\n", log2_elements);
    bench_limits(&bench);
    followers = followers_new(bench.host, bench.weights, bench.elements);
    bench_step(&bench, followers, noise, 1, true);
    bench_step(&bench, followers, noise, 2, true);
    printf("  with two states: the first commit has nothing to catch up with\n");
    followers_double(followers, bench.second);
    for (int step = 3; step <= 5; step++)
        bench_step(&bench, followers, noise, step, false);
    followers_free(followers);
    must(cudaFree(bench.weights), "freeing");
    must(cudaFree(bench.next), "freeing");
    must(cudaFree(bench.second), "freeing");
    must(cudaFree(bench.counter), "freeing");
    must(cudaFreeHost(bench.host), "freeing");
    must(cudaFreeHost(bench.host_next), "freeing");
}

// ---- a device that fails while it writes ----

template <typename T> static T *on_device(const T &value) {
    T *copy = nullptr;

    must(cudaMalloc((void **)&copy, sizeof value), "allocating");
    must(cudaMemcpy(copy, &value, sizeof value, cudaMemcpyHostToDevice), "copying");
    return copy;
}

// Weights at an address that is none: the last thing that this process does with the device.
static void check_fault() {
    struct cuda_block block = {};
    struct decode_block changed = {};
    struct cuda_decode decode = {};
    uint32_t *poisoned = nullptr, *front = nullptr;

    block.old = (const uint8_t *)64;
    block.elements = 1;
    changed.changes = 1;
    decode.plan = on_device(block);
    decode.blocks = on_device(changed);
    decode.positions = on_device((uint32_t)0);
    decode.values = (uint8_t *)on_device((uint64_t)0);
    decode.ranges[1].all = 1;
    must(cudaMallocHost((void **)&poisoned, sizeof *poisoned), "allocating");
    must(cudaMallocHost((void **)&front, sizeof *front), "allocating");
    *poisoned = *front = 0;
    cuda_decode_swap(&decode, poisoned, nullptr);
    cuda_set_word(front, 1, nullptr); // behind the fault, so never
    if (cudaDeviceSynchronize() == cudaSuccess || *(volatile uint32_t *)poisoned != 1)
        must(cudaErrorUnknown, "a fault while writing does not leave the weights marked");
    if (*(volatile uint32_t *)front)
        must(cudaErrorUnknown, "a state is shown though it was not written");
    printf("a fault while writing leaves the weights marked as poisoned, and shows no other state\n");
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "30";
    const bool small = !strcmp(what, "small"), bench = !strcmp(what, "bench");
    const int log2_elements = atoi(bench && argc > 2 ? argv[2] : what);
    int devices = 0;

    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
        fprintf(stderr, "gpu_decode_check: no GPU\n");
        return 77;
    }
    if (!bench)
        check_decoding(small);
    if (log2_elements)
        bench_decoding(log2_elements);
    if (!bench && !small)
        check_fault();
    return 0;
}
