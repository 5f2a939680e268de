// SPDX-License-Identifier: Apache-2.0
#include "cuda/list_changes.h"

#include "cuda/elements.cuh"
#include "cuda/status.cuh"

#define THREADS 256u

template <unsigned W>
__global__ static void __launch_bounds__(THREADS)
    list_blocks(const cuda_block *blocks, uint32_t limit, cuda_change *changes, uint32_t *found) {
    const cuda_block block = blocks[blockIdx.x];
    const bool aligned = octets_aligned<W>(block.old) && octets_aligned<W>(block.new_);

    for (uint32_t octet = threadIdx.x; OCTET * octet < block.elements; octet += THREADS) {
        const Octet<W> old = load_octet<W>(block.old, aligned, octet, block.elements);
        const Octet<W> next = load_octet<W>(block.new_, aligned, octet, block.elements);

#pragma unroll
        for (uint32_t i = 0; i < OCTET; i++) {
            if (old.at(i) != next.at(i)) {
                uint32_t at = atomicAdd(&found[block.segment], 1u);

                if (at < limit)
                    changes[(size_t)limit * block.segment + at] = {(uint64_t)next.at(i), block.index, OCTET * octet + i};
            }
        }
    }
}

extern "C" enum ulp_status cuda_list_changes(const cuda_block *blocks, uint32_t count, uint32_t width, uint32_t limit,
                                             cuda_change *changes, uint32_t *found, void *stream) {
    static void (*const kernels[])(const cuda_block *, uint32_t, cuda_change *, uint32_t *) = {
        list_blocks<1>, list_blocks<2>, list_blocks<4>, list_blocks<8>};

    launch(kernels[__builtin_ctz(width)], count, THREADS, 0, (cudaStream_t)stream, blocks, limit, changes, found);
    return cuda_status(cudaGetLastError());
}
