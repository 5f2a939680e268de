// SPDX-License-Identifier: Apache-2.0
// Diff and encode, stage by stage, beside a bare compare of the same memory in the same run.
#include "gpu_bench.cuh"

#include "cuda/encode.cuh"
#include "cuda/encode.h"

#include <cmath>
#include <cstdio>
#include <vector>

// ---- weights: normally distributed, and a step of Adam at a small learning rate ----

__device__ static uint64_t scramble(uint64_t x) {
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

__device__ static float normal(uint64_t random) {
    float u = ((float)(random >> 40) + 1) * 5.9604645e-8f, v = (float)(random & 0xffffff) * 5.9604645e-8f;

    return sqrtf(-2 * logf(u)) * cospif(2 * v);
}

__device__ static uint16_t to_bf16(float x) {
    uint32_t bits = __float_as_uint(x);

    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__global__ static void make_weights(uint16_t *old, uint16_t *next, size_t count, float step) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        float weight = normal(scramble(2 * i)) * 0.02f;

        old[i] = to_bf16(weight);
        next[i] = to_bf16(weight + normal(scramble(2 * i + 1)) * step);
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

void encode_bench(int log2_elements) {
    const size_t elements = (size_t)1 << log2_elements;
    std::vector<cuda_segment> segments;
    std::vector<cuda_block> blocks;
    uint16_t *old, *next;
    uint64_t *sums;
    cuda_encoder *encoder;
    const uint8_t *output;

    must(cudaMalloc(&old, elements * 2), "allocating");
    must(cudaMalloc(&next, elements * 2), "allocating");
    make_weights<<<132 * 8, 256>>>(old, next, elements, 3.2e-7f);
    cuda_plan plan = make_plan(elements, old, next, &segments, &blocks);
    std::vector<cuda_segment_report> reports(segments.size());

    must(cudaMalloc(&sums, 16 * segments.size()), "allocating");
    must(cudaMemset(sums, 0, 16 * segments.size()), "clearing");
    float compare_ms = best_ms([&] { compare<<<132 * 16, 512>>>((uint4 *)old, (uint4 *)next, elements / 8, (unsigned *)sums); });

    for (cuda_encoder_options options : std::vector<cuda_encoder_options>{{500, 1, 1}, {100, 4, 4}, {75, 4, 3}, {60, 6, 3},
         {70, 6, 4}, {50, 8, 3}, {60, 8, 4}, {36, 8, 3}, {45, 10, 4}, {36, 12, 4}, {0, 0, 0}}) {
        unsigned waves = options.waves;

        if (cuda_encoder_new(&plan, &options, &encoder))
            must(cudaErrorUnknown, "an encoder");
        float all_ms = best_ms([&] {
            if (cuda_encoder_run(encoder, blocks.data(), nullptr, sums, nullptr, reports.data(), &output)) {
                fprintf(stderr, "%s\n", ulp_last_error());
                exit(1);
            }
        });
        uint64_t changes = 0, bytes = 0, elsewhere = 0;

        for (const cuda_segment_report &report : reports) {
            changes += report.changes;
            bytes += report.bytes;
            elsewhere += report.elsewhere;
        }
        printf("2^%d BF16 elements, %.2f %% changed, %u waves, %u at a time: compare %.3f ms; diff and encode %.3f ms, %.2f times the "
               "compare; %llu bytes, %.2f bits a change, %llu segments elsewhere; memory %.1f %% of the weights\n",
               log2_elements, 100.0 * (double)changes / (double)elements, waves, options.pipeline, compare_ms, all_ms, all_ms / compare_ms,
               (unsigned long long)bytes, 8.0 * (double)bytes / (double)changes, (unsigned long long)elsewhere,
               100.0 * (double)cuda_encoder_bytes(encoder) / (double)(elements * 2));
        cuda_encoder_free(encoder);
    }
    must(cudaFree(old), "freeing");
    must(cudaFree(next), "freeing");
    must(cudaFree(sums), "freeing");
}
