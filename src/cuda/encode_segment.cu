// SPDX-License-Identifier: Apache-2.0
// Twins: code/stream.c and code/fields.c for the headers, patch_checksum() for the checksums.
#include "cuda/encode.cuh"

#include "scan/digest_mix.h"

#define THREADS 256u
#define WARPS (THREADS / WARP)
#define RICE_ESCAPE 24u
#define RICE_PARAMETERS 16u
#define COLUMNS (2 * CLASSES + 1)
#define CLASS_WORDS 64u // of a class's models: 136 shares of at most 14 bits, and 33 bits
#define MAP_WORDS 16u   // of a bucket of the map: 64 runs of 6 bits
#define BUCKETS MOVE_BUCKETS

// ---- headers: one thread writes the bits of a bucket of the map or of a class's models ----

struct BitString {
    uint32_t *words; // zero at first
    uint32_t bits;

    __device__ void put(uint32_t value, uint32_t count) {
        if (!count)
            return;
        uint64_t shifted = (uint64_t)value << bits % 32;

        words[bits / 32] |= (uint32_t)shifted;
        if (shifted >> 32)
            words[bits / 32 + 1] |= (uint32_t)(shifted >> 32);
        bits += count;
    }
};

__device__ static void put_map(BitString *to, const uint8_t *of) {
    for (uint32_t at = 0, run; at < EXPONENT_CELLS; at += run) {
        for (run = 1; at + run < EXPONENT_CELLS && of[at + run] == of[at]; run++) {
        }
        to->put(of[at], 4);
        uint32_t less = run - 1;

        if (less >> 1 >= RICE_ESCAPE) {
            to->put((1u << RICE_ESCAPE) - 1, RICE_ESCAPE);
            to->put(less, 32);
        } else { // ones, a zero, one bit
            to->put((1u << (less >> 1)) - 1, (less >> 1) + 1);
            to->put(less & 1, 1);
        }
    }
}

__device__ static void put_model(BitString *to, const ClassModel *model) {
    to->put(model->used, 1);
    if (model->used) {
        to->put(model->rate, 16);
        to->put(model->top_gap, 7);
    }
    to->put(model->changes, 1);
    if (!model->changes)
        return;
    to->put(model->top_value, 8);
    for (uint32_t s = 0; s <= model->top_value; s++) {
        uint32_t share = model->share[s], length = share ? log2_floor(share) + 1 : 0;

        to->put(length, 4);
        if (length)
            to->put(share & ((1u << (length - 1)) - 1), length - 1);
    }
}

struct HeadShared {
    ClassModel model[CLASSES];
    uint32_t map[BUCKETS][MAP_WORDS];
    uint32_t classes[CLASSES][CLASS_WORDS];
    uint32_t bits[BUCKETS + CLASSES];
};

// Appends a string of bits to the head, by all threads of a warp.
__device__ static uint32_t append(uint32_t *head, uint32_t at, const uint32_t *words, uint32_t bits) {
    for (uint32_t i = lane_id(); i < (bits + 31) / 32; i += WARP) {
        uint64_t shifted = (uint64_t)words[i] << at % 32;

        atomicOr(&head[at / 32 + i], (uint32_t)shifted);
        if (shifted >> 32)
            atomicOr(&head[at / 32 + i + 1], (uint32_t)(shifted >> 32));
    }
    return at + bits;
}

__global__ static void __launch_bounds__(WARP) write_heads(Wave wave) {
    __shared__ HeadShared shared;
    SegmentState *state = &wave.segment[blockIdx.x];
    const uint32_t buckets = wave.cells / EXPONENT_CELLS, lane = lane_id();

    if (state->elsewhere || !state->changes || *wave.overflow)
        return;
    for (uint32_t i = lane; i < sizeof shared / 4; i += WARP)
        ((uint32_t *)&shared)[i] = 0;
    for (uint32_t i = lane; i < HEAD_WORDS; i += WARP)
        state->head[i] = 0;
    __syncwarp();
    for (uint32_t i = lane; i < sizeof shared.model / 4; i += WARP)
        ((uint32_t *)shared.model)[i] = ((const uint32_t *)state->model)[i];
    __syncwarp();
    if (lane < buckets) {
        BitString to = {shared.map[lane], 0};

        put_map(&to, state->of + EXPONENT_CELLS * lane);
        shared.bits[lane] = to.bits;
    } else if (lane >= BUCKETS && lane < BUCKETS + state->classes) {
        BitString to = {shared.classes[lane - BUCKETS], 0};

        put_model(&to, &shared.model[lane - BUCKETS]);
        shared.bits[lane] = to.bits;
    }
    __syncwarp();
    const uint32_t front = (buckets > 1) | (state->classes - 1) << 2 | state->flipped << 6;
    uint32_t at = append(state->head, 0, &front, 11);

    for (uint32_t i = 0; i < buckets; i++)
        at = append(state->head, at, shared.map[i], shared.bits[i]);
    for (uint32_t k = 0; k < state->classes; k++)
        at = append(state->head, at, shared.classes[k], shared.bits[BUCKETS + k]);
    if (lane == 0)
        state->head_bits = at;
}

// ---- the directory: columns of numbers, as differences from block to block ----

__device__ static uint32_t entry_of(const BlockState &block, uint32_t flipped, uint32_t column) {
    if (column < CLASSES)
        return events_of(block, flipped, column);
    return column < 2 * CLASSES ? block.changes[column - CLASSES] : block.bytes;
}

__device__ static uint32_t zigzag_at(const BlockState *blocks, uint32_t flipped, uint32_t column, uint32_t b) {
    uint32_t before = b ? entry_of(blocks[b - 1], flipped, column) : 0;
    uint32_t difference = entry_of(blocks[b], flipped, column) - before;

    return difference << 1 ^ (difference & 0x80000000u ? ~0u : 0);
}

__device__ static __forceinline__ uint32_t rice_bits(uint32_t z, uint32_t k) {
    return z >> k >= RICE_ESCAPE ? RICE_ESCAPE + 32 : (z >> k) + 1 + k;
}

// Columns come class by class, events and then changes; the last has the bytes.
__device__ static __forceinline__ uint32_t column_in_order(uint32_t i) {
    return i == COLUMNS - 1 ? i : i / 2 + (i % 2 ? CLASSES : 0);
}

__device__ static bool has_column(const SegmentState *state, uint32_t column) {
    if (column == COLUMNS - 1)
        return true;
    if (column % CLASSES >= state->classes)
        return false;
    const ClassModel *model = &state->model[column % CLASSES];

    return column < CLASSES ? model->used : column - CLASSES >= state->flipped && model->changes;
}

__device__ static void measure_column(const BlockState *blocks, uint32_t count, SegmentState *state,
                                      uint32_t column) {
    uint64_t cost[RICE_PARAMETERS] = {0}, best = ~UINT64_C(0);
    uint32_t parameter = 0;

    for (uint32_t b = lane_id(); b < count; b += WARP) {
        uint32_t z = zigzag_at(blocks, state->flipped, column, b);

#pragma unroll
        for (uint32_t k = 0; k < RICE_PARAMETERS; k++)
            cost[k] += rice_bits(z, k);
    }
#pragma unroll
    for (uint32_t k = 0; k < RICE_PARAMETERS; k++) {
        uint64_t all = warp_sum(cost[k]);

        parameter = all < best ? k : parameter;
        best = min(best, all);
    }
    if (lane_id() == 0) {
        state->rice[column] = parameter;
        state->column_bits[column] = (uint32_t)best + 4;
    }
}

// Where the payload of each block goes, one warp for a segment.
__device__ static uint64_t place_payloads(BlockState *blocks, uint32_t count) {
    uint64_t total = 0;

    for (uint32_t from = 0; from < count; from += WARP) {
        uint32_t b = from + lane_id();
        uint64_t bytes = b < count ? blocks[b].bytes : 0, upto = sum_up(bytes);

        if (b < count)
            blocks[b].payload = total + upto - bytes;
        total += __shfl_sync(ALL_LANES, upto, 31);
    }
    return total;
}

__global__ static void __launch_bounds__(THREADS) measure_segments(Wave wave) {
    const cuda_segment segment = wave.segments[blockIdx.x];
    SegmentState *state = &wave.segment[blockIdx.x];
    BlockState *blocks = &wave.block[segment.first_block - wave.first_block];
    const uint32_t warp = threadIdx.x / WARP;

    if (threadIdx.x == 0)
        state->bytes = 0;
    if (state->elsewhere || !state->changes || *wave.overflow)
        return;
    for (uint32_t column = warp; column < COLUMNS; column += WARPS) {
        if (has_column(state, column))
            measure_column(blocks, segment.blocks, state, column);
        else if (lane_id() == 0)
            state->column_bits[column] = 0;
    }
    if (warp == WARPS - 1) {
        uint64_t total = place_payloads(blocks, segment.blocks);

        if (lane_id() == 0)
            state->payload_bytes = total;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t bits = state->head_bits;

        for (uint32_t column = 0; column < COLUMNS; column++)
            bits += state->column_bits[column];
        state->header_bytes = (uint32_t)((bits + 7) / 8);
        state->bytes = state->header_bytes + state->payload_bytes;
    }
}

// One warp: segments follow each other in the output.
__global__ static void place_segments(Wave wave) {
    uint64_t at = *wave.output_used;

    for (uint32_t from = 0; from < wave.segment_count; from += WARP) {
        uint32_t s = from + lane_id();
        uint64_t bytes = s < wave.segment_count && !*wave.overflow ? wave.segment[s].bytes : 0, upto = sum_up(bytes);

        if (s < wave.segment_count)
            wave.segment[s].offset = at + upto - bytes;
        at += __shfl_sync(ALL_LANES, upto, 31);
    }
    __syncwarp();
    if (lane_id() == 0) {
        if (at > wave.output_limit)
            atomicOr(wave.overflow, FULL_OUTPUT);
        else
            *wave.output_used = at;
    }
}

// Bits of the output at any place; neighbours share words, and what is there was zero.
__device__ static void or_bits(uint8_t *output, uint64_t bit, uint64_t value) {
    uint8_t *byte = output + bit / 8;
    uint32_t *word = (uint32_t *)((uintptr_t)byte & ~(uintptr_t)3);
    uint32_t shift = (uint32_t)((uintptr_t)byte & 3) * 8 + (uint32_t)(bit % 8);
    uint64_t low = value << shift;

    if ((uint32_t)low)
        atomicOr(word, (uint32_t)low);
    if ((uint32_t)(low >> 32))
        atomicOr(word + 1, (uint32_t)(low >> 32));
    if (shift && value >> (64 - shift))
        atomicOr(word + 2, (uint32_t)(value >> (64 - shift)));
}

__device__ static void write_column(const BlockState *blocks, uint32_t count, const SegmentState *state,
                                    uint32_t column, uint8_t *output, uint64_t bit) {
    const uint32_t k = state->rice[column];

    if (lane_id() == 0)
        or_bits(output, bit, k);
    bit += 4;
    for (uint32_t from = 0; from < count; from += WARP) {
        uint32_t b = from + lane_id(), z = b < count ? zigzag_at(blocks, state->flipped, column, b) : 0;
        uint32_t bits = b < count ? rice_bits(z, k) : 0, upto = sum_up(bits), ones = z >> k;
        uint64_t at = bit + upto - bits;

        if (b < count && ones >= RICE_ESCAPE)
            or_bits(output, at, ((UINT64_C(1) << RICE_ESCAPE) - 1) | (uint64_t)z << RICE_ESCAPE);
        else if (b < count)
            or_bits(output, at, ((UINT64_C(1) << ones) - 1) | (uint64_t)(z & ((1u << k) - 1)) << (ones + 1));
        bit += __shfl_sync(ALL_LANES, upto, 31);
    }
}

__global__ static void __launch_bounds__(THREADS) write_directories(Wave wave) {
    const cuda_segment segment = wave.segments[blockIdx.x];
    const SegmentState *state = &wave.segment[blockIdx.x];
    const BlockState *blocks = &wave.block[segment.first_block - wave.first_block];
    uint8_t *output = wave.output + state->offset;
    uint64_t bit = state->head_bits;

    if (!state->bytes || *wave.overflow)
        return;
    for (uint32_t i = threadIdx.x; i < (state->head_bits + 31) / 32; i += THREADS)
        or_bits(output, 32 * (uint64_t)i, state->head[i]);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        uint32_t column = column_in_order(i);

        if (i % WARPS == threadIdx.x / WARP && state->column_bits[column])
            write_column(blocks, segment.blocks, state, column, output, bit);
        bit += state->column_bits[column];
    }
}

void encode_heads(const Wave &wave, cudaStream_t stream) {
    launch(write_heads, wave.segment_count, WARP, 0, stream, wave);
}

void encode_measure(const Wave &wave, cudaStream_t stream) {
    launch(measure_segments, wave.segment_count, THREADS, 0, stream, wave);
}

void encode_place(const Wave &wave, cudaStream_t stream) {
    launch(place_segments, 1, WARP, 0, stream, wave);
}

void encode_directories(const Wave &wave, cudaStream_t stream) {
    launch(write_directories, wave.segment_count, THREADS, 0, stream, wave);
}

// ---- checksums ----

#define CHECKSUM_PARTS 16u // thread blocks that share a segment

// Eight bytes from anywhere, zero from `end` on; the memory goes on for eight bytes behind it.
__device__ static uint64_t load_unaligned(const uint8_t *from, const uint8_t *end) {
    const uint32_t *word = (const uint32_t *)((uintptr_t)from & ~(uintptr_t)3);
    uint32_t shift = (uint32_t)((uintptr_t)from & 3) * 8;
    uint32_t low = __funnelshift_r(word[0], word[1], shift), high = __funnelshift_r(word[1], word[2], shift);
    uint64_t value = (uint64_t)high << 32 | low;

    return end - from >= 8 ? value : value & ((UINT64_C(1) << 8 * (end - from)) - 1);
}

__global__ static void __launch_bounds__(THREADS) checksum_segments(Wave wave) {
    const SegmentState *state = &wave.segment[blockIdx.x];
    const uint8_t *from = wave.output + state->offset, *end = from + state->bytes;
    uint64_t sum = 0;

    if (!state->bytes || *wave.overflow)
        return;
    for (uint64_t i = blockIdx.y * THREADS + threadIdx.x; 8 * i < state->bytes; i += CHECKSUM_PARTS * THREADS)
        sum += digest_mix(i, load_unaligned(from + 8 * i, end)).lane[0];
    sum = warp_sum(sum);
    if (lane_id() == 0)
        atomicAdd((unsigned long long *)&wave.segment[blockIdx.x].checksum, (unsigned long long)sum);
}

void encode_checksums(const Wave &wave, cudaStream_t stream) {
    launch(checksum_segments, dim3(wave.segment_count, CHECKSUM_PARTS), THREADS, 0, stream, wave);
}
