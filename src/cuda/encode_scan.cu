// SPDX-License-Identifier: Apache-2.0
// Twin: scan_encode() in code/context_scan.c, and digest_replace() for the sums.
//
// One thread block per block of the grid, tile after tile. Of all elements the classes are counted, at
// three sizes: in octets, in chunks of eight octets, in groups of sixteen chunks. So a change, of which
// there are few, finds its rank with some additions. The elements themselves go through registers; octets
// with changes are kept in shared memory for whoever handles those.
#include "cuda/encode_tile.cuh"

#include "cuda/mix.cuh"

// ---- changes ----

// Pages for this many changes of the block; by one thread.
template <unsigned W>
__device__ static __forceinline__ void take_pages(const Wave &wave, ScanShared<W> *shared, const cuda_block &block, uint32_t changes) {
    uint32_t count = shared->page_count;

    while (count * PAGE_SLOTS < changes && count < PAGES_OF_BLOCK &&
           take_page(wave, slots_of_page(block, count), &shared->pages[count]))
        count++;
    shared->page_count = count;
}

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
