// SPDX-License-Identifier: Apache-2.0
// Twin: scan_encode() in code/context_scan.c, and digest_replace() for the sums.
//
// One thread block per block of the grid, tile after tile. Of all elements the classes are counted, at
// three sizes: in octets, in chunks of eight octets, in groups of sixteen chunks. So a change, of which
// there are few, finds its rank with some additions. The elements themselves go through registers; octets
// with changes are kept in shared memory for whoever handles those.
#include "cuda/encode.cuh"

#include "cuda/encode_journal.cuh"
#include "cuda/mix.cuh"

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

// Pages for this many changes of the block; by one thread.
template <unsigned W>
__device__ static __forceinline__ void take_pages(const Wave &wave, ScanShared<W> *shared, const cuda_block &block, uint32_t changes) {
    uint32_t count = shared->page_count;

    while (count * PAGE_SLOTS < changes && count < PAGES_OF_BLOCK &&
           take_page(wave, slots_of_page(block, count), &shared->pages[count]))
        count++;
    shared->page_count = count;
}

// ---- changes ----

// Elements of class k in the tile's octets in front of this one, and in the tiles before.
__device__ static __forceinline__ uint32_t rank_of_octet(TileCounts *counts, uint32_t k, uint32_t octet) {
    const uint32_t ones = 0x01010101u, chunk = octet / OCTETS, in_group = chunk % GROUP;
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
        if (OCTETS * chunk + i < octet)
            rank += octet_field(counts, OCTETS * chunk + i, k) >> 4 * (k / 2) & 15;
    }
    return rank;
}

struct Change {
    uint32_t k, rank;
    bool negated;
};

// The class of an element, and whether the patch before moved it down.
template <unsigned W, bool HISTORY, bool BF16, typename T>
__device__ static __forceinline__ uint32_t class_of(const SegmentState &segment, code_kind kind,
                                                    const ScanShared<W> *shared, T old, uint32_t moved, uint32_t i,
                                                    MoveRange range, uint32_t position, bool *down) {
    *down = false;
    if (HISTORY && moved >> i & 1) {
        int move = move_at(range, position);

        *down = move < 0;
        return moved_class<W>(segment, kind, old, move);
    }
    return shared->of[slot_of<W, BF16>(kind, old)];
}

// The octet that a change is in, wherever it can be had, and the change's place in it.
template <unsigned W> struct Around {
    typedef typename element<W>::type T;
    Octet<W> old, next;
    uint32_t i;
    T before, after;

    template <bool JOURNAL>
    __device__ __forceinline__ Around(const ScanShared<W> *shared, const TileCounts *counts, const cuda_block &block,
                                      bool aligned, const ScanOverlay<W, JOURNAL> &overlay, uint32_t tile,
                                      uint32_t place) {
        const uint32_t octet = place / OCTET, slot = counts->slot[octet];

        if (slot < KEPT<W>) {
            old = shared->kept[slot].old;
            next = shared->kept[slot].next;
        } else {
            old = load_octet<W>(block.old, aligned, tile / OCTET + octet, block.elements);
            next = load_octet<W>(block.new_, aligned, tile / OCTET + octet, block.elements);
            overlay.put(octet, &old);
        }
        i = place % OCTET;
        before = pick(old);
        after = pick(next);
    }

    // The word of 8 bytes that the change is in. Halves are chosen from, not indexed, so that octets stay in
    // registers.
    __device__ __forceinline__ uint64_t word(const Octet<W> &from) const {
        uint64_t words[W];

#pragma unroll
        for (uint32_t j = 0; j < W; j++)
            words[j] = (uint64_t)from.word[2 * j + 1] << 32 | from.word[2 * j];
#pragma unroll
        for (uint32_t half = W / 2; half > 0; half /= 2) {
#pragma unroll
            for (uint32_t j = 0; j < half; j++)
                words[j] = i / (8 / W) & half ? words[half + j] : words[j];
        }
        return words[0];
    }

    __device__ __forceinline__ T pick(const Octet<W> &from) const { return (T)(word(from) >> 8 * W * (i % (8 / W))); }
};

template <unsigned W, bool HISTORY, bool BF16>
__device__ static __forceinline__ Change find_change(const SegmentState &segment, code_kind kind, const ScanShared<W> *shared,
                                     TileCounts *counts, const Around<W> &around, uint32_t tile, uint32_t place,
                                     MoveRange range) {
    const uint32_t octet = place / OCTET, moved = HISTORY ? counts->moved[octet] : 0;
    Change change;
    bool down;

    change.k = class_of<W, HISTORY, BF16>(segment, kind, shared, around.before, moved, around.i, range, tile + place,
                                    &change.negated);
    change.rank = rank_of_octet(counts, change.k, octet);
#pragma unroll
    for (uint32_t i = 0; i < OCTET - 1; i++) {
        if (i < around.i)
            change.rank += class_of<W, HISTORY, BF16>(segment, kind, shared, around.old.at(i), moved, i, range,
                                                tile + OCTET * octet + i, &down) == change.k;
    }
    return change;
}

// The first change of a word puts the word's old mix out and the new one in.
template <unsigned W>
__device__ static __forceinline__ void adjust_sum(const cuda_block &block, const TileCounts *counts, const Around<W> &around,
                                  uint32_t place, uint32_t tile, ulp_sum *sum) {
    const uint32_t each = 8 / W, first = around.i / each * each;
    const uint64_t word = block.first_word + (tile + place) / each;

    if (counts->changed[place / OCTET] >> first & ((1u << (around.i - first)) - 1))
        return;
    sum_subtract(sum, digest_mix(word, around.word(around.old)));
    sum_add(sum, digest_mix(word, around.word(around.next)));
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

template <unsigned W, bool HISTORY, bool BF16, bool JOURNAL>
__device__ static __forceinline__ void put_change(const Scan<W, JOURNAL> &scan, uint32_t tile, uint32_t place,
                                                  uint32_t entry, ulp_sum *sum) {
    const Around<W> around(scan.shared, scan.counts, scan.block, scan.aligned, scan.overlay, tile, place);
    const Change change = find_change<W, HISTORY, BF16>(scan.segment, scan.kind, scan.shared, scan.counts, around, tile,
                                                        place, scan.range);

    if (entry / PAGE_SLOTS < scan.shared->page_count) { // what has no room is not coded here, or again
        decltype(Slot<W>::change) found;

        found.entry = change.rank | change.k << RANK_BITS;
        found.value = value_of<W>(around.before, around.after, change.negated);
        slot_at<W>(scan.wave, scan.shared->pages, entry)->change = found;
    }
    atomicAdd(&scan.shared->changes[change.k], 1u);
    adjust_sum<W>(scan.block, scan.counts, around, place, tile, sum);
}

// The changes of a tile, of which there are `total`; `at` are in front of this thread's, `changes` in
// the tiles before.
template <unsigned W, bool HISTORY, bool BF16, bool JOURNAL>
__device__ static __forceinline__ void put_changes(const Scan<W, JOURNAL> &scan, uint32_t tile, uint32_t total,
                                                   uint32_t at, uint32_t changes, ulp_sum *sum) {
    if (threadIdx.x == 0)
        take_pages(scan.wave, scan.shared, scan.block, changes + total);
    for (uint32_t from = 0; from < total; from += LISTED) {
        if (from)
            __syncthreads();
        list_changes(scan.shared, scan.counts, at, from);
        __syncthreads();
        // other warps each time, since there are often fewer changes than threads
        for (uint32_t i = (threadIdx.x + tile / TILE * (THREADS / 2)) % THREADS; i < min(total - from, LISTED);
             i += THREADS)
            put_change<W, HISTORY, BF16, JOURNAL>(scan, tile, scan.shared->list[i], changes + from + i, sum);
    }
}

template <unsigned W, bool JOURNAL> __device__ static __forceinline__ void clear_shared(const Scan<W, JOURNAL> &scan) {
    make_slots<W>(scan.segment, scan.kind, scan.shared);
    if (threadIdx.x < CLASSES)
        scan.shared->changes[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        scan.shared->page_count = 0;
    for (uint32_t i = threadIdx.x; i < sizeof *scan.counts / 4; i += THREADS)
        ((uint32_t *)scan.counts)[i] = 0; // chunks of classes that there are not stay zero
}

// A block with many changes: who sorts it, if anybody.
template <unsigned W> __device__ static __forceinline__ void report_large(const Wave &wave, SegmentState *segment, uint32_t changes) {
    if (changes > SORT_LARGE<W>)
        atomicOr(&segment->elsewhere, 1u);
    else if (wave.sort_large)
        wave.large[atomicAdd(wave.large_count, 1u)] = blockIdx.x;
    else
        atomicOr(wave.overflow, FULL_SORT);
}

template <unsigned W, bool JOURNAL>
__device__ static __forceinline__ void report(const Scan<W, JOURNAL> &scan, uint32_t changes, uint32_t seen) {
    const uint32_t s = scan.block.segment - scan.wave.first_segment;
    BlockState &to = scan.wave.block[blockIdx.x];

    if (threadIdx.x == 0) {
        to.changed = changes;
        if (changes) {
            atomicAdd((unsigned long long *)&scan.wave.segment[s].changes, (unsigned long long)changes);
            atomicMax(&scan.wave.segment[s].largest_block, changes);
        }
        if (changes > scan.wave.sort_room)
            report_large<W>(scan.wave, &scan.wave.segment[s], changes);
    }
    if (threadIdx.x < CLASSES)
        to.changes[threadIdx.x] = scan.shared->changes[threadIdx.x];
    if (threadIdx.x % GROUPS == 0)
        to.seen[threadIdx.x / GROUPS] = seen;
    for (uint32_t i = threadIdx.x; i < scan.shared->page_count; i += THREADS)
        scan.wave.pages[(size_t)PAGES_OF_BLOCK * blockIdx.x + i] = scan.shared->pages[i];
}

template <unsigned W, bool HISTORY, bool BF16, bool JOURNAL>
__device__ static __forceinline__ void scan_block(const Wave &wave, const cuda_block &block, code_kind kind,
                                                  ScanShared<W> *shared) {
    const MoveRange range =
        HISTORY ? moves_of_block(wave, wave.first_block + blockIdx.x) : MoveRange{nullptr, nullptr};
    TileCounts *counts = &shared->counts;
    ScanOverlay<W, JOURNAL> overlay(wave, wave.first_block + blockIdx.x, (ScanMarks *)(shared + 1));
    const Scan<W, JOURNAL> scan = {wave, block, segment_of(wave, block), kind,
                                   octets_aligned<W>(block.old) && octets_aligned<W>(block.new_), range, overlay,
                                   shared, counts};
    uint32_t seen = 0, changes = 0;
    TileOctets<W, JOURNAL> octets;
    ulp_sum sum = {{0, 0}};

    clear_shared(scan);
    for (uint32_t tile = 0; tile < block.elements; tile += TILE) {
        const bool whole = scan.aligned && tile + TILE <= block.elements;

        octets.begin(block, whole, tile);
        __syncthreads();
        overlay.mark(tile);
        if (whole)
            octets.template count_whole<BF16>(shared, kind, block, overlay, tile, counts);
        else
            octets.count_some(shared, kind, scan.aligned, block, overlay, tile, counts);
        if (HISTORY) {
            for (uint32_t i = threadIdx.x; i < sizeof counts->moved / 4; i += THREADS)
                ((uint32_t *)counts->moved)[i] = 0;
        }
        __syncthreads();
        if (HISTORY) {
            correct_moved<W, BF16, JOURNAL>(scan.segment, kind, block, range, overlay, tile, shared, counts);
            __syncthreads();
        }
        uint32_t at = count_chunk(counts, scan.segment.classes);

        __syncthreads();
        seen = count_groups(counts, seen);
        uint32_t total = count_changes(counts, &at);

        ask_for_rows<W, JOURNAL>(block, tile + TILE, AHEAD);
        put_changes<W, HISTORY, BF16, JOURNAL>(scan, tile, total, at, changes, &sum);
        changes += total;
    }
    __syncthreads();
    deliver_sum(sum, wave.sums + 2 * (size_t)block.piece);
    report(scan, changes, seen);
}

template <unsigned W, bool HISTORY, bool JOURNAL>
__global__ static void __launch_bounds__(THREADS, W <= 2 ? (JOURNAL ? 7 : 8) : 4) scan_blocks(Wave wave) {
    DYNAMIC_SHARED(ScanShared<W>, shared);
    const cuda_block block = wave.blocks[blockIdx.x];
    const code_kind kind = wave.segments[block.segment - wave.first_segment].kind;

    if (W == 2 && is_bf16(kind))
        scan_block<W, HISTORY, W == 2, JOURNAL>(wave, block, kind, shared);
    else
        scan_block<W, HISTORY, false, JOURNAL>(wave, block, kind, shared);
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
