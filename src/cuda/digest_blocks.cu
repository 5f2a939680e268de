// SPDX-License-Identifier: Apache-2.0
// Twin: scan/digest_portable.c. A block of the plan is shared by a few blocks of threads, so that
// the last ones to run are short.
#include "cuda/digest_blocks.h"

#include "cuda/mix.cuh"
#include "cuda/status.cuh"

#define THREADS 256u
#define SLICES 4u

// Any word: it may not be aligned, or end behind the block, where it counts as zeros.
__device__ static uint64_t load_word(const uint8_t *data, uint32_t word, uint32_t bytes) {
    uint64_t value = 0;

    if ((uintptr_t)data % 8 == 0 && 8 * word + 8 <= bytes)
        return ((const uint64_t *)data)[word];
    for (uint32_t i = 0; i < 8 && 8 * word + i < bytes; i++)
        value |= (uint64_t)data[8 * word + i] << 8 * i;
    return value;
}

__global__ static void __launch_bounds__(THREADS)
    digest_blocks(struct cuda_plan plan, unsigned long long *sums) {
    const struct cuda_block block = plan.blocks[blockIdx.x];
    const uint32_t bytes = block.elements * plan.segments[block.segment].kind.width;
    const uint32_t words = (bytes + 7) / 8, slice = (words / SLICES + 2) & ~1u;
    const uint32_t from = min(words, blockIdx.y * slice), to = min(words, from + slice);
    struct ulp_sum sum = {{0, 0}};
    uint32_t rest = from;

    if (from + (threadIdx.x - lane_id()) >= to) // nothing for the whole warp
        return;
    if ((uintptr_t)block.old % sizeof(ulonglong2) == 0) {
        rest = max(from, min(to, bytes / 8) & ~1u);
        sum = sum_pairs((const ulonglong2 *)block.old, from / 2 + threadIdx.x, rest / 2, THREADS,
                        block.first_word);
    }
    for (uint32_t i = rest + threadIdx.x; i < to; i += THREADS)
        sum_add(&sum, digest_mix(block.first_word + i, load_word(block.old, i, bytes)));
    deliver_sum(sum, &sums[2 * (size_t)block.piece]);
}

extern "C" enum ulp_status cuda_digest_blocks(const struct cuda_plan *plan,
                                              unsigned long long *sums, void *stream) {
    launch(digest_blocks, dim3(plan->block_count, SLICES), THREADS, 0, (cudaStream_t)stream, *plan,
           sums);
    return cuda_status(cudaGetLastError());
}
