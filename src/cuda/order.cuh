// SPDX-License-Identifier: Apache-2.0
// Changes come class by class, and are wanted by position. A block of threads sorts a list of them
// where it is, by way of shared memory: into buckets, and in a bucket by counting.
#pragma once

#include "cuda/decode.h"

#include "cuda/device.cuh"
#include "cuda/element.cuh"

#define ORDER_THREADS 256u // and buckets
// Longer lists are ordered piece by piece, and by buckets alone: nearly as good for who writes to where
// they say, and no more work for a change when most elements are changes.
template <unsigned WIDTH> struct sorter {
    static constexpr uint32_t most = WIDTH == 2 ? 7168 : WIDTH == 4 ? 8192 : 5120;
    uint32_t ends[ORDER_THREADS]; // of the buckets, in what is below
    uint32_t warps[ORDER_THREADS / WARP];
    uint32_t positions[most];
    typename element<WIDTH>::type values[most];
};

// Whether such a list ascends from end to end afterwards.
template <unsigned WIDTH> __device__ static __forceinline__ bool sorted_whole(uint32_t changes) {
    return changes <= sorter<WIDTH>::most;
}

// How many changes each bucket has; afterwards, where each begins.
template <unsigned WIDTH>
__device__ static void place_buckets(struct sorter<WIDTH> *sorter, const uint32_t *positions, uint32_t count,
                                     uint32_t shift) {
    const uint32_t warp = threadIdx.x / WARP;

    sorter->ends[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += ORDER_THREADS)
        atomicAdd(&sorter->ends[positions[i] >> shift], 1u);
    __syncthreads();
    const uint32_t here = sorter->ends[threadIdx.x], until = sum_up(here);
    uint32_t before = until - here;

    if (lane_id() == WARP - 1)
        sorter->warps[warp] = until;
    __syncthreads();
    for (uint32_t i = 0; i < warp; i++)
        before += sorter->warps[i];
    sorter->ends[threadIdx.x] = before;
    __syncthreads();
}

// A bucket has a dozen or so: each change counts those of its bucket that are in front of it.
template <unsigned WIDTH>
__device__ static __forceinline__ uint32_t rank_in_bucket(const struct sorter<WIDTH> *sorter, uint32_t position,
                                                          uint32_t shift) {
    const uint32_t bucket = position >> shift, first = bucket ? sorter->ends[bucket - 1] : 0;
    const uint32_t end = sorter->ends[bucket];
    uint32_t rank = first;

    for (uint32_t i = first; i < end; i++)
        rank += sorter->positions[i] < position;
    return rank;
}

// All positions are different, and below `elements`.
template <unsigned WIDTH>
__device__ static void sort_changes(struct sorter<WIDTH> *sorter, uint32_t *positions,
                                    typename element<WIDTH>::type *values, uint32_t count, uint32_t elements) {
    constexpr uint32_t most = ::sorter<WIDTH>::most;
    const uint32_t shift = 32 - (uint32_t)__clz((elements - 1) / ORDER_THREADS);
    const bool whole = sorted_whole<WIDTH>(count);

    for (uint32_t done = 0; done < count; done += most, positions += most, values += most) {
        const uint32_t here = count - done < most ? count - done : most;

        place_buckets<WIDTH>(sorter, positions, here, shift);
        for (uint32_t i = threadIdx.x; i < here; i += ORDER_THREADS) {
            const uint32_t at = positions[i], to = atomicAdd(&sorter->ends[at >> shift], 1u);

            sorter->positions[to] = at;
            sorter->values[to] = values[i];
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < here; i += ORDER_THREADS) {
            const uint32_t at = sorter->positions[i], to = whole ? rank_in_bucket<WIDTH>(sorter, at, shift) : i;

            positions[to] = at;
            values[to] = sorter->values[i];
        }
        __syncthreads();
    }
}
