// SPDX-License-Identifier: Apache-2.0
// Twin: scan_encode() in code/context_scan.c, and digest_replace() for the sums.
//
// One thread block per block of the grid, tile after tile. Of all elements the classes are counted, at
// three sizes: in octets, in chunks of four octets, in groups of sixteen chunks. So a change, of which
// there are few, finds its rank with some additions. The elements themselves go through registers; who
// handles a change loads its octet again, which the cache still has.
#include "cuda/encode.cuh"

#include "cuda/encode_journal.cuh"
#include "cuda/mix.cuh"

#define THREADS 128u
#define OCTETS 4u // of a thread in a tile
#define TILE (THREADS * OCTETS * OCTET)
#define CHUNK (4u * OCTET)
#define GROUP 16u // chunks
#define GROUPS (THREADS / GROUP)
#define LISTED 1024u // changes that are listed at a time; a tile has seldom as many
#define SLOTS 256u // exponents of eight bits; wider ones are cells

// Counts of one tile.
struct alignas(16) TileCounts {
    uint2 octet[THREADS * OCTETS];         // four bits for each class: 0 to 7, 8 to 15
    alignas(16) uint8_t chunk[CLASSES][THREADS];     // elements of a class in a chunk
    uint16_t group[CLASSES][GROUPS];       // in the groups before, of this tile
    uint32_t before[CLASSES];              // in the tiles before
    uint8_t changed[THREADS * OCTETS];     // one bit for each element
    uint8_t moved[THREADS * OCTETS];       // with history: which have a move
    uint8_t slot[THREADS * OCTETS];        // where octets with changes are kept
    uint32_t kept;                         // how many are
    uint32_t warp_changes[THREADS / WARP]; // up to and including each warp
};

// Octets with changes are kept for whoever handles the changes; what is beyond these is loaded again.
template <unsigned W> constexpr uint32_t KEPT = 192 / W;
#define NOT_KEPT 255u

template <unsigned W> struct KeptOctet {
    Octet<W> old, next;
};

template <unsigned W> struct ScanShared {
    TileCounts counts;
    KeptOctet<W> kept[KEPT<W>];
    uint2 one[SLOTS];      // a one in the field of the slot's class
    uint8_t of[SLOTS];     // the class itself
    uint16_t list[LISTED]; // places of changes in the tile
    uint32_t changes[CLASSES];
    uint32_t pages[PAGES_OF_BLOCK];
    uint32_t page_count;
};

template <unsigned W, typename T> __device__ static __forceinline__ uint32_t slot_of(code_kind kind, T old) {
    return W == 8 ? cell_of_exponent(kind, exponent_of(kind, old)) : exponent_of(kind, old);
}

__device__ static __forceinline__ uint2 field_of(uint32_t k) {
    uint32_t one = 1u << 4 * (k % 8);

    return k < 8 ? make_uint2(one, 0) : make_uint2(0, one);
}

template <unsigned W>
__device__ static void make_slots(const SegmentState &segment, code_kind kind, ScanShared<W> *shared) {
    for (uint32_t slot = threadIdx.x; slot < SLOTS; slot += THREADS) {
        uint32_t cell = W == 8 ? slot % EXPONENT_CELLS : cell_of_exponent(kind, slot);

        shared->of[slot] = segment.of[cell];
        shared->one[slot] = field_of(segment.of[cell]);
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

template <unsigned W>
__device__ static __forceinline__ uint2 count_octet(const ScanShared<W> *shared, code_kind kind, const Octet<W> &old,
                                                    uint32_t valid) {
    uint2 count = make_uint2(0, 0);

#pragma unroll
    for (unsigned i = 0; i < OCTET; i++) {
        if (i < valid) {
            uint2 one = shared->one[slot_of<W>(kind, old.at(i))];

            count.x += one.x;
            count.y += one.y;
        }
    }
    return count;
}

// By the exponent, which stands eightfold in the bits of an offset into the table.
__device__ static __forceinline__ uint2 one_at(const ScanShared<2> *shared, uint32_t offset) {
    return *(const uint2 *)((const uint8_t *)shared->one + (offset & 8 * (SLOTS - 1)));
}

__device__ static __forceinline__ uint2 count_octet_bf16(const ScanShared<2> *shared, const Octet<2> &old) {
    uint2 count = make_uint2(0, 0);

#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        uint2 low = one_at(shared, old.word[i] >> 4), high = one_at(shared, old.word[i] >> 20);

        count.x += low.x + high.x;
        count.y += low.y + high.y;
    }
    return count;
}

__device__ static __forceinline__ bool is_bf16(code_kind kind) {
    return kind.width == 2 && kind.exponent_shift == 7 && kind.exponent_bits == 8;
}

// ---- a tile on its way ----

typedef OverlayMarks<THREADS * OCTETS> ScanMarks;
template <unsigned W, bool JOURNAL> using ScanOverlay = Overlay<W, THREADS * OCTETS, THREADS, JOURNAL>;

template <unsigned W> struct TileOctets {
    Octet<W> old[OCTETS], next[OCTETS];

    __device__ __forceinline__ void load(const cuda_block &block, bool aligned, uint32_t tile) {
        const uint32_t first = tile / OCTET + threadIdx.x;

        if (aligned && tile + TILE <= block.elements) {
#pragma unroll
            for (uint32_t i = 0; i < OCTETS; i++) {
                old[i] = load_vector<W>(block.old, first + THREADS * i);
                next[i] = load_vector<W>(block.new_, first + THREADS * i);
            }
        } else {
#pragma unroll
            for (uint32_t i = 0; i < OCTETS; i++) {
                old[i] = load_octet<W>(block.old, aligned, first + THREADS * i, block.elements);
                next[i] = load_octet<W>(block.new_, aligned, first + THREADS * i, block.elements);
            }
        }
    }

    // Of weights that are compared with what a journal says of them.
    __device__ __forceinline__ void load_new(const cuda_block &block, bool aligned, uint32_t tile) {
#pragma unroll
        for (uint32_t i = 0; i < OCTETS; i++)
            next[i] = load_octet<W>(block.new_, aligned, tile / OCTET + threadIdx.x + THREADS * i, block.elements);
    }

    __device__ __forceinline__ void make_old(const ScanOverlay<W, true> &overlay) {
#pragma unroll
        for (uint32_t i = 0; i < OCTETS; i++) {
            old[i] = next[i];
            overlay.put(THREADS * i + threadIdx.x, &old[i]);
        }
    }

    // How many elements of an octet there are.
    __device__ static __forceinline__ uint32_t valid(uint32_t at, uint32_t elements) {
        return at + OCTET <= elements ? OCTET : at < elements ? elements - at : 0;
    }

    __device__ __forceinline__ void keep(ScanShared<W> *shared, TileCounts *counts, uint32_t i, uint32_t changed) const {
        const uint32_t octet = THREADS * i + threadIdx.x;

        counts->changed[octet] = (uint8_t)changed;
        if (!changed)
            return;
        uint32_t slot = atomicAdd(&counts->kept, 1u);

        if (slot < KEPT<W>)
            shared->kept[slot] = {old[i], next[i]};
        counts->slot[octet] = (uint8_t)(slot < KEPT<W> ? slot : NOT_KEPT);
    }

    __device__ __forceinline__ void count(ScanShared<W> *shared, code_kind kind, bool bf16, uint32_t tile,
                                          uint32_t elements, TileCounts *counts) const {
#pragma unroll
        for (uint32_t i = 0; i < OCTETS; i++) {
            const uint32_t octet = THREADS * i + threadIdx.x;

            if constexpr (W == 2) {
                if (bf16 && tile + TILE <= elements) {
                    counts->octet[octet] = count_octet_bf16(shared, old[i]);
                    keep(shared, counts, i, differences(old[i], next[i]));
                    continue;
                }
            }
            counts->octet[octet] = count_octet<W>(shared, kind, old[i], valid(tile + OCTET * octet, elements));
            keep(shared, counts, i, differences(old[i], next[i]));
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
template <unsigned W, bool JOURNAL>
__device__ static void correct_moved(const SegmentState &segment, code_kind kind, const cuda_block &block,
                                     MoveRange range, const ScanOverlay<W, JOURNAL> &overlay, uint32_t tile,
                                     const ScanShared<W> *shared, TileCounts *counts) {
    typedef typename element<W>::type T;
    const uint32_t last = moves_before(range, tile + TILE);

    for (uint32_t i = moves_before(range, tile) + threadIdx.x; i < last; i += THREADS) {
        uint32_t position = move_position(range.at[i]), octet = (position - tile) / OCTET;
        T old = overlay.at(position - tile, ((const T *)block.old)[position]);
        uint32_t from = shared->of[slot_of<W>(kind, old)];
        uint32_t to = moved_class<W>(segment, kind, old, move_size(range.at[i]));

        uint32_t *fields = (uint32_t *)&counts->octet[octet];

        atomicAdd(&fields[to / 8], 1u << 4 * (to % 8));
        atomicAdd(&fields[from / 8], 0 - (1u << 4 * (from % 8)));
        atomicOr((uint32_t *)counts->moved + octet / 4, 1u << (octet % 4 * 8 + position % OCTET));
    }
}

// ---- counting ----

// The counts of a thread's chunk by class, and where its changes go in the list; returns the latter.
__device__ static uint32_t count_chunk(TileCounts *counts, uint32_t classes) {
    const uint32_t fields = 0x0f0f0f0fu, t = threadIdx.x;
    uint32_t bytes[4] = {0, 0, 0, 0}; // of classes 0, 2, 4, 6; 1, 3, 5, 7; 8, 10, ...; 9, 11, ...

#pragma unroll
    for (uint32_t i = 0; i < OCTETS; i++) {
        uint2 octet = counts->octet[OCTETS * t + i];

        bytes[0] += octet.x & fields;
        bytes[1] += octet.x >> 4 & fields;
        bytes[2] += octet.y & fields;
        bytes[3] += octet.y >> 4 & fields;
    }
#pragma unroll
    for (uint32_t k = 0; k < CLASSES; k++) {
        if (k < classes)
            counts->chunk[k][t] = (uint8_t)(bytes[k / 8 * 2 + k % 2] >> 8 * (k % 8 / 2));
    }
    uint32_t changed = (uint32_t)__popc(((const uint32_t *)counts->changed)[t]), upto = sum_up(changed);

    if (lane_id() == WARP - 1)
        counts->warp_changes[t / WARP] = upto;
    if (t == 0)
        counts->kept = 0; // of the next tile
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

// The changes of the tile, and how many there are in front of this thread's chunk; `at` counts those of
// the warp.
__device__ static uint32_t count_changes(const TileCounts *counts, uint32_t *at) {
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
__device__ static void list_changes(ScanShared<W> *shared, const TileCounts *counts, uint32_t at, uint32_t from) {
    for (uint32_t left = ((const uint32_t *)counts->changed)[threadIdx.x]; left; left &= left - 1, at++) {
        if (at - from < LISTED)
            shared->list[at - from] = (uint16_t)(CHUNK * threadIdx.x + (uint32_t)__ffs(left) - 1);
    }
}

// Pages for this many changes of the block; by one thread.
template <unsigned W>
__device__ static void take_pages(const Wave &wave, ScanShared<W> *shared, uint32_t elements, uint32_t changes) {
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
#pragma unroll
    for (uint32_t i = 0; i < OCTETS - 1; i++) {
        if (4 * chunk + i < octet)
            rank += ((const uint32_t *)&counts->octet[4 * chunk + i])[k / 8] >> 4 * (k % 8) & 15;
    }
    return rank;
}

struct Change {
    uint32_t k, rank;
    bool negated;
};

// The class of an element, and whether the patch before moved it down.
template <unsigned W, bool HISTORY, typename T>
__device__ static __forceinline__ uint32_t class_of(const SegmentState &segment, code_kind kind,
                                                    const ScanShared<W> *shared, T old, uint32_t moved, uint32_t i,
                                                    MoveRange range, uint32_t position, bool *down) {
    *down = false;
    if (HISTORY && moved >> i & 1) {
        int move = move_at(range, position);

        *down = move < 0;
        return moved_class<W>(segment, kind, old, move);
    }
    return shared->of[slot_of<W>(kind, old)];
}

// The octet that a change is in, wherever it can be had.
template <unsigned W, bool JOURNAL> struct Around {
    typedef typename element<W>::type T;
    const T *old, *next;
    const KeptOctet<W> *kept; // NULL: it is in device memory
    KeptOctet<W> mine;        // with a journal it is then made here

    __device__ __forceinline__ Around(const ScanShared<W> *shared, const TileCounts *counts, const cuda_block &block,
                                      bool aligned, const ScanOverlay<W, JOURNAL> &overlay, uint32_t tile,
                                      uint32_t octet) {
        const uint32_t slot = counts->slot[octet];

        kept = slot < KEPT<W> ? &shared->kept[slot] : nullptr;
        if (JOURNAL && !kept) {
            mine.next = load_octet<W>(block.new_, aligned, tile / OCTET + octet, block.elements);
            mine.old = mine.next;
            overlay.put(octet, &mine.old);
            kept = &mine;
        }
        old = kept ? (const T *)&kept->old : (const T *)block.old + tile + OCTET * octet;
        next = kept ? (const T *)&kept->next : (const T *)block.new_ + tile + OCTET * octet;
    }

    Around(const Around &) = delete; // it may point into itself
};

template <unsigned W, bool HISTORY, bool JOURNAL>
__device__ static Change find_change(const SegmentState &segment, code_kind kind, const ScanShared<W> *shared,
                                     const TileCounts *counts, const Around<W, JOURNAL> &around, uint32_t tile,
                                     uint32_t place, MoveRange range) {
    const uint32_t octet = place / OCTET, in_octet = place % OCTET, moved = HISTORY ? counts->moved[octet] : 0;
    Change change;
    bool down;

    change.k = class_of<W, HISTORY>(segment, kind, shared, around.old[in_octet], moved, in_octet, range, tile + place,
                                    &change.negated);
    change.rank = rank_of_octet(counts, change.k, octet);
#pragma unroll
    for (uint32_t i = 0; i < OCTET - 1; i++) {
        if (i < in_octet)
            change.rank += class_of<W, HISTORY>(segment, kind, shared, around.old[i], moved, i, range,
                                                tile + OCTET * octet + i, &down) == change.k;
    }
    return change;
}

// The first change of a word puts the word's old mix out and the new one in.
template <unsigned W, bool JOURNAL>
__device__ static void adjust_sum(const cuda_block &block, bool aligned, const TileCounts *counts,
                                  const Around<W, JOURNAL> &around, uint32_t place, uint32_t tile, ulp_sum *sum) {
    const uint32_t each = 8 / W, in_octet = place % OCTET, first = in_octet / each * each;
    const uint32_t word = (tile + place) / each;
    uint64_t was, is;

    if (counts->changed[place / OCTET] >> first & ((1u << (in_octet - first)) - 1))
        return;
    if (around.kept) {
        was = ((const uint64_t *)&around.kept->old)[in_octet / each];
        is = ((const uint64_t *)&around.kept->next)[in_octet / each];
    } else {
        was = load_word<W>(block.old, aligned, word, block.elements);
        is = load_word<W>(block.new_, aligned, word, block.elements);
    }
    sum_subtract(sum, digest_mix(block.first_word + word, was));
    sum_add(sum, digest_mix(block.first_word + word, is));
}

// What a block's thread block knows all along.
template <unsigned W, bool JOURNAL> struct Scan {
    const Wave &wave;
    const cuda_block &block;
    const SegmentState &segment;
    code_kind kind;
    bool aligned;
    MoveRange range;
    const ScanOverlay<W, JOURNAL> &overlay;
    ScanShared<W> *shared;
    TileCounts *counts;
};

template <unsigned W, bool HISTORY, bool JOURNAL>
__device__ static __forceinline__ void put_change(const Scan<W, JOURNAL> &scan, uint32_t tile, uint32_t place,
                                                  uint32_t entry, ulp_sum *sum) {
    const uint32_t page = scan.shared->pages[entry / PAGE_ENTRIES] + entry % PAGE_ENTRIES, i = place % OCTET;
    const Around<W, JOURNAL> around(scan.shared, scan.counts, scan.block, scan.aligned, scan.overlay, tile,
                                    place / OCTET);
    const Change change = find_change<W, HISTORY, JOURNAL>(scan.segment, scan.kind, scan.shared, scan.counts, around,
                                                           tile, place, scan.range);

    scan.wave.entries[page] = change.rank | change.k << RANK_BITS;
    ((typename element<W>::type *)scan.wave.values)[page] = value_of<W>(around.old[i], around.next[i], change.negated);
    atomicAdd(&scan.shared->changes[change.k], 1u);
    adjust_sum<W, JOURNAL>(scan.block, scan.aligned, scan.counts, around, place, tile, sum);
}

// The changes of a tile, of which there are `total`; `at` are in front of this thread's, `changes` in
// the tiles before.
template <unsigned W, bool HISTORY, bool JOURNAL>
__device__ static __forceinline__ void put_changes(const Scan<W, JOURNAL> &scan, uint32_t tile, uint32_t total,
                                                   uint32_t at, uint32_t changes, ulp_sum *sum) {
    if (threadIdx.x == 0)
        take_pages(scan.wave, scan.shared, scan.block.elements, changes + total);
    for (uint32_t from = 0; from < total; from += LISTED) {
        if (from)
            __syncthreads();
        list_changes(scan.shared, scan.counts, at, from);
        __syncthreads();
        // other warps each time, since there are often fewer changes than threads
        for (uint32_t i = (threadIdx.x + tile / TILE * (THREADS / 2)) % THREADS; i < min(total - from, LISTED);
             i += THREADS)
            put_change<W, HISTORY, JOURNAL>(scan, tile, scan.shared->list[i], changes + from + i, sum);
    }
}

template <unsigned W, bool JOURNAL> __device__ static void clear_shared(const Scan<W, JOURNAL> &scan) {
    make_slots<W>(scan.segment, scan.kind, scan.shared);
    if (threadIdx.x < CLASSES)
        scan.shared->changes[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        scan.shared->page_count = 0;
    for (uint32_t i = threadIdx.x; i < sizeof *scan.counts / 4; i += THREADS)
        ((uint32_t *)scan.counts)[i] = 0; // chunks of classes that there are not stay zero
}

template <unsigned W, bool JOURNAL>
__device__ static void report(const Scan<W, JOURNAL> &scan, uint32_t changes, uint32_t seen) {
    const uint32_t s = scan.block.segment - scan.wave.first_segment;
    BlockState &to = scan.wave.block[blockIdx.x];

    if (threadIdx.x == 0) {
        to.changed = changes;
        if (changes)
            atomicAdd((unsigned long long *)&scan.wave.segment[s].changes, (unsigned long long)changes);
    }
    if (threadIdx.x < CLASSES)
        to.changes[threadIdx.x] = scan.shared->changes[threadIdx.x];
    if (threadIdx.x % GROUPS == 0)
        to.seen[threadIdx.x / GROUPS] = seen;
    for (uint32_t i = threadIdx.x; i < scan.shared->page_count; i += THREADS)
        scan.wave.pages[(size_t)PAGES_OF_BLOCK * blockIdx.x + i] = scan.shared->pages[i];
}

template <unsigned W, bool HISTORY, bool JOURNAL>
__global__ static void __launch_bounds__(THREADS, W <= 2 ? (JOURNAL ? 8 : 9) : 4) scan_blocks(Wave wave) {
    DYNAMIC_SHARED(ScanShared<W>, shared);
    const cuda_block block = wave.blocks[blockIdx.x];
    const code_kind kind = wave.segments[block.segment - wave.first_segment].kind;
    const MoveRange range =
        HISTORY ? moves_of_block(wave, wave.first_block + blockIdx.x) : MoveRange{nullptr, nullptr};
    TileCounts *counts = &shared->counts;
    ScanOverlay<W, JOURNAL> overlay(wave, wave.first_block + blockIdx.x, (ScanMarks *)(shared + 1));
    const Scan<W, JOURNAL> scan = {wave, block, segment_of(wave, block), kind,
                                   octets_aligned<W>(block.old) && octets_aligned<W>(block.new_), range, overlay,
                                   shared, counts};
    const bool bf16 = is_bf16(kind);
    uint32_t seen = 0, changes = 0;
    TileOctets<W> octets;
    ulp_sum sum = {{0, 0}};

    clear_shared(scan);
    for (uint32_t tile = 0; tile < block.elements; tile += TILE) {
        if constexpr (JOURNAL)
            octets.load_new(block, scan.aligned, tile);
        else
            octets.load(block, scan.aligned, tile);
        __syncthreads();
        if constexpr (JOURNAL) {
            overlay.mark(tile);
            octets.make_old(overlay);
        }
        octets.count(shared, kind, bf16, tile, block.elements, counts);
        if (HISTORY) {
            for (uint32_t i = threadIdx.x; i < sizeof counts->moved / 4; i += THREADS)
                ((uint32_t *)counts->moved)[i] = 0;
        }
        __syncthreads();
        if (HISTORY) {
            correct_moved<W, JOURNAL>(scan.segment, kind, block, range, overlay, tile, shared, counts);
            __syncthreads();
        }
        uint32_t at = count_chunk(counts, scan.segment.classes);

        __syncthreads();
        seen = count_groups(counts, seen);
        uint32_t total = count_changes(counts, &at);

        put_changes<W, HISTORY, JOURNAL>(scan, tile, total, at, changes, &sum);
        changes += total;
    }
    __syncthreads();
    deliver_sum(sum, wave.sums + 2 * (size_t)block.piece);
    report(scan, changes, seen);
}

template <unsigned W> void encode_scan(const Wave &wave, cudaStream_t stream) {
    const size_t plain = sizeof(ScanShared<W>);

    if constexpr (W == 2 || W == 4) { // what can be cast
        if (wave.journal) {
            launch(wave.moves.moves ? scan_blocks<W, true, true> : scan_blocks<W, false, true>, wave.block_count,
                   THREADS, plain + sizeof(ScanMarks), stream, wave);
            return;
        }
    }
    launch(wave.moves.moves ? scan_blocks<W, true, false> : scan_blocks<W, false, false>, wave.block_count, THREADS,
           plain, stream, wave);
}

template void encode_scan<1>(const Wave &, cudaStream_t);
template void encode_scan<2>(const Wave &, cudaStream_t);
template void encode_scan<4>(const Wave &, cudaStream_t);
template void encode_scan<8>(const Wave &, cudaStream_t);
