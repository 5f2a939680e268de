// SPDX-License-Identifier: Apache-2.0
// How many elements of each class are where. A lookup by exponent gives a 64-bit word with a 1 in
// the field of the class; sixteen fields of four bits count eight elements, a part. Parts add up to
// chunks of 32 elements, a byte for each class; chunks to groups; groups to the tile.
//
// Elements that moved in the patch before have another class than their exponent alone says; those
// few are corrected in all counts, and remembered for who looks at single elements.
#pragma once

#include "cuda/decode.h"

#include "cuda/tile.cuh"

#define PART 8u
#define PARTS (TILE_CHUNK / PART)
#define GROUPS 16u // of chunks; one thread for each class and group
#define GROUP_CHUNKS (TILE_CHUNKS / GROUPS)
#define TILES_MAX (DECODE_BLOCK_MAX / TILE_ELEMENTS)
#define ROUNDS_MAX (TILE_ELEMENTS / TILE_THREADS)
#define SLOTS 256u // exponents that are told apart; wider ones are clipped to cells first
#define CLAIM_WORDS(WIDTH) (TILE_ELEMENTS * (WIDTH) / 8 / 32) // a bit for each word of the digest

static_assert(GROUPS * DECODE_CLASSES == TILE_THREADS, "a thread for each class and group");
static_assert(GROUP_CHUNKS == 16, "the counts of a group are one vector");
static_assert(ROUNDS_MAX <= 32, "a bit for each round");

// Tiles are loaded one ahead, where there is room for two; so many blocks then share a processor.
template <unsigned WIDTH> struct buffers {
    static constexpr unsigned count = WIDTH <= 4 ? 2 : 1;
    static constexpr unsigned blocks = WIDTH <= 2 ? 4 : 2;
};

template <unsigned WIDTH, bool HISTORY> struct scan_shared {
    tile<WIDTH> tiles[buffers<WIDTH>::count];
    uint2 parts[PARTS][TILE_CHUNKS];             // four bits for each class
    uint8_t counts[DECODE_CLASSES][TILE_CHUNKS]; // of each chunk
    uint2 ones[SLOTS];                           // by exponent: 1 in the field of its class
    uint16_t group_start[TILE_THREADS];          // of each class: elements in front of the group
    uint32_t class_start[DECODE_CLASSES];        // elements in front of the tile
    uint32_t events[DECODE_CLASSES];             // in the tile ...
    uint32_t list[DECODE_CLASSES];               // ... and where the first is in the block's list
    uint32_t claimed[CLAIM_WORDS(WIDTH)];        // words of the digest that change
    uint32_t misfit;                             // the block has a fault

    uint8_t class_of[HISTORY ? CELLS : 1];
    uint32_t move_start[HISTORY ? TILES_MAX + 1 : 1]; // of each tile
    uint32_t moved[HISTORY ? TILE_CHUNKS : 1];        // a bit for each element that did ...
    uint32_t down[HISTORY ? TILE_CHUNKS : 1];         // ... towards smaller patterns
    uint4 moved_class[HISTORY ? TILE_CHUNKS : 1];     // four bits for each: their class
};

// What a thread knows of the block.
struct scan {
    struct cuda_block block;
    struct code_kind kind;
    uint32_t classes;
    const struct decode_segment *segment;
    const decode_move *moves;
    uint32_t *positions; // of the block's changes: ranks, until they are found
    uint8_t *values;
};

// ---- classes ----

// Where an element's class is looked up.
template <unsigned WIDTH>
__device__ static __forceinline__ uint32_t slot_of(typename element<WIDTH>::type old,
                                                   struct code_kind kind) {
    const uint32_t exponent =
        (uint32_t)(old >> kind.exponent_shift) & ((1u << kind.exponent_bits) - 1);

    if (WIDTH < 8)
        return exponent;
    return exponent < kind.lowest ? 0 : min(exponent - kind.lowest, EXPONENT_CELLS - 1);
}

// code_cell() of what has this slot.
template <unsigned WIDTH>
__device__ static __forceinline__ uint32_t cell_of_slot(uint32_t slot, struct code_kind kind) {
    if (WIDTH == 8)
        return min(slot, EXPONENT_CELLS - 1);
    return slot < kind.lowest ? 0 : min(slot - kind.lowest, EXPONENT_CELLS - 1);
}

__device__ static __forceinline__ uint32_t field_of(uint2 fields, uint32_t in_class) {
    return (in_class < 8 ? fields.x : fields.y) >> 4 * (in_class % 8) & 15;
}

template <unsigned WIDTH, bool HISTORY>
__device__ static void make_lookup(scan_shared<WIDTH, HISTORY> *shared, const struct scan *scan) {
    for (uint32_t slot = threadIdx.x; slot < SLOTS; slot += TILE_THREADS) {
        const uint32_t cell = cell_of_slot<WIDTH>(slot, scan->kind);
        const uint32_t in_class = scan->segment->class_of[cell] % DECODE_CLASSES;
        const uint32_t one = 1u << 4 * (in_class % 8);

        shared->ones[slot] = in_class < 8 ? uint2{one, 0} : uint2{0, one};
    }
}

// ---- counting ----

__device__ static __forceinline__ uint32_t byte_sum(uint32_t bytes) {
    return __dp4a(bytes, 0x01010101u, 0u);
}

__device__ static __forceinline__ uint2 add(uint2 a, uint2 b) {
    return {a.x + b.x, a.y + b.y};
}

// Two elements of two bytes: the exponent is shifted to where it is the offset of an 8-byte entry.
__device__ static __forceinline__ uint2 count_pair(const uint2 *ones, uint32_t pair, uint32_t shift,
                                                   uint32_t mask) {
    const uint8_t *base = (const uint8_t *)ones;

    return add(*(const uint2 *)(base + (pair >> shift & mask)),
               *(const uint2 *)(base + (pair >> 16 >> shift & mask)));
}

// The classes of eight elements, of which the last may be missing.
template <unsigned WIDTH>
__device__ static __forceinline__ uint2 count_part(const tile<WIDTH> *from, const uint2 *ones,
                                                   uint32_t chunk, uint32_t part, uint32_t elements,
                                                   struct code_kind kind) {
    uint2 sum = {0, 0};

    if (WIDTH == 2 && elements == PART) {
        const uint4 eight = from->vector(chunk, part);
        const uint32_t shift = kind.exponent_bits ? kind.exponent_shift - 3u : 0;
        const uint32_t mask = ((1u << kind.exponent_bits) - 1) << 3;

        sum = add(count_pair(ones, eight.x, shift, mask), count_pair(ones, eight.y, shift, mask));
        return add(sum, add(count_pair(ones, eight.z, shift, mask),
                            count_pair(ones, eight.w, shift, mask)));
    }
#pragma unroll
    for (uint32_t i = 0; i < PART; i++) {
        if (i < elements)
            sum = add(sum,
                      ones[slot_of<WIDTH>(from->get(chunk * TILE_CHUNK + part * PART + i), kind)]);
    }
    return sum;
}

// Each thread counts its chunk, of which `elements` are there.
template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ void count_chunk(scan_shared<WIDTH, HISTORY> *shared,
                                                   const tile<WIDTH> *from, uint32_t elements,
                                                   uint32_t classes, struct code_kind kind) {
    const uint32_t chunk = threadIdx.x, nibbles = 0x0f0f0f0f;
    uint32_t even[2] = {0, 0}, odd[2] = {0, 0}; // classes 0, 2, 4, 6 and 1, 3, 5, 7; 8 more of each

#pragma unroll
    for (uint32_t part = 0; part < PARTS; part++) {
        const uint32_t here = elements > part * PART ? min(elements - part * PART, PART) : 0;
        const uint2 sum = count_part<WIDTH>(from, shared->ones, chunk, part, here, kind);

        shared->parts[part][chunk] = sum;
        even[0] += sum.x & nibbles;
        odd[0] += sum.x >> 4 & nibbles;
        even[1] += sum.y & nibbles;
        odd[1] += sum.y >> 4 & nibbles;
    }
#pragma unroll
    for (uint32_t k = 0; k < DECODE_CLASSES; k += 2) {
        if (k < classes) {
            shared->counts[k][chunk] = (uint8_t)(even[k / 8] >> 4 * (k % 8));
            shared->counts[k + 1][chunk] = (uint8_t)(odd[k / 8] >> 4 * (k % 8));
        }
    }
    if (HISTORY) {
        shared->moved[chunk] = shared->down[chunk] = 0;
        shared->moved_class[chunk] = {0, 0, 0, 0};
    }
}

// ---- elements that moved before ----

// Where the moves of each tile begin; they ascend.
template <unsigned WIDTH>
__device__ static void find_moves(scan_shared<WIDTH, true> *shared, const struct scan *scan,
                                  uint32_t move_count, uint32_t tiles) {
    for (uint32_t i = threadIdx.x; i <= tiles; i += TILE_THREADS) {
        uint32_t low = 0, high = move_count;

        while (low < high) {
            const uint32_t middle = (low + high) / 2;

            if (scan->moves[middle] >> 8 < i * TILE_ELEMENTS)
                low = middle + 1;
            else
                high = middle;
        }
        shared->move_start[i] = low;
    }
    for (uint32_t i = threadIdx.x; i < CELLS; i += TILE_THREADS)
        shared->class_of[i] = scan->segment->class_of[i] % DECODE_CLASSES;
}

__device__ static __forceinline__ uint32_t move_bucket(int move) {
    const int size = move < 0 ? -move : move;

    return size <= 2 ? (uint32_t)size : size <= 4 ? 3 : size <= 8 ? 4 : size <= 24 ? 5 : 6;
}

// One more or one fewer of a class. Others change the same words: fields never carry in the end,
// whatever they do between.
template <unsigned WIDTH>
__device__ static void correct(scan_shared<WIDTH, true> *shared, uint32_t i, uint32_t in_class,
                               uint32_t by) {
    const uint32_t chunk = i / TILE_CHUNK;
    uint2 *part = &shared->parts[i % TILE_CHUNK / PART][chunk];

    atomicAdd(in_class < 8 ? &part->x : &part->y, by << 4 * (in_class % 8));
    atomicAdd((uint32_t *)&shared->counts[in_class][chunk & ~3u], by << 8 * (chunk % 4));
}

template <unsigned WIDTH>
__device__ static void correct_moved(scan_shared<WIDTH, true> *shared, const tile<WIDTH> *from,
                                     const struct scan *scan, uint32_t index, uint32_t elements) {
    const uint32_t end = shared->move_start[index + 1];

    for (uint32_t m = shared->move_start[index] + threadIdx.x; m < end; m += TILE_THREADS) {
        const uint32_t i = (scan->moves[m] >> 8) - index * TILE_ELEMENTS;
        const int move = (int8_t)(scan->moves[m] & 255);

        if (i >= elements)
            continue;
        const uint32_t slot = slot_of<WIDTH>(from->get(i), scan->kind);
        const uint32_t cell = cell_of_slot<WIDTH>(slot, scan->kind);
        const uint32_t plain = shared->class_of[cell];
        const uint32_t moved = shared->class_of[cell + EXPONENT_CELLS * move_bucket(move)];

        atomicOr(&((uint32_t *)shared->moved_class)[i / 8], moved << 4 * (i % 8));
        atomicOr(&shared->moved[i / TILE_CHUNK], 1u << i % TILE_CHUNK);
        if (move < 0)
            atomicOr(&shared->down[i / TILE_CHUNK], 1u << i % TILE_CHUNK);
        if (moved != plain) {
            correct(shared, i, moved, 1u);
            correct(shared, i, plain, 0u - 1u);
        }
    }
}
