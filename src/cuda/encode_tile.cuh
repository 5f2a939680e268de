// SPDX-License-Identifier: Apache-2.0
// A tile of the encoder's scan: how its octets are loaded, with a journal over them if there is one, and how the
// elements of each class are counted, in octets, in chunks of eight octets, in groups of sixteen chunks. The decoder
// has its own (cuda/scan_counts.cuh), which goes the other way.
#pragma once

#include "cuda/encode.cuh"
#include "cuda/encode_journal.cuh"

#define THREADS 128u
#define OCTETS 8u // of a thread in a tile
#define AHEAD 2u  // of them on their way at a time
#define LINE 128u // bytes
#define TILE (THREADS * OCTETS * OCTET)
#define CHUNK (OCTETS * OCTET)
#define GROUP 16u // chunks
#define GROUPS (THREADS / GROUP)
#define LISTED 1024u // changes that are listed at a time; a tile has seldom as many
#define SLOTS 256u // exponents of eight bits; wider ones are cells

// Counts of one tile.
struct alignas(16) TileCounts {
    uint2 octet[THREADS * OCTETS]; // four bits for each class: the even ones, the odd ones; see octet_place()
    alignas(16) uint8_t chunk[CLASSES][THREADS]; // elements of a class in a chunk
    uint16_t group[CLASSES][GROUPS];             // in the groups before, of this tile
    uint32_t before[CLASSES];                    // in the tiles before
    alignas(8) uint8_t changed[THREADS * OCTETS]; // one bit for each element
    uint8_t moved[THREADS * OCTETS];       // with history: which have a move
    uint8_t slot[THREADS * OCTETS];        // where octets with changes are kept
    uint32_t warp_changes[THREADS / WARP]; // up to and including each warp
};

// Where the counts of an octet are. Threads write them side by side and read a chunk each: so that neither
// meets in a bank, the pairs of a chunk change places with each other, in each chunk in another way.
__device__ static __forceinline__ uint32_t octet_place(uint32_t octet) {
    return octet ^ (octet >> 4 & 3) << 1;
}

__device__ static __forceinline__ uint32_t &octet_field(TileCounts *counts, uint32_t octet, uint32_t k) {
    return ((uint32_t *)&counts->octet[octet_place(octet)])[k % 2];
}

// Octets with changes are kept for whoever handles the changes; what is beyond these is loaded again.
template <unsigned W> constexpr uint32_t KEPT = W <= 2 ? 128 : 256 / W;
template <unsigned W> constexpr uint32_t KEPT_OF_WARP = KEPT<W> / (THREADS / WARP);
#define NOT_KEPT 255u

template <unsigned W> struct KeptOctet {
    Octet<W> old, next;
};

template <unsigned W> struct ScanShared {
    TileCounts counts;
    KeptOctet<W> kept[KEPT<W>];
    uint32_t one[SLOTS];   // a one in the field of the slot's class, of two bits
    uint8_t of[SLOTS];     // the class itself
    uint16_t list[LISTED]; // places of changes in the tile
    uint32_t changes[CLASSES];
    uint32_t pages[PAGES_OF_BLOCK];
    uint32_t page_count;
};

// BF16 is what most weights are, and what is worth some code of its own.
__device__ static __forceinline__ bool is_bf16(code_kind kind) {
    return kind.width == 2 && kind.exponent_shift == 7 && kind.exponent_bits == 8;
}

template <unsigned W, bool BF16, typename T>
__device__ static __forceinline__ uint32_t slot_of(code_kind kind, T old) {
    if (BF16)
        return (uint32_t)old >> 7 & 0xff;
    return W == 8 ? cell_of_exponent(kind, exponent_of(kind, old)) : exponent_of(kind, old);
}

template <unsigned W>
__device__ static __forceinline__ void make_slots(const SegmentState &segment, code_kind kind, ScanShared<W> *shared) {
    for (uint32_t slot = threadIdx.x; slot < SLOTS; slot += THREADS) {
        uint32_t cell = W == 8 ? slot % EXPONENT_CELLS : cell_of_exponent(kind, slot);

        shared->of[slot] = segment.of[cell];
        shared->one[slot] = 1u << 2 * segment.of[cell];
    }
}

// One bit for each of the `valid` elements that differ.
template <unsigned W>
__device__ static __forceinline__ uint32_t differences(const Octet<W> &x, const Octet<W> &y) {
    uint32_t mask = 0;

#pragma unroll
    for (unsigned i = 0; i < OCTET; i++)
        mask |= (uint32_t)(x.at(i) != y.at(i)) << i;
    return mask;
}

template <> __device__ __forceinline__ uint32_t differences<2>(const Octet<2> &x, const Octet<2> &y) {
    uint32_t all = 0;

#pragma unroll
    for (unsigned i = 0; i < 4; i++) // of each half a one, if anything of it differs
        all += __vminu2(x.word[i] ^ y.word[i], 0x00010001u) << 2 * i;
    return (all | all >> 15) & 0xff;
}

// Fields of two bits, which hold up to three elements, are added to fields of four: the even and the odd ones.
__device__ static __forceinline__ void add_fields(uint2 *count, uint32_t fields) {
    count->x += fields & 0x33333333u;
    count->y += fields >> 2 & 0x33333333u;
}

template <unsigned W>
__device__ static __forceinline__ uint2 count_octet(const ScanShared<W> *shared, code_kind kind, const Octet<W> &old,
                                                    uint32_t valid) {
    uint2 count = make_uint2(0, 0);

#pragma unroll
    for (unsigned i = 0; i < OCTET; i++) {
        if (i < valid)
            add_fields(&count, shared->one[slot_of<W, false>(kind, old.at(i))]);
    }
    return count;
}

// By the exponent, which stands fourfold in the bits of an offset into the table.
__device__ static __forceinline__ uint32_t one_at(const ScanShared<2> *shared, uint32_t offset) {
    return *(const uint32_t *)((const uint8_t *)shared->one + (offset & 4 * (SLOTS - 1)));
}

__device__ static __forceinline__ uint2 count_octet_bf16(const ScanShared<2> *shared, const Octet<2> &old) {
    uint32_t one[OCTET];
    uint2 count = make_uint2(0, 0);

#pragma unroll
    for (unsigned i = 0; i < OCTET; i++)
        one[i] = one_at(shared, old.word[i / 2] >> (i % 2 ? 21 : 5));
    add_fields(&count, one[0] + one[1] + one[2]);
    add_fields(&count, one[3] + one[4] + one[5]);
    add_fields(&count, one[6] + one[7]);
    return count;
}

// ---- a tile on its way ----

// Asks for a line of memory, so that it is near when somebody loads it.
__device__ static __forceinline__ void ask_for(const uint8_t *line) {
#ifdef ULP_EMULATED
    (void)line;
#else
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
#endif
}

// The first rows of a tile, if it is whole. To ask for a whole tile is too much: it is gone again before it is used.
template <unsigned W, bool JOURNAL>
__device__ static __forceinline__ void ask_for_rows(const cuda_block &block, uint32_t tile, uint32_t rows) {
    const uint32_t row_bytes = THREADS * OCTET * W, lines = rows * row_bytes / LINE;

    if (tile + TILE > block.elements)
        return;
    for (uint32_t i = threadIdx.x; i < (JOURNAL ? 1 : 2) * lines; i += THREADS) {
        const uint8_t *from = i < lines ? block.new_ : block.old;

        ask_for(from + (size_t)W * tile + LINE * (i < lines ? i : i - lines));
    }
}

// With a journal the old elements are the new ones with what it says over them.
typedef OverlayMarks<THREADS * OCTETS> ScanMarks;
template <unsigned W, bool JOURNAL> using ScanOverlay = Overlay<W, THREADS * OCTETS, THREADS, JOURNAL>;

// Row r of a tile are the octets r * THREADS + thread. Some rows are loaded while others are counted.
template <unsigned W, bool JOURNAL> struct TileOctets {
    Octet<W> old[AHEAD], next[AHEAD];
    uint32_t kept; // of this warp, in this tile

    // A row of a tile that is whole.
    __device__ __forceinline__ void load(const cuda_block &block, uint32_t tile, uint32_t row) {
        const uint32_t octet = tile / OCTET + THREADS * row + threadIdx.x;

        if (!JOURNAL)
            old[row % AHEAD] = load_vector<W>(block.old, octet);
        next[row % AHEAD] = load_vector<W>(block.new_, octet);
    }

    __device__ __forceinline__ void make_old(const ScanOverlay<W, JOURNAL> &overlay, uint32_t octet, uint32_t i) {
        if (JOURNAL)
            old[i] = next[i];
        overlay.put(octet, &old[i]);
    }

    __device__ __forceinline__ void begin(const cuda_block &block, bool whole, uint32_t tile) {
        kept = 0;
        if (whole) {
#pragma unroll
            for (uint32_t row = 0; row < AHEAD; row++)
                load(block, tile, row);
        }
    }

    // How many elements of an octet there are.
    __device__ static __forceinline__ uint32_t valid(uint32_t at, uint32_t elements) {
        return at + OCTET <= elements ? OCTET : at < elements ? elements - at : 0;
    }

    __device__ __forceinline__ void keep(ScanShared<W> *shared, TileCounts *counts, uint32_t octet, uint32_t i) {
        const uint32_t changed = differences(old[i], next[i]);
        const uint32_t others = __ballot_sync(ALL_LANES, changed != 0);

        counts->changed[octet] = (uint8_t)changed;
        if (changed) {
            const uint32_t at = kept + (uint32_t)__popc(others & ((1u << lane_id()) - 1));
            const uint32_t slot = threadIdx.x / WARP * KEPT_OF_WARP<W> + at;

            if (at < KEPT_OF_WARP<W>)
                shared->kept[slot] = {old[i], next[i]};
            counts->slot[octet] = (uint8_t)(at < KEPT_OF_WARP<W> ? slot : NOT_KEPT);
        }
        kept += (uint32_t)__popc(others);
    }

    // A whole tile, of which begin() has loaded the first rows.
    template <bool BF16>
    __device__ __forceinline__ void count_whole(ScanShared<W> *shared, code_kind kind, const cuda_block &block,
                                                const ScanOverlay<W, JOURNAL> &overlay, uint32_t tile,
                                                TileCounts *counts) {
#pragma unroll
        for (uint32_t row = 0; row < OCTETS; row++) {
            uint2 *to = &counts->octet[octet_place(THREADS * row + threadIdx.x)];

            make_old(overlay, THREADS * row + threadIdx.x, row % AHEAD);
            if constexpr (BF16)
                *to = count_octet_bf16(shared, old[row % AHEAD]);
            else
                *to = count_octet<W>(shared, kind, old[row % AHEAD], OCTET);
            keep(shared, counts, THREADS * row + threadIdx.x, row % AHEAD);
            if (row + AHEAD < OCTETS)
                load(block, tile, row + AHEAD);
        }
    }

    __device__ __forceinline__ void count_some(ScanShared<W> *shared, code_kind kind, bool aligned,
                                               const cuda_block &block, const ScanOverlay<W, JOURNAL> &overlay,
                                               uint32_t tile, TileCounts *counts) {
        for (uint32_t row = 0; row < OCTETS; row++) {
            const uint32_t octet = THREADS * row + threadIdx.x;

            old[0] = load_octet<W>(block.old, aligned, tile / OCTET + octet, block.elements);
            next[0] = load_octet<W>(block.new_, aligned, tile / OCTET + octet, block.elements);
            make_old(overlay, octet, 0);
            counts->octet[octet_place(octet)] =
                count_octet<W>(shared, kind, old[0], valid(tile + OCTET * octet, block.elements));
            keep(shared, counts, octet, 0);
        }
    }
};

// ---- moves of the patch before ----

__device__ static __forceinline__ int move_at(MoveRange range, uint32_t position) {
    return move_size(range.at[moves_before(range, position)]);
}

template <unsigned W, typename T>
__device__ static __forceinline__ uint32_t moved_class(const SegmentState &segment, code_kind kind, T old, int move) {
    return segment.of[cell_of_exponent(kind, exponent_of(kind, old)) + EXPONENT_CELLS * move_bucket(move)];
}

// Takes the elements that moved out of the class that their exponents give and into their own.
template <unsigned W, bool BF16, bool JOURNAL>
__device__ static __forceinline__ void correct_moved(const SegmentState &segment, code_kind kind, const cuda_block &block,
                                                     MoveRange range, const ScanOverlay<W, JOURNAL> &overlay,
                                                     uint32_t tile, const ScanShared<W> *shared, TileCounts *counts) {
    typedef typename element<W>::type T;
    const uint32_t last = moves_before(range, tile + TILE);

    for (uint32_t i = moves_before(range, tile) + threadIdx.x; i < last; i += THREADS) {
        uint32_t position = move_position(range.at[i]), octet = (position - tile) / OCTET;
        T old = overlay.at(position - tile, ((const T *)block.old)[position]);
        uint32_t from = shared->of[slot_of<W, BF16>(kind, old)];
        uint32_t to = moved_class<W>(segment, kind, old, move_size(range.at[i]));

        atomicAdd(&octet_field(counts, octet, to), 1u << 4 * (to / 2));
        atomicAdd(&octet_field(counts, octet, from), 0 - (1u << 4 * (from / 2)));
        atomicOr((uint32_t *)counts->moved + octet / 4, 1u << (octet % 4 * 8 + position % OCTET));
    }
}

// ---- counting ----

__device__ static __forceinline__ uint64_t changed_of_chunk(const TileCounts *counts) {
    return ((const uint64_t *)counts->changed)[threadIdx.x];
}

// The counts of a thread's chunk by class, and where its changes go in the list; returns the latter.
__device__ static __forceinline__ uint32_t count_chunk(TileCounts *counts, uint32_t classes) {
    const uint32_t fields = 0x0f0f0f0fu, t = threadIdx.x;
    uint32_t bytes[4] = {0, 0, 0, 0}; // of classes 0, 4, 8, 12; 2, 6, ...; 1, 5, ...; 3, 7, ...

#pragma unroll
    for (uint32_t i = 0; i < OCTETS; i += 2) {
        uint4 pair = *(const uint4 *)&counts->octet[octet_place(OCTETS * t + i)];

        bytes[0] += (pair.x & fields) + (pair.z & fields);
        bytes[1] += (pair.x >> 4 & fields) + (pair.z >> 4 & fields);
        bytes[2] += (pair.y & fields) + (pair.w & fields);
        bytes[3] += (pair.y >> 4 & fields) + (pair.w >> 4 & fields);
    }
#pragma unroll
    for (uint32_t k = 0; k < CLASSES; k++) {
        if (k < classes)
            counts->chunk[k][t] = (uint8_t)(bytes[k % 2 * 2 + k / 2 % 2] >> 8 * (k / 4));
    }
    uint32_t changed = (uint32_t)__popcll(changed_of_chunk(counts)), upto = sum_up(changed);

    if (lane_id() == WARP - 1)
        counts->warp_changes[t / WARP] = upto;
    return upto - changed;
}

__device__ static __forceinline__ uint32_t sum_bytes(uint4 bytes) {
    const uint32_t ones = 0x01010101u;

    return __dp4a(bytes.x, ones, __dp4a(bytes.y, ones, __dp4a(bytes.z, ones, __dp4a(bytes.w, ones, 0u))));
}

// A thread for each class and group: GROUPS neighbours share a class. `before` is kept by each of them.
__device__ static __forceinline__ uint32_t count_groups(TileCounts *counts, uint32_t before) {
    const uint32_t k = threadIdx.x / GROUPS, g = threadIdx.x % GROUPS;
    uint32_t sum = sum_bytes(*(const uint4 *)&counts->chunk[k][GROUP * g]), upto = sum_up(sum, GROUPS);

    counts->group[k][g] = (uint16_t)(upto - sum);
    if (g == 0)
        counts->before[k] = before;
    return before + __shfl_sync(ALL_LANES, upto, (int)GROUPS - 1, (int)GROUPS);
}

// The changes of the tile, and how many there are in front of this thread's chunk; `at` counts those of
// the warp.
__device__ static __forceinline__ uint32_t count_changes(const TileCounts *counts, uint32_t *at) {
    uint32_t total = 0;

#pragma unroll
    for (uint32_t warp = 0; warp < THREADS / WARP; warp++) {
        if (warp < threadIdx.x / WARP)
            *at += counts->warp_changes[warp];
        total += counts->warp_changes[warp];
    }
    return total;
}

// Those from `from` on, as many as are listed at a time.
template <unsigned W>
__device__ static __forceinline__ void list_changes(ScanShared<W> *shared, const TileCounts *counts, uint32_t at, uint32_t from) {
    for (uint64_t left = changed_of_chunk(counts); left; left &= left - 1, at++) {
        if (at - from < LISTED)
            shared->list[at - from] = (uint16_t)(CHUNK * threadIdx.x + (uint32_t)__ffsll((long long)left) - 1);
    }
}
