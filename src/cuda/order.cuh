// SPDX-License-Identifier: Apache-2.0
// Changes come class by class, and are wanted by position. A bit for each element that changes, and
// how many there are in front of each run of elements, tell where each change goes. By a block of 256
// threads, all of which come to these functions.
#pragma once

#include "cuda/decode.h"

#include "cuda/device.cuh"
#include "cuda/element.cuh"

#define ORDER_THREADS 256u
#define ORDER_WORDS (DECODE_BLOCK_MAX / 32)
#define ORDER_MINE (ORDER_WORDS / ORDER_THREADS) // words of a thread, which lie together
#define ORDER_RUN 8u                             // words of a run
#define ORDER_RUNS (ORDER_WORDS / ORDER_RUN)

template <typename Count> struct order {
    uint32_t changes[ORDER_WORDS + ORDER_THREADS]; // with a gap behind each thread's, for the banks
    Count before[ORDER_RUNS];                      // changes in front of the run
    uint32_t warps[ORDER_THREADS / WARP];

    __device__ __forceinline__ uint32_t &word(uint32_t i) {
        return changes[i + i / ORDER_MINE];
    }
};

template <typename Count>
__device__ static void mark_changes(struct order<Count> *order, const uint32_t *positions, uint32_t count) {
    for (uint32_t i = threadIdx.x; i < ORDER_WORDS + ORDER_THREADS; i += ORDER_THREADS)
        order->changes[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += ORDER_THREADS) {
        const uint32_t at = positions[i];

        atomicOr(&order->word(at / 32), 1u << at % 32);
    }
    __syncthreads();
}

template <typename Count> __device__ static void count_changes(struct order<Count> *order) {
    constexpr uint32_t runs = ORDER_MINE / ORDER_RUN;
    const uint32_t first = threadIdx.x * runs, warp = threadIdx.x / WARP;
    uint32_t here[runs], sum = 0;

#pragma unroll
    for (uint32_t r = 0; r < runs; r++) {
        here[r] = sum;
#pragma unroll
        for (uint32_t i = 0; i < ORDER_RUN; i++)
            sum += (uint32_t)__popc(order->word((first + r) * ORDER_RUN + i));
    }
    const uint32_t until = sum_up(sum);
    uint32_t before = until - sum;

    if (lane_id() == WARP - 1)
        order->warps[warp] = until;
    __syncthreads();
    for (uint32_t i = 0; i < warp; i++)
        before += order->warps[i];
#pragma unroll
    for (uint32_t r = 0; r < runs; r++)
        order->before[first + r] = (Count)(before + here[r]);
    __syncthreads();
}

template <typename Count>
__device__ static uint32_t changes_before(struct order<Count> *order, uint32_t position) {
    const uint32_t word = position / 32, run = word / ORDER_RUN;
    uint32_t count = order->before[run];

    for (uint32_t i = run * ORDER_RUN; i < word; i++)
        count += (uint32_t)__popc(order->word(i));
    return count + (uint32_t)__popc(order->word(word) & ((1u << position % 32) - 1));
}

// ---- a list put into order, where it is ----

// Longer lists are ordered piece by piece, which is as good for who writes to where they say.
template <unsigned WIDTH> struct sorter {
    static constexpr uint32_t most = WIDTH == 1 ? 8192 : WIDTH == 8 ? 4096 : 4608;
    struct order<uint16_t> order;
    typename element<WIDTH>::type values[most];
};

// Whether the scan leaves such a list ascending from end to end.
template <unsigned WIDTH> __device__ static __forceinline__ bool sorted_whole(uint32_t changes) {
    return changes <= sorter<WIDTH>::most;
}

// The positions are the bits that are set: each thread writes those of its words.
__device__ static __forceinline__ void write_positions(struct order<uint16_t> *order, uint32_t *positions,
                                                       uint32_t count) {
    const uint32_t first = threadIdx.x * ORDER_MINE;
    uint32_t to = order->before[first / ORDER_RUN];

    for (uint32_t i = first; i < first + ORDER_MINE; i++) {
        for (uint32_t bits = order->word(i); bits && to < count; bits &= bits - 1)
            positions[to++] = 32 * i + (uint32_t)__ffs(bits) - 1;
    }
}

// All positions are different, and in the block.
template <unsigned WIDTH>
__device__ static void sort_changes(struct sorter<WIDTH> *sorter, uint32_t *positions,
                                    typename element<WIDTH>::type *values, uint32_t count) {
    for (uint32_t done = 0; done < count; done += sorter->most) {
        const uint32_t here = min(count - done, +sorter->most);

        mark_changes(&sorter->order, positions + done, here);
        count_changes(&sorter->order);
        for (uint32_t i = threadIdx.x; i < here; i += ORDER_THREADS)
            sorter->values[changes_before(&sorter->order, positions[done + i])] = values[done + i];
        __syncthreads();
        write_positions(&sorter->order, positions + done, here);
        for (uint32_t i = threadIdx.x; i < here; i += ORDER_THREADS)
            values[done + i] = sorter->values[i];
        __syncthreads();
    }
}
