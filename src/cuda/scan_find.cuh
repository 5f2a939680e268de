// SPDX-License-Identifier: Apache-2.0
// From the rank of an element in its class to its place in the tile: down through the counts, to
// its group, chunk, part, and bit.
#pragma once

#include "cuda/scan_counts.cuh"

// A bit for each of eight elements whose exponent says that it is of the class.
template <unsigned WIDTH>
__device__ static __forceinline__ uint32_t part_mask(const tile<WIDTH> *from, const uint32_t *ones,
                                                     uint32_t first, uint32_t in_class,
                                                     struct code_kind kind) {
    const uint32_t field = 2 * in_class;
    uint32_t mask = 0;

    if constexpr (WIDTH == 2) {
        const uint4 eight = from->vector(first / TILE_CHUNK, first % TILE_CHUNK / PART);
        const uint32_t pairs[] = {eight.x, eight.y, eight.z, eight.w};
        const uint8_t *base = (const uint8_t *)ones;
        const struct lookup lookup = lookup_of(kind);

#pragma unroll
        for (uint32_t i = 0; i < PART; i++) {
            const uint32_t offset = pairs[i / 2] >> (i % 2 ? lookup.high : lookup.low) & lookup.mask;

            mask |= (*(const uint32_t *)(base + offset) >> field & 1) << i;
        }
    } else {
#pragma unroll
        for (uint32_t i = 0; i < PART; i++)
            mask |= (ones[slot_of<WIDTH>(from->get(first + i), kind)] >> field & 1) << i;
    }
    return mask;
}

// The rank-th element of a class in a part of eight.
template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ uint32_t find_in_part(const scan_shared<WIDTH, HISTORY> *shared,
                                                        const tile<WIDTH> *from, uint32_t first,
                                                        uint32_t in_class, uint32_t rank,
                                                        struct code_kind kind) {
    uint32_t mask = part_mask<WIDTH>(from, shared->ones, first, in_class, kind);

    if (HISTORY) {
        const uint32_t classes = ((const uint32_t *)shared->moved_class)[first / PART];
        uint32_t moved = shared->moved[first / TILE_CHUNK] >> first % TILE_CHUNK & 255;

        for (; moved; moved &= moved - 1) {
            const uint32_t i = (uint32_t)__ffs(moved) - 1;
            const uint32_t is = (classes >> 4 * i & 15) == in_class;

            mask = (mask & ~(1u << i)) | is << i;
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < PART - 1; i++)
        mask = i < rank ? mask & (mask - 1) : mask;
    return first + (((uint32_t)__ffs(mask) - 1) & (PART - 1));
}

// The rank-th element of a class in the tile. Whatever the rank, the result is in the tile.
template <unsigned WIDTH, bool HISTORY>
__device__ static __forceinline__ uint32_t find_element(const scan_shared<WIDTH, HISTORY> *shared,
                                                        const tile<WIDTH> *from, uint32_t in_class,
                                                        uint32_t rank, struct code_kind kind) {
    const uint16_t *starts = &shared->group_start[in_class * GROUPS];
    uint32_t group = 0, chunk, fours, part = 0;

#pragma unroll
    for (uint32_t by = GROUPS / 2; by; by /= 2)
        group += starts[group + by] <= rank ? by : 0;
    rank -= starts[group];
    chunk = group * GROUP_CHUNKS;
    fours = *(const uint32_t *)&shared->counts[in_class][chunk];
#pragma unroll
    for (uint32_t i = 1; i < GROUP_CHUNKS / 4 && rank >= byte_sum(fours); i++) {
        rank -= byte_sum(fours);
        chunk += 4;
        fours = *(const uint32_t *)&shared->counts[in_class][chunk];
    }
#pragma unroll
    for (uint32_t i = 1; i < 4 && rank >= (fours & 255); i++) {
        rank -= fours & 255;
        chunk++;
        fours >>= 8;
    }
#pragma unroll
    for (uint32_t i = 1; i < PARTS; i++) {
        const uint32_t here = field_of(shared->parts[part][chunk], in_class);

        if (rank < here)
            break;
        rank -= here;
        part++;
    }
    return find_in_part(shared, from, chunk * TILE_CHUNK + part * PART, in_class, min(rank, PART),
                        kind);
}
