// SPDX-License-Identifier: Apache-2.0
// Twin: scan_encode() in code/context_scan.c, and digest_replace() for the sums.
//
// One thread block per block of the grid, tile after tile. Of all elements the classes are counted, at
// three sizes: in octets, in chunks of four octets, in groups of sixteen chunks. So a change, of which
// there are few, finds its rank with some additions. The elements themselves go through registers; who
// handles a change loads its octet again, which the cache still has.
#include "cuda/encode.cuh"

#include "scan/digest_mix.h"

#define THREADS 128u
#define OCTETS 4u // of a thread in a tile
#define TILE (THREADS * OCTETS * OCTET)
#define CHUNK (4u * OCTET)
#define GROUP 16u // chunks
#define GROUPS (THREADS / GROUP)
#define SLOTS 256u // exponents of eight bits; wider ones are cells

// Counts of one tile; there are two, so that the next tile can begin while changes of this one are
// still looked at.
struct TileCounts {
    uint64_t octet[THREADS * OCTETS];      // four bits for each class
    uint8_t chunk[CLASSES][THREADS];       // elements of a class in a chunk
    uint16_t group[CLASSES][GROUPS];       // in the groups before, of this tile
    uint32_t before[CLASSES];              // in the tiles before
    uint8_t changed[THREADS * OCTETS];     // one bit for each element
    uint8_t moved[THREADS * OCTETS];       // with history: which have a move
    uint32_t warp_changes[THREADS / WARP]; // up to and including each warp
};

struct ScanShared {
    TileCounts counts[2];
    uint64_t one[SLOTS];   // a one in the field of the slot's class
    uint8_t of[SLOTS];     // the class itself
    uint16_t list[TILE];   // places of the changes in the tile
    uint32_t changes[CLASSES];
    uint32_t pages[PAGES_OF_BLOCK];
    uint32_t page_count;
};

template <unsigned W, typename T> __device__ static __forceinline__ uint32_t slot_of(code_kind kind, T old) {
    return W == 8 ? cell_of_exponent(kind, exponent_of(kind, old)) : exponent_of(kind, old);
}

template <unsigned W>
__device__ static void make_slots(const SegmentState &segment, code_kind kind, ScanShared *shared) {
    for (uint32_t slot = threadIdx.x; slot < SLOTS; slot += THREADS) {
        uint32_t cell = W == 8 ? slot % EXPONENT_CELLS : cell_of_exponent(kind, slot);

        shared->of[slot] = segment.of[cell];
        shared->one[slot] = UINT64_C(1) << 4 * segment.of[cell];
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
    uint32_t mask = 0;

#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        uint32_t d = x.word[i] ^ y.word[i];
        // the upper bit of each half: whether anything of it is set
        uint32_t t = ((d & 0x7fff7fffu) + 0x7fff7fffu) | d;

        mask |= (t >> 15 & 1) << 2 * i | (t >> 31) << (2 * i + 1);
    }
    return mask;
}

template <unsigned W>
__device__ static __forceinline__ uint64_t count_octet(const ScanShared *shared, code_kind kind,
                                                       const Octet<W> &old, uint32_t valid) {
    uint64_t count = 0;

    if (valid == OCTET) {
#pragma unroll
        for (unsigned i = 0; i < OCTET; i++)
            count += shared->one[slot_of<W>(kind, old.at(i))];
    } else {
        for (unsigned i = 0; i < valid; i++)
            count += shared->one[slot_of<W>(kind, old.at(i))];
    }
    return count;
}

// ---- moves of the patch before ----

// The moves of a block, met tile by tile.
struct MoveRange {
    const uint32_t *at, *end;
};

__device__ static __forceinline__ MoveRange moves_of_block(const Wave &wave, uint32_t b) {
    return {wave.moves.moves + wave.moves.first[b], wave.moves.moves + wave.moves.first[b + 1]};
}

// How many there are in front of a position; all threads get the same answer.
__device__ static uint32_t moves_before(MoveRange range, uint32_t position) {
    uint32_t low = 0, high = (uint32_t)(range.end - range.at);

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (move_position(range.at[middle]) < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

__device__ static __forceinline__ int move_at(MoveRange range, uint32_t position) {
    return move_size(range.at[moves_before(range, position)]);
}

template <unsigned W, typename T>
__device__ static __forceinline__ uint32_t moved_class(const SegmentState &segment, code_kind kind, T old, int move) {
    return segment.of[cell_of_exponent(kind, exponent_of(kind, old)) + EXPONENT_CELLS * move_bucket(move)];
}

// Takes the elements that moved out of the class that their exponents give and into their own.
template <unsigned W>
__device__ static void correct_moved(const SegmentState &segment, code_kind kind, const cuda_block &block,
                                     MoveRange range, uint32_t tile, const ScanShared *shared, TileCounts *counts) {
    typedef typename Element<W>::type T;
    const uint32_t last = moves_before(range, tile + TILE);

    for (uint32_t i = moves_before(range, tile) + threadIdx.x; i < last; i += THREADS) {
        uint32_t position = move_position(range.at[i]), octet = (position - tile) / OCTET;
        T old = ((const T *)block.old)[position];
        uint32_t from = shared->of[slot_of<W>(kind, old)];
        uint32_t to = moved_class<W>(segment, kind, old, move_size(range.at[i]));

        atomicAdd((unsigned long long *)&counts->octet[octet],
                  (unsigned long long)((UINT64_C(1) << 4 * to) - (UINT64_C(1) << 4 * from)));
        atomicOr((uint32_t *)counts->moved + octet / 4, 1u << (octet % 4 * 8 + position % OCTET));
    }
}

// ---- counting ----

// The counts of a thread's chunk by class, and where its changes go in the list; returns the latter.
__device__ static uint32_t count_chunk(TileCounts *counts) {
    const uint64_t fields = UINT64_C(0x0f0f0f0f0f0f0f0f);
    const uint32_t t = threadIdx.x;
    uint64_t even = 0, odd = 0;

#pragma unroll
    for (uint32_t i = 0; i < OCTETS; i++) {
        uint64_t octet = counts->octet[OCTETS * t + i];

        even += octet & fields;
        odd += octet >> 4 & fields;
    }
#pragma unroll
    for (uint32_t k = 0; k < CLASSES; k += 2) {
        counts->chunk[k][t] = (uint8_t)(even >> 4 * k);
        counts->chunk[k + 1][t] = (uint8_t)(odd >> 4 * k);
    }
    uint32_t changed = (uint32_t)__popc(((const uint32_t *)counts->changed)[t]), upto = sum_up(changed);

    if (lane_id() == WARP - 1)
        counts->warp_changes[t / WARP] = upto;
    return upto - changed;
}

__device__ static __forceinline__ uint32_t sum_bytes(uint4 bytes) {
    const uint32_t ones = 0x01010101u;

    return __dp4a(bytes.x, ones, __dp4a(bytes.y, ones, __dp4a(bytes.z, ones, __dp4a(bytes.w, ones, 0u))));
}

// A thread for each class and group: GROUPS neighbours share a class. `before` is kept by each of them.
__device__ static uint32_t count_groups(TileCounts *counts, uint32_t before) {
    const uint32_t k = threadIdx.x / GROUPS, g = threadIdx.x % GROUPS;
    uint32_t sum = sum_bytes(*(const uint4 *)&counts->chunk[k][GROUP * g]), upto = sum_up(sum, GROUPS);

    counts->group[k][g] = (uint16_t)(upto - sum);
    if (g == 0)
        counts->before[k] = before;
    return before + __shfl_sync(ALL_LANES, upto, (int)GROUPS - 1, (int)GROUPS);
}

__device__ static uint32_t list_changes(ScanShared *shared, const TileCounts *counts, uint32_t at) {
    uint32_t total = 0;

#pragma unroll
    for (uint32_t warp = 0; warp < THREADS / WARP; warp++) {
        if (warp < threadIdx.x / WARP)
            at += counts->warp_changes[warp];
        total += counts->warp_changes[warp];
    }
    for (uint32_t left = ((const uint32_t *)counts->changed)[threadIdx.x]; left; left &= left - 1)
        shared->list[at++] = (uint16_t)(CHUNK * threadIdx.x + (uint32_t)__ffs(left) - 1);
    return total;
}

// Pages for this many changes of the block; by one thread.
__device__ static void take_pages(const Wave &wave, ScanShared *shared, uint32_t elements, uint32_t changes) {
    while (shared->page_count * PAGE_ENTRIES < changes) {
        uint32_t length = min(PAGE_ENTRIES, elements - shared->page_count * PAGE_ENTRIES);
        uint32_t at = atomicAdd(wave.entries_used, length);

        if (at > wave.entry_limit - length) {
            atomicOr(wave.overflow, FULL_POOL);
            at = 0; // what is written there is not used
        }
        shared->pages[shared->page_count++] = at;
    }
}

// ---- changes ----

// Elements of class k in the tile's octets in front of this one, and in the tiles before.
__device__ static uint32_t rank_of_octet(const TileCounts *counts, uint32_t k, uint32_t octet) {
    const uint32_t ones = 0x01010101u, chunk = octet / 4, in_group = chunk % GROUP;
    uint4 bytes = *(const uint4 *)&counts->chunk[k][chunk - in_group];
    uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    uint32_t rank = counts->before[k] + counts->group[k][chunk / GROUP];

#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t take = in_group > 4 * i ? min(in_group - 4 * i, 4u) : 0;

        rank = __dp4a(words[i], take == 4 ? ones : ones & ((1u << 8 * take) - 1), rank);
    }
    for (uint32_t i = 4 * chunk; i < octet; i++)
        rank += (uint32_t)(counts->octet[i] >> 4 * k) & 15;
    return rank;
}

struct Change {
    uint32_t k, rank;
    bool negated;
};

// The class of an element, and whether the patch before moved it down.
template <unsigned W, bool HISTORY, typename T>
__device__ static __forceinline__ uint32_t class_of(const SegmentState &segment, code_kind kind,
                                                    const ScanShared *shared, T old, uint32_t moved, uint32_t i,
                                                    MoveRange range, uint32_t position, bool *down) {
    *down = false;
    if (HISTORY && moved >> i & 1) {
        int move = move_at(range, position);

        *down = move < 0;
        return moved_class<W>(segment, kind, old, move);
    }
    return shared->of[slot_of<W>(kind, old)];
}

template <unsigned W, bool HISTORY>
__device__ static Change find_change(const SegmentState &segment, code_kind kind, const ScanShared *shared,
                                     const TileCounts *counts, const cuda_block &block, bool aligned, uint32_t tile,
                                     uint32_t place, MoveRange range) {
    typedef typename Element<W>::type T;
    const uint32_t octet = place / OCTET, in_octet = place % OCTET, moved = HISTORY ? counts->moved[octet] : 0;
    const Octet<W> around = load_octet<W>(block.old, aligned, tile / OCTET + octet, block.elements);
    Change change;
    bool down;

    change.k = class_of<W, HISTORY>(segment, kind, shared, ((const T *)block.old)[tile + place], moved, in_octet,
                                    range, tile + place, &change.negated);
    change.rank = rank_of_octet(counts, change.k, octet);
#pragma unroll
    for (uint32_t i = 0; i < OCTET - 1; i++) {
        if (i < in_octet)
            change.rank += class_of<W, HISTORY>(segment, kind, shared, around.at(i), moved, i, range,
                                                tile + OCTET * octet + i, &down) == change.k;
    }
    return change;
}

// The first change of a word puts the word's old mix out and the new one in.
template <unsigned W>
__device__ static void adjust_sum(const cuda_block &block, bool aligned, const TileCounts *counts, uint32_t place,
                                  uint32_t tile, ulp_sum *sum) {
    const uint32_t each = 8 / W;
    uint32_t in_chunk = place % CHUNK, first = in_chunk / each * each;
    uint32_t mask = ((const uint32_t *)counts->changed)[place / CHUNK];

    if (mask >> first & ((1u << (in_chunk - first)) - 1))
        return;
    uint32_t word = (tile + place) / each;

    sum_subtract(sum, digest_mix(block.first_word + word, load_word<W>(block.old, aligned, word, block.elements)));
    sum_add(sum, digest_mix(block.first_word + word, load_word<W>(block.new_, aligned, word, block.elements)));
}

__device__ static void deliver_sum(ulp_sum sum, unsigned long long *lanes) {
    for (int lane = 0; lane < 2; lane++) {
        unsigned long long value = warp_sum((unsigned long long)sum.lane[lane]);

        if (lane_id() == 0 && value)
            atomicAdd(&lanes[lane], value);
    }
}

template <unsigned W, bool HISTORY>
__global__ static void __launch_bounds__(THREADS, W <= 2 ? 8 : 4) scan_blocks(Wave wave) {
    typedef typename Element<W>::type T;
    DYNAMIC_SHARED(ScanShared, shared);
    const cuda_block block = wave.blocks[blockIdx.x];
    const code_kind kind = wave.segments[block.segment - wave.first_segment].kind;
    const SegmentState &segment = segment_of(wave, block);
    const bool aligned = octets_aligned<W>(block.old) && octets_aligned<W>(block.new_);
    const MoveRange range =
        HISTORY ? moves_of_block(wave, wave.first_block + blockIdx.x) : MoveRange{nullptr, nullptr};
    uint32_t before = 0, changes = 0;
    Octet<W> old[OCTETS], next[OCTETS];
    ulp_sum sum = {{0, 0}};

    make_slots<W>(segment, kind, shared);
    if (threadIdx.x < CLASSES)
        shared->changes[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        shared->page_count = 0;
#pragma unroll
    for (uint32_t i = 0; i < OCTETS; i++) {
        old[i] = load_octet<W>(block.old, aligned, THREADS * i + threadIdx.x, block.elements);
        next[i] = load_octet<W>(block.new_, aligned, THREADS * i + threadIdx.x, block.elements);
    }
    __syncthreads();
    for (uint32_t tile = 0; tile < block.elements; tile += TILE) {
        TileCounts *counts = &shared->counts[tile / TILE % 2];

#pragma unroll
        for (uint32_t i = 0; i < OCTETS; i++) {
            uint32_t octet = THREADS * i + threadIdx.x, at = tile + OCTET * octet;
            uint32_t valid = at + OCTET <= block.elements ? OCTET : at < block.elements ? block.elements - at : 0;

            counts->octet[octet] = count_octet<W>(shared, kind, old[i], valid);
            counts->changed[octet] = (uint8_t)differences(old[i], next[i]);
            if (HISTORY)
                counts->moved[octet] = 0;
            old[i] = load_octet<W>(block.old, aligned, octet + (tile + TILE) / OCTET, block.elements);
            next[i] = load_octet<W>(block.new_, aligned, octet + (tile + TILE) / OCTET, block.elements);
        }
        __syncthreads();
        if (HISTORY) {
            correct_moved<W>(segment, kind, block, range, tile, shared, counts);
            __syncthreads();
        }
        uint32_t at = count_chunk(counts);

        __syncthreads();
        before = count_groups(counts, before);
        uint32_t total = list_changes(shared, counts, at);

        if (threadIdx.x == 0)
            take_pages(wave, shared, block.elements, changes + total);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < total; i += THREADS) {
            uint32_t place = shared->list[i], entry = changes + i;
            uint32_t page = shared->pages[entry / PAGE_ENTRIES] + entry % PAGE_ENTRIES;
            T was = ((const T *)block.old)[tile + place], is = ((const T *)block.new_)[tile + place];
            Change change =
                find_change<W, HISTORY>(segment, kind, shared, counts, block, aligned, tile, place, range);

            wave.entries[page] = change.rank | change.k << RANK_BITS;
            ((T *)wave.values)[page] = value_of<W>(was, is, change.negated);
            atomicAdd(&shared->changes[change.k], 1u);
            adjust_sum<W>(block, aligned, counts, place, tile, &sum);
        }
        changes += total;
    }
    __syncthreads();
    deliver_sum(sum, wave.sums + 2 * (size_t)block.piece);
    BlockState &to = wave.block[blockIdx.x];

    if (threadIdx.x == 0) {
        to.changed = changes;
        if (changes)
            atomicAdd((unsigned long long *)&wave.segment[block.segment - wave.first_segment].changes,
                      (unsigned long long)changes);
    }
    if (threadIdx.x < CLASSES)
        to.changes[threadIdx.x] = shared->changes[threadIdx.x];
    if (threadIdx.x % GROUPS == 0)
        to.seen[threadIdx.x / GROUPS] = before;
    for (uint32_t i = threadIdx.x; i < shared->page_count; i += THREADS)
        wave.pages[(size_t)PAGES_OF_BLOCK * blockIdx.x + i] = shared->pages[i];
}

template <unsigned W> void encode_scan(const Wave &wave, cudaStream_t stream) {
    if (wave.moves.moves)
        launch(scan_blocks<W, true>, wave.block_count, THREADS, sizeof(ScanShared), stream, wave);
    else
        launch(scan_blocks<W, false>, wave.block_count, THREADS, sizeof(ScanShared), stream, wave);
}

template void encode_scan<1>(const Wave &, cudaStream_t);
template void encode_scan<2>(const Wave &, cudaStream_t);
template void encode_scan<4>(const Wave &, cudaStream_t);
template void encode_scan<8>(const Wave &, cudaStream_t);
