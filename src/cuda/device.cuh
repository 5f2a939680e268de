// SPDX-License-Identifier: Apache-2.0
// What kernels are written with. They are compiled for GPUs by nvcc and, for tests on machines without
// one, by a C++ compiler with tests/gpu/emulate in front of its include path: so launches are function
// calls, dynamic shared memory has a name, and every warp intrinsic takes all lanes.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

#define ALL_LANES 0xffffffffu
#define WARP 32u

#ifdef ULP_EMULATED
template <typename... P, typename... A>
static void launch(void (*kernel)(P...), dim3 grid, unsigned threads, size_t shared, cudaStream_t stream,
                   A... arguments) {
    (void)stream;
    if (grid.x && grid.y)
        emulate_launch(grid, threads, shared, [=] { kernel((P)arguments...); });
}
#define DYNAMIC_SHARED(TYPE, NAME) TYPE *NAME = (TYPE *)emulate_shared()
#else
template <typename... P, typename... A>
static void launch(void (*kernel)(P...), dim3 grid, unsigned threads, size_t shared, cudaStream_t stream,
                   A... arguments) {
    if (shared > 48u << 10)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (grid.x && grid.y)
        kernel<<<grid, threads, shared, stream>>>((P)arguments...);
}
#define DYNAMIC_SHARED(TYPE, NAME)                                                                 \
    extern __shared__ __align__(16) unsigned char dynamic_shared[];                                \
    TYPE *NAME = (TYPE *)dynamic_shared
#endif

__device__ static __forceinline__ unsigned lane_id() {
    return threadIdx.x % WARP;
}

// Sums of the lanes up to and including this one, in groups of `width` lanes.
template <typename T> __device__ static __forceinline__ T sum_up(T value, unsigned width = WARP) {
    for (unsigned by = 1; by < width; by *= 2) {
#ifndef ULP_EMULATED
        if constexpr (sizeof(T) == 4) { // a shuffle says itself whether there is such a lane
            asm volatile("{ .reg .pred p; .reg .u32 t; shfl.sync.up.b32 t|p, %0, %1, %2, 0xffffffff; "
                         "@p add.u32 %0, %0, t; }"
                         : "+r"(value)
                         : "r"(by), "r"((WARP - width) << 8));
            continue;
        }
#endif
        T below = __shfl_up_sync(ALL_LANES, value, by, (int)width);

        if ((lane_id() & (width - 1)) >= by)
            value += below;
    }
    return value;
}

template <typename T> __device__ static __forceinline__ T warp_sum(T value) {
    for (int by = 16; by > 0; by /= 2)
        value += __shfl_xor_sync(ALL_LANES, value, by);
    return value;
}
