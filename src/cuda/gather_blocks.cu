// SPDX-License-Identifier: Apache-2.0
#include "cuda/gather_blocks.h"

#include "cuda/device.cuh"
#include "cuda/element.cuh"
#include "cuda/status.cuh"

#define THREADS 256u

template <unsigned WIDTH>
__global__ static void __launch_bounds__(THREADS)
    gather(const struct cuda_block *blocks, const uint64_t *offsets, uint8_t *to) {
    typedef typename element<WIDTH>::type type;
    const struct cuda_block block = blocks[blockIdx.x];
    const type *from = (const type *)block.old;
    type *here = (type *)(to + offsets[blockIdx.x]);

    for (uint32_t i = threadIdx.x; i < block.elements; i += THREADS)
        here[i] = from[i];
}

extern "C" enum ulp_status cuda_gather_blocks(const struct cuda_block *blocks,
                                              const uint64_t *offsets, uint32_t count,
                                              uint32_t width, uint8_t *to, void *stream) {
    static void (*const kernels[])(const struct cuda_block *, const uint64_t *,
                                   uint8_t *) = {gather<1>, gather<2>, gather<4>, gather<8>};

    launch(kernels[__builtin_ctz(width)], count, THREADS, 0, (cudaStream_t)stream, blocks, offsets,
           to);
    return cuda_status(cudaGetLastError());
}
