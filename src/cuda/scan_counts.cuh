// SPDX-License-Identifier: Apache-2.0
// How many elements of each class are where. A lookup by exponent gives a 32-bit word with a 1 in
// the field of the class, of two bits. Three of them are added, then their fields are spread to four
// bits, those of even classes in one word and of odd ones in another; these count eight elements, a
// part. Parts add up to chunks of 32 elements, a byte for each class; chunks to groups; groups to the
// tile.
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
    static constexpr unsigned blocks = WIDTH == 2 ? 5 : WIDTH == 1 ? 4 : 2;
    static constexpr unsigned with_history = WIDTH <= 2 ? 4 : 2;
};

template <unsigned WIDTH, bool HISTORY> struct scan_shared {
    tile<WIDTH> tiles[buffers<WIDTH>::count];
    uint2 parts[PARTS - 1][TILE_CHUNKS];         // four bits for each class; of the last nobody asks
    uint8_t counts[DECODE_CLASSES][TILE_CHUNKS]; // of each chunk
    uint32_t ones[SLOTS];                        // by exponent: 1 in the field of its class
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
    return (in_class % 2 ? fields.y : fields.x) >> 4 * (in_class / 2) & 15;
}

template <unsigned WIDTH, bool HISTORY>
__device__ static void make_lookup(scan_shared<WIDTH, HISTORY> *shared, const struct scan *scan) {
    for (uint32_t slot = threadIdx.x; slot < SLOTS; slot += TILE_THREADS) {
        const uint32_t cell = cell_of_slot<WIDTH>(slot, scan->kind);
        const uint32_t in_class = scan->segment->class_of[cell] % DECODE_CLASSES;

        shared->ones[slot] = 1u << 2 * in_class;
    }
}

// ---- counting ----

__device__ static __forceinline__ uint32_t byte_sum(uint32_t bytes) {
    return __dp4a(bytes, 0x01010101u, 0u);
}

// Of eight elements, each of which is a 1 in the field of its class.
__device__ static __forceinline__ uint2 spread(const uint32_t ones[PART]) {
    const uint32_t a = ones[0] + ones[1] + ones[2], b = ones[3] + ones[4] + ones[5], c = ones[6] + ones[7];
    const uint32_t even = 0x33333333;

    return {(a & even) + (b & even) + (c & even), (a >> 2 & even) + (b >> 2 & even) + (c >> 2 & even)};
}

// Where exponents of elements of two bytes are: shifted so, they are the offset of a 4-byte entry.
struct lookup {
    uint32_t low, high, mask; // of the first of two in a word, and of the second
};

__device__ static __forceinline__ struct lookup lookup_of(struct code_kind kind) {
    const uint32_t shift = kind.exponent_bits ? kind.exponent_shift - 2u : 0;

    return {shift, shift + 16, ((1u << kind.exponent_bits) - 1) << 2};
}

// The classes of a chunk's eight elements.
template <unsigned WIDTH>
__device__ static __forceinline__ uint2 count_part(const tile<WIDTH> *from, const uint32_t *ones,
                                                   uint32_t chunk, uint32_t part, struct code_kind kind) {
    uint32_t eight[PART];

    if constexpr (WIDTH == 2) {
        const uint4 vector = from->vector(chunk, part);
        const uint32_t pairs[] = {vector.x, vector.y, vector.z, vector.w};
        const uint8_t *base = (const uint8_t *)ones;
        const struct lookup lookup = lookup_of(kind);

#pragma unroll
        for (uint32_t i = 0; i < PART / 2; i++) {
            eight[2 * i] = *(const uint32_t *)(base + (pairs[i] >> lookup.low & lookup.mask));
            eight[2 * i + 1] = *(const uint32_t *)(base + (pairs[i] >> lookup.high & lookup.mask));
        }
    } else {
#pragma unroll
        for (uint32_t i = 0; i < PART; i++)
            eight[i] = ones[slot_of<WIDTH>(from->get(chunk * TILE_CHUNK + part * PART + i), kind)];
    }
    return spread(eight);
}

// The same where the last `PART - elements` are missing.
template <unsigned WIDTH>
__device__ static __forceinline__ uint2 count_some(const tile<WIDTH> *from, const uint32_t *ones,
                                                   uint32_t chunk, uint32_t part, uint32_t elements,
                                                   struct code_kind kind) {
    uint32_t eight[PART];

#pragma unroll
    for (uint32_t i = 0; i < PART; i++)
        eight[i] = i < elements
                       ? ones[slot_of<WIDTH>(from->get(chunk * TILE_CHUNK + part * PART + i), kind)]
                       : 0;
    return spread(eight);
}

// A part that has been counted.
template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ void add_part(scan_shared<WIDTH, HISTORY> *shared, uint32_t part,
                                                uint2 sum, uint32_t bytes[4]) {
    const uint32_t nibbles = 0x0f0f0f0f;

    if (part < PARTS - 1)
        shared->parts[part][threadIdx.x] = sum;
    bytes[0] += sum.x & nibbles;
    bytes[1] += sum.y & nibbles;
    bytes[2] += sum.x >> 4 & nibbles;
    bytes[3] += sum.y >> 4 & nibbles;
}

// Each thread counts its chunk, of which `elements` are there.
template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ void count_chunk(scan_shared<WIDTH, HISTORY> *shared,
                                                   const tile<WIDTH> *from, uint32_t elements,
                                                   struct code_kind kind) {
    const uint32_t chunk = threadIdx.x;
    uint32_t bytes[4] = {0, 0, 0, 0}; // byte i of the k-th: class 4 * i + k

    if (elements == TILE_CHUNK) {
#pragma unroll
        for (uint32_t part = 0; part < PARTS; part++)
            add_part<WIDTH, HISTORY>(shared, part,
                                     count_part<WIDTH>(from, shared->ones, chunk, part, kind), bytes);
    } else {
        for (uint32_t part = 0; part < PARTS; part++) {
            const uint32_t here = elements > part * PART ? min(elements - part * PART, PART) : 0;

            add_part<WIDTH, HISTORY>(shared, part,
                                     count_some<WIDTH>(from, shared->ones, chunk, part, here, kind),
                                     bytes);
        }
    }
#pragma unroll
    for (uint32_t k = 0; k < DECODE_CLASSES; k++)
        shared->counts[k][chunk] = (uint8_t)(bytes[k % 4] >> 8 * (k / 4));
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
    const uint32_t part = i % TILE_CHUNK / PART;

    if (part < PARTS - 1) {
        uint2 *fields = &shared->parts[part][chunk];

        atomicAdd(in_class % 2 ? &fields->y : &fields->x, by << 4 * (in_class / 2));
    }
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
