// SPDX-License-Identifier: Apache-2.0
// Diff and encode, stage by stage, beside a bare compare of the same memory in the same run.
#include "bench_weights.cuh"
#include "gpu_bench.cuh"

#include "cuda/encode.cuh"
#include "cuda/encode.h"
#include "cuda/round.h"

#include <cmath>
#include <cstdio>
#include <vector>

// ---- weights: normally distributed, and a step of Adam at a small learning rate ----

__device__ static uint16_t to_bf16(float x) {
    return round_to_bf16(__float_as_uint(x));
}

// With FP32 masters each weight moves a little, and the small ones by an ulp; weights that are kept in
// BF16 move only if they are small, and then nearly always.
__global__ static void make_weights(uint16_t *old, uint16_t *next, size_t count, bool masters) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        float weight = normal(scramble(2 * i)) * 0.02f;
        uint64_t random = scramble(2 * i + 1);

        old[i] = next[i] = to_bf16(weight);
        if (masters)
            next[i] = to_bf16(weight + normal(random) * 2.75e-7f);
        else if (fabsf(weight) < 3.0e-4f && random % 16 < 14)
            next[i] = (uint16_t)(old[i] + (random >> 32 & 1 ? 1 : -1) * (1 + (int)(random >> 40 & 1)));
    }
}

__global__ static void compare(const uint4 *x, const uint4 *y, size_t count, unsigned *sink) {
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    unsigned seen = 0;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i + stride < count; i += 2 * stride) {
        uint4 a = __ldcs(&x[i]), b = __ldcs(&y[i]), c = __ldcs(&x[i + stride]), d = __ldcs(&y[i + stride]);

        seen += (a.x != b.x) + (a.y != b.y) + (a.z != b.z) + (a.w != b.w);
        seen += (c.x != d.x) + (c.y != d.y) + (c.z != d.z) + (c.w != d.w);
    }
    if (seen == 0x12345678)
        *sink = seen;
}

// A plan of tensors of 2^24 elements, as one segment each.
static cuda_plan make_plan(size_t elements, uint16_t *old, uint16_t *next, std::vector<cuda_segment> *segments,
                           std::vector<cuda_block> *blocks) {
    for (size_t at = 0; at < elements; at += 1 << 24) {
        cuda_segment segment = {(uint32_t)blocks->size(), 0, 0, {2, 7, 8, 64}};

        for (size_t from = at; from < elements && from < at + (1 << 24); from += 1 << 18) {
            uint32_t here = (uint32_t)std::min<size_t>(elements - from, 1 << 18);
            cuda_block block = {};

            block.old = (const uint8_t *)(old + from);
            block.new_ = (const uint8_t *)(next + from);
            block.first_word = (from - at) / 4;
            block.elements = here;
            block.segment = block.piece = (uint32_t)segments->size();
            block.index = segment.blocks++;
            segment.elements += here;
            blocks->push_back(block);
        }
        segments->push_back(segment);
    }
    return {segments->data(), blocks->data(), (uint32_t)segments->size(), (uint32_t)blocks->size(),
            (uint32_t)segments->size()};
}

struct EncodeBench {
    size_t elements;
    uint16_t *old, *next;
    uint64_t *sums;
    std::vector<cuda_segment> segments;
    std::vector<cuda_block> blocks;
    cuda_plan plan;
};

static void time_encoder(EncodeBench *bench, const char *what, cuda_encoder_options options, float compare_ms) {
    std::vector<cuda_segment_report> reports(bench->segments.size());
    cuda_encoder *encoder;
    const uint8_t *output;
    uint64_t changes = 0, bytes = 0, elsewhere = 0;

    if (cuda_encoder_new(&bench->plan, &options, &encoder))
        must(cudaErrorUnknown, "an encoder");
    float ms = best_ms([&] {
        if (cuda_encoder_run(encoder, bench->blocks.data(), nullptr, nullptr, bench->sums, nullptr, reports.data(), &output))
            must(cudaErrorUnknown, "encoding");
    });
    for (const cuda_segment_report &report : reports) {
        changes += report.changes;
        bytes += report.bytes;
        elsewhere += report.elsewhere;
    }
    printf("    %-36s %7.3f ms %6.2f times the compare; %.2f %% of the weights in device memory\n", what, ms,
           ms / compare_ms, 100.0 * (double)cuda_encoder_bytes(encoder) / (double)(bench->elements * 2));
    printf("        %.2f %% changed, %.2f MB, %.2f bits each; %llu segments left to the CPU\n",
           100.0 * (double)changes / (double)bench->elements, (double)bytes / 1e6, 8.0 * (double)bytes / (double)changes,
           (unsigned long long)elsewhere);
    cuda_encoder_free(encoder);
}

void encode_bench(int log2_elements) {
    EncodeBench bench = {(size_t)1 << log2_elements, nullptr, nullptr, nullptr, {}, {}, {}};

    must(cudaMalloc(&bench.old, bench.elements * 2), "allocating");
    must(cudaMalloc(&bench.next, bench.elements * 2), "allocating");
    bench.plan = make_plan(bench.elements, bench.old, bench.next, &bench.segments, &bench.blocks);
    must(cudaMalloc(&bench.sums, 16 * bench.segments.size()), "allocating");
    for (bool masters : {true, false}) {
        make_weights<<<132 * 8, 256>>>(bench.old, bench.next, bench.elements, masters);
        float compare_ms = best_ms([&] {
            compare<<<132 * 16, 512>>>((uint4 *)bench.old, (uint4 *)bench.next, bench.elements / 8, (unsigned *)bench.sums);
        });

        printf("2^%d BF16 elements, %s\n", log2_elements, masters ? "FP32 masters" : "weights kept in BF16");
        printf("    %-36s %7.3f ms\n", "compare", compare_ms);
        time_encoder(&bench, "diff and encode, four waves at once", {100, 4, 4}, compare_ms);
        time_encoder(&bench, "diff and encode, as usual", {0, 0, 0}, compare_ms);
        if (masters)
            host_bench(bench.old, bench.next, bench.elements);
    }
    must(cudaFree(bench.old), "freeing");
    must(cudaFree(bench.next), "freeing");
    must(cudaFree(bench.sums), "freeing");
}
