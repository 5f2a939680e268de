// SPDX-License-Identifier: Apache-2.0
// Twins: gather and scatter of scan/scan_portable.c, one state gathered from and the other scattered to.
// A block of threads for each block of elements. Positions of a block differ, so no two threads meet.
#include "cuda/decode_second.h"

#include "cuda/device.cuh"
#include "cuda/element.cuh"
#include "cuda/status.cuh"

#define THREADS 256u
#define IN_FLIGHT 4u // elements that a thread asks for before it uses the first

template <unsigned WIDTH>
__global__ static void __launch_bounds__(THREADS)
    copy_changes(struct cuda_decode list, struct decode_range range, const struct cuda_block *from_blocks,
                 const struct cuda_block *to_blocks) {
    typedef typename element<WIDTH>::type type;
    const struct decode_block block = list.blocks[range.first + blockIdx.x];
    const type *from = (const type *)from_blocks[block.block].old;
    type *to = (type *)(uintptr_t)to_blocks[block.block].old;
    const uint32_t *positions = list.positions + block.first;

    for (uint32_t i = threadIdx.x; i < block.changes; i += IN_FLIGHT * THREADS) {
        uint32_t at[IN_FLIGHT];
        type value[IN_FLIGHT];

#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            if (i + k * THREADS < block.changes) {
                at[k] = positions[i + k * THREADS];
                value[k] = from[at[k]];
            }
        }
#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            if (i + k * THREADS < block.changes)
                to[at[k]] = value[k];
        }
    }
}

template <unsigned WIDTH>
__global__ static void __launch_bounds__(THREADS)
    write_changes(struct cuda_decode decode, struct decode_range range, const struct cuda_block *from_blocks,
                  const struct cuda_block *to_blocks) {
    typedef typename element<WIDTH>::type type;
    const struct decode_block block = decode.blocks[range.first + blockIdx.x];
    const type *from = (const type *)from_blocks[block.block].old;
    type *to = to_blocks ? (type *)(uintptr_t)to_blocks[block.block].old : nullptr;
    const uint32_t *positions = decode.positions + block.first;
    type *values = (type *)(decode.values + block.values);

    for (uint32_t i = threadIdx.x; i < block.changes; i += IN_FLIGHT * THREADS) {
        uint32_t at[IN_FLIGHT];
        type old[IN_FLIGHT], value[IN_FLIGHT];

#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            if (i + k * THREADS < block.changes) {
                at[k] = positions[i + k * THREADS];
                value[k] = values[i + k * THREADS];
                old[k] = from[at[k]];
            }
        }
#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            if (i + k * THREADS < block.changes) {
                if (to)
                    to[at[k]] = value[k];
                values[i + k * THREADS] = old[k];
            }
        }
    }
}

typedef void (*kernel_of_width)(struct cuda_decode, struct decode_range, const struct cuda_block *,
                                const struct cuda_block *);

static enum ulp_status launch_widths(const kernel_of_width *kernels, const struct cuda_decode *decode,
                                     const struct cuda_block *from, const struct cuda_block *to, void *stream) {
    for (uint32_t w = 0; w < DECODE_WIDTHS; w++)
        launch(kernels[w], decode->ranges[w].all, THREADS, 0, (cudaStream_t)stream, *decode, decode->ranges[w], from,
               to);
    return cuda_status(cudaGetLastError());
}

extern "C" enum ulp_status cuda_second_catch_up(const struct cuda_decode *list, const struct cuda_block *from,
                                                const struct cuda_block *to, void *stream) {
    static const kernel_of_width kernels[] = {copy_changes<1>, copy_changes<2>, copy_changes<4>, copy_changes<8>};

    return launch_widths(kernels, list, from, to, stream);
}

extern "C" enum ulp_status cuda_second_write(const struct cuda_decode *decode, const struct cuda_block *from,
                                             const struct cuda_block *to, void *stream) {
    static const kernel_of_width kernels[] = {write_changes<1>, write_changes<2>, write_changes<4>, write_changes<8>};

    return launch_widths(kernels, decode, from, to, stream);
}
