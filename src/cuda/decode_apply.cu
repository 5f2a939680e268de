// SPDX-License-Identifier: Apache-2.0
// Twins: patch/place.c, place_swap(), and patch/moves.c, moves_list_add(). A block of threads for
// each block of elements.
#include "cuda/decode.h"

#include "cuda/device.cuh"
#include "cuda/element.cuh"
#include "cuda/place.cuh"
#include "cuda/status.cuh"

#define THREADS 256u
#define IN_FLIGHT 4u // elements that a thread asks for before it uses the first

// ---- writing ----

__global__ static void set_word(volatile uint32_t *word, uint32_t value) {
    *word = value;
}

template <unsigned WIDTH>
__global__ static void __launch_bounds__(THREADS)
    swap_changes(struct cuda_decode decode, struct decode_range range) {
    typedef typename element<WIDTH>::type type;
    const struct decode_block block = decode.blocks[range.first + blockIdx.x];
    type *weights = (type *)(uintptr_t)decode.plan[block.block].old;
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
                old[k] = weights[at[k]];
            }
        }
#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            if (i + k * THREADS < block.changes) {
                weights[at[k]] = value[k];
                values[i + k * THREADS] = old[k];
            }
        }
    }
}

// The same where blocks do not lie end to end.
template <unsigned WIDTH>
__global__ static void __launch_bounds__(THREADS)
    swap_places(struct cuda_decode decode, struct decode_range range) {
    typedef typename element<WIDTH>::type type;
    const struct decode_block block = decode.blocks[range.first + blockIdx.x];
    const struct cuda_place place = decode.places[block.block];
    type *weights = (type *)(uintptr_t)place.old;
    const uint32_t *positions = decode.positions + block.first;
    type *values = (type *)(decode.values + block.values);

    for (uint32_t i = threadIdx.x; i < block.changes; i += IN_FLIGHT * THREADS) {
        type *at[IN_FLIGHT], old[IN_FLIGHT], value[IN_FLIGHT];

#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            if (i + k * THREADS < block.changes) {
                at[k] = weights + place_step(place, positions[i + k * THREADS]);
                value[k] = values[i + k * THREADS];
                old[k] = *at[k];
            }
        }
#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            if (i + k * THREADS < block.changes) {
                *at[k] = value[k];
                values[i + k * THREADS] = old[k];
            }
        }
    }
}

extern "C" enum ulp_status cuda_decode_swap(const struct cuda_decode *decode, uint32_t *poisoned,
                                            void *stream) {
    static void (*const kernels[])(struct cuda_decode, struct decode_range) = {
        swap_changes<1>, swap_changes<2>, swap_changes<4>, swap_changes<8>};
    static void (*const in_places[])(struct cuda_decode, struct decode_range) = {
        swap_places<1>, swap_places<2>, swap_places<4>, swap_places<8>};

    launch(set_word, 1, 1, 0, (cudaStream_t)stream, poisoned, 1u);
    for (uint32_t w = 0; w < DECODE_WIDTHS; w++)
        launch((decode->places ? in_places : kernels)[w], decode->ranges[w].all, THREADS, 0,
               (cudaStream_t)stream, *decode, decode->ranges[w]);
    if (cudaPeekAtLastError() == cudaSuccess) // else it stays: something may have been written
        launch(set_word, 1, 1, 0, (cudaStream_t)stream, poisoned, 0u);
    return cuda_status(cudaGetLastError());
}

// ---- remembering ----

// Changes come class by class, moves are wanted by position. A bit for each element that changes,
// and how many there are in front of each run of 256, tell where each change goes.
#define RUN_WORDS 8u
#define RUN (32u * RUN_WORDS)
#define RUNS (DECODE_BLOCK_MAX / RUN)
#define RUNS_PER_THREAD (RUNS / THREADS)

struct order {
    uint32_t changes[DECODE_BLOCK_MAX / 32];
    uint32_t before[RUNS]; // changes in front of the run
    uint32_t warps[THREADS / WARP];
};

__device__ static void mark_changes(struct order *order, const uint32_t *positions,
                                    uint32_t count) {
    for (uint32_t i = threadIdx.x; i < DECODE_BLOCK_MAX / 32; i += THREADS)
        order->changes[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += THREADS)
        atomicOr(&order->changes[positions[i] / 32], 1u << positions[i] % 32);
    __syncthreads();
}

// Each thread adds up a few runs that lie together.
__device__ static void count_changes(struct order *order) {
    const uint32_t first = threadIdx.x * RUNS_PER_THREAD, warp = threadIdx.x / WARP;
    uint32_t here[RUNS_PER_THREAD], sum = 0, until, before;

    for (uint32_t r = 0; r < RUNS_PER_THREAD; r++) {
        here[r] = sum;
        for (uint32_t i = 0; i < RUN_WORDS; i++)
            sum += (uint32_t)__popc(order->changes[(first + r) * RUN_WORDS + i]);
    }
    until = sum_up(sum);
    if (lane_id() == WARP - 1)
        order->warps[warp] = until;
    __syncthreads();
    before = until - sum;
    for (uint32_t i = 0; i < warp; i++)
        before += order->warps[i];
    for (uint32_t r = 0; r < RUNS_PER_THREAD; r++)
        order->before[first + r] = before + here[r];
    __syncthreads();
}

__device__ static uint32_t changes_before(const struct order *order, uint32_t position) {
    const uint32_t run = position / RUN, word = position / 32;
    uint32_t count = order->before[run];

    for (uint32_t i = run * RUN_WORDS; i < word; i++)
        count += (uint32_t)__popc(order->changes[i]);
    return count + (uint32_t)__popc(order->changes[word] & ((1u << position % 32) - 1));
}

template <unsigned WIDTH>
__global__ static void __launch_bounds__(THREADS)
    remember_changes(struct cuda_decode decode, struct decode_range range, decode_move *moves) {
    typedef typename element<WIDTH>::type type;
    typedef typename element<WIDTH>::step step;
    DYNAMIC_SHARED(struct order, order);
    const struct decode_block block = decode.blocks[range.first + blockIdx.x];
    const type *weights = (const type *)decode.plan[block.block].old;
    const uint32_t *positions = decode.positions + block.first;
    const type *values = (const type *)(decode.values + block.values);

    if (!block.changes)
        return;
    mark_changes(order, positions, block.changes);
    count_changes(order);
    for (uint32_t i = threadIdx.x; i < block.changes; i += THREADS) {
        const int64_t moved = (step)(type)(values[i] - weights[positions[i]]);
        const int64_t clipped = moved < -127 ? -127 : moved > 127 ? 127 : moved;

        moves[block.first + changes_before(order, positions[i])] =
            positions[i] << 8 | (uint8_t)clipped;
    }
}

extern "C" enum ulp_status cuda_decode_remember(const struct cuda_decode *decode,
                                                decode_move *moves, void *stream) {
    static void (*const kernels[])(struct cuda_decode, struct decode_range, decode_move *) = {
        remember_changes<1>, remember_changes<2>, remember_changes<4>, remember_changes<8>};

    for (uint32_t w = 0; w < DECODE_WIDTHS; w++)
        launch(kernels[w], decode->ranges[w].all, THREADS, sizeof(struct order),
               (cudaStream_t)stream, *decode, decode->ranges[w], moves);
    return cuda_status(cudaGetLastError());
}
