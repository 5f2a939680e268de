// SPDX-License-Identifier: Apache-2.0
// Twins: patch/place.c, place_read(), place_digest() and place_replace_split(). A block of threads for each
// block of elements, or a few.
#include "cuda/place.cuh"

#include "cuda/element.cuh"
#include "cuda/mix.cuh"
#include "cuda/status.cuh"

#define THREADS 256u
#define SLICES 4u
#define WORD_BYTES 8u
#define PIECE_SHIFT 24u // elements of a piece, as in patch/grid.h

// ---- copying together ----

template <unsigned WIDTH>
__device__ static void pack(const struct cuda_place &place, const uint8_t *from, uint8_t *to, uint32_t count) {
    typedef typename element<WIDTH>::type type;

    for (uint32_t i = blockIdx.y * THREADS + threadIdx.x; i < count; i += SLICES * THREADS)
        ((type *)to)[i] = ((const type *)from)[place_step(place, i)];
}

__global__ static void __launch_bounds__(THREADS)
    pack_blocks(struct cuda_plan plan, const struct cuda_place *places, uint32_t next) {
    const struct cuda_place place = places[blockIdx.x];
    const struct cuda_block block = plan.blocks[blockIdx.x];
    const uint32_t width = plan.segments[block.segment].kind.width, each = WORD_BYTES / width;
    const uint8_t *from = next ? place.new_ : place.old;
    uint8_t *to = (uint8_t *)(uintptr_t)(next ? block.new_ : block.old);

    if (!place.packed)
        return;
    if (((uintptr_t)from | (uintptr_t)to) % WORD_BYTES == 0 && block.elements % each == 0)
        pack<8>(place_in_words(place, each), from, to, block.elements / each);
    else if (width == 1)
        pack<1>(place, from, to, block.elements);
    else if (width == 2)
        pack<2>(place, from, to, block.elements);
    else if (width == 4)
        pack<4>(place, from, to, block.elements);
    else
        pack<8>(place, from, to, block.elements);
}

extern "C" enum ulp_status cuda_pack_blocks(const struct cuda_plan *plan, const struct cuda_place *places,
                                            uint32_t next, void *stream) {
    launch(pack_blocks, dim3(plan->block_count, SLICES), THREADS, 0, (cudaStream_t)stream, *plan, places, next);
    return cuda_status(cudaGetLastError());
}

// ---- digesting ----

// A word that begins at `data`, which may not be aligned and has `bytes` that count; the rest are zeros.
__device__ static __forceinline__ uint64_t word_at(const uint8_t *data, uint32_t bytes) {
    uint64_t value = 0;

    if ((uintptr_t)data % WORD_BYTES == 0 && bytes >= WORD_BYTES)
        return *(const uint64_t *)data;
    for (uint32_t i = 0; i < WORD_BYTES && i < bytes; i++)
        value |= (uint64_t)data[i] << 8 * i;
    return value;
}

__global__ static void __launch_bounds__(THREADS)
    digest_places(struct cuda_plan plan, const struct cuda_place *places, uint32_t next, unsigned long long *sums) {
    const struct cuda_block block = plan.blocks[blockIdx.x];
    const uint32_t width = plan.segments[block.segment].kind.width;
    const struct cuda_place place = place_in_words(places[blockIdx.x], WORD_BYTES / width);
    const uint8_t *data = next ? place.new_ : place.old;
    const uint32_t bytes = block.elements * width, words = (bytes + WORD_BYTES - 1) / WORD_BYTES;
    struct ulp_sum sum = {{0, 0}};

    for (uint32_t i = blockIdx.y * THREADS + threadIdx.x; i < words; i += SLICES * THREADS) {
        const uint64_t step = place_step(place, i);

        sum_add(&sum, digest_mix(place.first_word + step, word_at(data + WORD_BYTES * step, bytes - WORD_BYTES * i)));
    }
    deliver_sum(sum, &sums[2 * (size_t)place.piece]);
}

extern "C" enum ulp_status cuda_digest_places(const struct cuda_plan *plan, const struct cuda_place *places,
                                              uint32_t next, unsigned long long *sums, void *stream) {
    launch(digest_places, dim3(plan->block_count, SLICES), THREADS, 0, (cudaStream_t)stream, *plan, places, next,
           sums);
    return cuda_status(cudaGetLastError());
}

// ---- how sums change ----

// What a thread has added up, all of one piece. Words that follow each other are mostly of the same.
struct Held {
    struct ulp_sum sum;
    uint32_t piece;
};

__device__ static void deliver_held(const Held &held, unsigned long long *sums) {
    for (int lane = 0; lane < 2; lane++) {
        if (held.sum.lane[lane])
            atomicAdd(&sums[2 * (size_t)held.piece + lane], (unsigned long long)held.sum.lane[lane]);
    }
}

__device__ static __forceinline__ void hold_for(Held *held, uint32_t piece, unsigned long long *sums) {
    if (held->piece == piece)
        return;
    deliver_held(*held, sums);
    *held = {{{0, 0}}, piece};
}

// The packed copy of a block, in words.
struct Copy {
    struct cuda_place place; // in words
    const uint8_t *data;
    uint32_t bytes, each, masks;
};

// The words that something changes in, as they are now: added, or subtracted. Each thread has its own bits.
template <bool ADD>
__device__ static void sum_touched(const Copy &copy, const uint32_t *touched, Held *held, unsigned long long *sums) {
    for (uint32_t m = threadIdx.x; m < copy.masks; m += THREADS) {
        for (uint32_t bits = touched[m]; bits; bits &= bits - 1) {
            const uint32_t word = 32 * m + (uint32_t)__ffs(bits) - 1;
            const uint64_t step = place_step(copy.place, word);
            const uint64_t value = word_at(copy.data + WORD_BYTES * word, copy.bytes - WORD_BYTES * word);
            const struct ulp_sum mix = digest_mix(copy.place.first_word + step, value);

            if (copy.place.split)
                hold_for(held, copy.place.piece + (uint32_t)((copy.place.in_piece + step * copy.each) >> PIECE_SHIFT),
                         sums);
            if (ADD)
                sum_add(&held->sum, mix);
            else
                sum_subtract(&held->sum, mix);
        }
    }
}

// The old words out of the sums, the new elements into the copy, the new words into the sums.
template <unsigned WIDTH>
__global__ static void __launch_bounds__(THREADS) sum_changes(struct cuda_decode decode, struct decode_range range) {
    typedef typename element<WIDTH>::type type;
    DYNAMIC_SHARED(uint32_t, touched);
    const uint32_t number = range.first + blockIdx.x, each = WORD_BYTES / WIDTH;
    const struct decode_block block = decode.blocks[number];
    const struct cuda_block of_plan = decode.plan[block.block];
    const struct cuda_place place = decode.places[block.block];
    const uint32_t *positions = decode.positions + block.first;
    const type *values = (const type *)(decode.values + block.values);
    const uint32_t words = (of_plan.elements + each - 1) / each;
    const Copy copy = {place_in_words(place, each), of_plan.old, of_plan.elements * WIDTH, each, (words + 31) / 32};
    Held held = {{{0, 0}}, place.piece};

    if (!place.packed || decode.faults[number]) // lists of a block with a fault are not to be trusted
        return;
    for (uint32_t i = threadIdx.x; i < copy.masks; i += THREADS)
        touched[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < block.changes; i += THREADS) {
        const uint32_t word = positions[i] / each;

        atomicOr(&touched[word / 32], 1u << word % 32);
    }
    __syncthreads();
    sum_touched<false>(copy, touched, &held, decode.sums);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < block.changes; i += THREADS)
        ((type *)(uintptr_t)copy.data)[positions[i]] = values[i];
    __syncthreads();
    sum_touched<true>(copy, touched, &held, decode.sums);
    deliver_held(held, decode.sums);
}

template <unsigned WIDTH>
static void sum_width(const struct cuda_decode *decode, struct decode_range range, cudaStream_t stream) {
    launch(sum_changes<WIDTH>, range.coded, THREADS, DECODE_BLOCK_MAX * WIDTH / WORD_BYTES / 8, stream, *decode,
           range);
}

extern "C" enum ulp_status cuda_decode_sums(const struct cuda_decode *decode, void *stream) {
    static void (*const kernels[])(const struct cuda_decode *, struct decode_range, cudaStream_t) = {
        sum_width<1>, sum_width<2>, sum_width<4>, sum_width<8>};

    for (uint32_t w = 0; w < DECODE_WIDTHS; w++)
        kernels[w](decode, decode->ranges[w], (cudaStream_t)stream);
    return cuda_status(cudaGetLastError());
}
