// SPDX-License-Identifier: Apache-2.0
// Twins: patch/place.c, place_swap(), and patch/moves.c, moves_list_add(). A block of threads for
// each block of elements. The scan leaves lists in the order of positions (order.cuh), so that what is
// read and written together lies together; a list of the host's, or a very long one, has any order.
#include "cuda/decode.h"

#include "cuda/device.cuh"
#include "cuda/element.cuh"
#include "cuda/memory.h"
#include "cuda/order.cuh"
#include "cuda/place.cuh"
#include "cuda/status.cuh"

#define THREADS ORDER_THREADS
#define IN_FLIGHT 8u // elements that a thread asks for before it uses the first

// ---- writing ----

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
        for (uint32_t k = 0; k < IN_FLIGHT; k++)
            at[k] = positions[i + k * THREADS < block.changes ? i + k * THREADS : i];
#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            value[k] = values[i + k * THREADS < block.changes ? i + k * THREADS : i];
            old[k] = weights[at[k]];
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

    enum ulp_status status = cuda_set_word(poisoned, 1, stream);

    if (status)
        return status;
    for (uint32_t w = 0; w < DECODE_WIDTHS; w++)
        launch((decode->places ? in_places : kernels)[w], decode->ranges[w].all, THREADS, 0,
               (cudaStream_t)stream, *decode, decode->ranges[w]);
    status = cuda_status(cudaGetLastError()); // then it stays: something may have been written
    return status ? status : cuda_set_word(poisoned, 0, stream);
}

// ---- remembering ----

// Of a list that does not ascend: a bit for each element that changes, and how many there are in front
// of each run of elements, tell where each move goes.
#define WORDS (DECODE_BLOCK_MAX / 32)
#define MINE (WORDS / THREADS) // words of a thread, which lie together
#define RUN 8u                 // words of a run
#define RUNS (WORDS / RUN)

struct order {
    uint32_t changes[WORDS + THREADS]; // with a gap behind each thread's, for the banks
    uint32_t before[RUNS];             // changes in front of the run
    uint32_t warps[THREADS / WARP];

    __device__ __forceinline__ uint32_t &word(uint32_t i) {
        return changes[i + i / MINE];
    }
};

__device__ static void mark_changes(struct order *order, const uint32_t *positions, uint32_t count) {
    for (uint32_t i = threadIdx.x; i < WORDS + THREADS; i += THREADS)
        order->changes[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        const uint32_t at = positions[i];

        atomicOr(&order->word(at / 32), 1u << at % 32);
    }
    __syncthreads();
}

__device__ static void count_changes(struct order *order) {
    constexpr uint32_t runs = MINE / RUN;
    const uint32_t first = threadIdx.x * runs, warp = threadIdx.x / WARP;
    uint32_t here[runs], sum = 0;

#pragma unroll
    for (uint32_t r = 0; r < runs; r++) {
        here[r] = sum;
#pragma unroll
        for (uint32_t i = 0; i < RUN; i++)
            sum += (uint32_t)__popc(order->word((first + r) * RUN + i));
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
        order->before[first + r] = before + here[r];
    __syncthreads();
}

__device__ static uint32_t changes_before(struct order *order, uint32_t position) {
    const uint32_t word = position / 32, run = word / RUN;
    uint32_t count = order->before[run];

    for (uint32_t i = run * RUN; i < word; i++)
        count += (uint32_t)__popc(order->word(i));
    return count + (uint32_t)__popc(order->word(word) & ((1u << position % 32) - 1));
}

// What the element is about to do.
template <unsigned WIDTH>
__device__ static __forceinline__ decode_move move_of(uint32_t position, typename element<WIDTH>::type old,
                                                      typename element<WIDTH>::type value) {
    typedef typename element<WIDTH>::type type;
    const int64_t moved = (typename element<WIDTH>::step)(type)(value - old);
    const int64_t clipped = moved < -127 ? -127 : moved > 127 ? 127 : moved;

    return position << 8 | (uint8_t)clipped;
}

// Of a list that ascends.
template <unsigned WIDTH>
__device__ static void remember_in_order(const typename element<WIDTH>::type *weights, const uint32_t *positions,
                                         const typename element<WIDTH>::type *values, uint32_t count,
                                         decode_move *moves) {
    for (uint32_t i = threadIdx.x; i < count; i += IN_FLIGHT * THREADS) {
        uint32_t at[IN_FLIGHT];
        typename element<WIDTH>::type old[IN_FLIGHT];

#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++)
            at[k] = i + k * THREADS < count ? positions[i + k * THREADS] : positions[i];
#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++)
            old[k] = weights[at[k]];
#pragma unroll
        for (uint32_t k = 0; k < IN_FLIGHT; k++) {
            if (i + k * THREADS < count)
                moves[i + k * THREADS] = move_of<WIDTH>(at[k], old[k], values[i + k * THREADS]);
        }
    }
}

template <unsigned WIDTH>
__global__ static void __launch_bounds__(THREADS)
    remember_changes(struct cuda_decode decode, struct decode_range range, decode_move *moves) {
    typedef typename element<WIDTH>::type type;
    DYNAMIC_SHARED(struct order, order);
    const struct decode_block block = decode.blocks[range.first + blockIdx.x];
    const type *weights = (const type *)decode.plan[block.block].old;
    const uint32_t *positions = decode.positions + block.first;
    const type *values = (const type *)(decode.values + block.values);

    if (!block.changes)
        return;
    if (blockIdx.x < range.coded && sorted_whole<WIDTH>(block.changes)) {
        remember_in_order<WIDTH>(weights, positions, values, block.changes, moves + block.first);
        return;
    }
    mark_changes(order, positions, block.changes);
    count_changes(order);
    for (uint32_t i = threadIdx.x; i < block.changes; i += THREADS)
        moves[block.first + changes_before(order, positions[i])] =
            move_of<WIDTH>(positions[i], weights[positions[i]], values[i]);
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
