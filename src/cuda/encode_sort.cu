// SPDX-License-Identifier: Apache-2.0
// Twin: the lists of scan_all() in code/encode.c, class by class. The changes of a block are put into
// the order of their classes in shared memory, ranks become gaps, and symbols are counted.
#include "cuda/encode.cuh"

#define THREADS 256u
#define WARPS (THREADS / WARP)

#define LARGE_BLOCKS 132u // one to a processor

// ---- room for the numbers ----

// Two numbers take the place of a change, and in a flipped class of an element that does not change: of those
// there can be more than pages were taken for. False if they have no room.
__device__ static bool extend_pages(const Wave &wave, uint32_t b, uint32_t changes, uint32_t tokens) {
    uint32_t *pages = wave.pages + (size_t)PAGES_OF_BLOCK * b;
    uint32_t count = (changes + PAGE_SLOTS - 1) / PAGE_SLOTS;

    for (; 2 * PAGE_SLOTS * count < tokens; count++) {
        if (count == PAGES_OF_BLOCK || !take_page(wave, slots_of_page(wave.blocks[b], count), &pages[count]))
            return false;
    }
    return true;
}

// ---- sorting ----

template <unsigned W, uint32_t ROOM> struct SortShared {
    uint32_t entry[ROOM];
    typename element<W>::type value[ROOM];
    uint32_t symbols[CLASSES][VALUE_SYMBOLS];
    uint32_t largest[CLASSES];
    uint32_t counts[WARPS][CLASSES]; // then where the next entry of a warp and class goes
    uint32_t start[CLASSES + 1];     // of each class among the sorted changes
    uint32_t gaps_at[CLASSES], values_at[CLASSES];
    bool wanted, fits;
};

// Lanes of this lane's key, given everybody's; keys have four bits.
struct Keys {
    uint32_t bit[4], valid;

    __device__ __forceinline__ uint32_t equal(uint32_t key) const {
        uint32_t mask = valid;

#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            mask &= key >> i & 1 ? bit[i] : ~bit[i];
        return mask;
    }
};

__device__ static __forceinline__ Keys ballot_keys(uint32_t key, bool valid) {
    Keys keys;

#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        keys.bit[i] = __ballot_sync(ALL_LANES, key >> i & 1);
    keys.valid = __ballot_sync(ALL_LANES, valid);
    return keys;
}

// Each warp has a run of the entries, so that equal classes stay in order.
template <unsigned W, uint32_t ROOM>
__device__ static void sort_changes(const Wave &wave, uint32_t b, uint32_t n, SortShared<W, ROOM> *shared) {
    const uint32_t *pages = wave.pages + (size_t)PAGES_OF_BLOCK * b;
    const uint32_t run = (n + THREADS - 1) / THREADS * WARP, warp = threadIdx.x / WARP, lane = lane_id();
    const uint32_t from = min(run * warp, n), end = min(from + run, n), own = lane % CLASSES;
    uint32_t count = 0;

    for (uint32_t i = from; i < end; i += WARP) {
        bool valid = i + lane < end;
        uint32_t entry = valid ? (uint32_t)slot_at<W>(wave, pages, i + lane)->change.entry : 0;

        count += (uint32_t)__popc(ballot_keys(entry >> RANK_BITS, valid).equal(own));
    }
    if (lane < CLASSES)
        shared->counts[warp][lane] = count;
    __syncthreads();
    if (threadIdx.x < WARP) {
        uint32_t total = 0;

        for (uint32_t w = 0; w < WARPS; w++)
            total += shared->counts[w][own];
        uint32_t at = sum_up(total, CLASSES) - total;

        __syncwarp();
        if (lane < CLASSES) {
            shared->start[lane] = at;
            for (uint32_t w = 0; w < WARPS; w++) {
                uint32_t here = shared->counts[w][lane];

                shared->counts[w][lane] = at;
                at += here;
            }
        }
        if (lane == 0)
            shared->start[CLASSES] = n;
    }
    __syncthreads();
    uint32_t next = shared->counts[warp][own];

    for (uint32_t i = from; i < end; i += WARP) {
        bool valid = i + lane < end;
        decltype(Slot<W>::change) change = {0, 0};

        if (valid)
            change = slot_at<W>(wave, pages, i + lane)->change;
        const uint32_t entry = (uint32_t)change.entry;
        Keys keys = ballot_keys(entry >> RANK_BITS, valid);
        uint32_t to = __shfl_sync(ALL_LANES, next, (int)(entry >> RANK_BITS)) +
                      (uint32_t)__popc(keys.equal(entry >> RANK_BITS) & ((1u << lane) - 1));

        if (valid) {
            shared->entry[to] = entry;
            shared->value[to] = (typename element<W>::type)change.value;
        }
        next += (uint32_t)__popc(keys.equal(own));
    }
    __syncthreads();
}

__device__ static __forceinline__ void note_gap(uint32_t *largest, uint32_t gap) {
    if (gap > *largest)
        atomicMax(largest, gap);
}

__device__ static __forceinline__ uint32_t rank_of(uint32_t entry) {
    return entry & ((1u << RANK_BITS) - 1);
}

// Gaps of classes that are not flipped, and all values. Whole warps, for the votes.
template <unsigned W, uint32_t ROOM>
__device__ static void put_changes(const SegmentState &segment, uint32_t n, SortShared<W, ROOM> *shared,
                                   const Tokens<W> &tokens) {
    for (uint32_t i = threadIdx.x; i < (n + WARP - 1) / WARP * WARP; i += THREADS) {
        bool valid = i < n;
        uint32_t entry = valid ? shared->entry[i] : 0, k = entry >> RANK_BITS, in_class = i - shared->start[k];
        uint32_t symbol = valid ? value_symbol(shared->value[i]).symbol : VALUE_SYMBOLS;
        uint32_t same = __match_any_sync(ALL_LANES, k * 256 + symbol);

        if (!valid)
            continue;
        if ((same & ((1u << lane_id()) - 1)) == 0)
            atomicAdd(&shared->symbols[k][symbol], (uint32_t)__popc(same));
        tokens[shared->values_at[k] + in_class].number(shared->value[i]);
        if (k < segment.flipped) {
            uint32_t gap = rank_of(entry) - (in_class ? rank_of(shared->entry[i - 1]) + 1 : 0);

            tokens[shared->gaps_at[k] + in_class].number(gap);
            note_gap(&shared->largest[k], gap);
        }
    }
}

// How many of a class's changes have fewer than `unchanged` unchanged elements in front of them.
template <unsigned W, uint32_t ROOM>
__device__ static uint32_t changes_before(const SortShared<W, ROOM> *shared, uint32_t k, uint32_t unchanged) {
    uint32_t low = shared->start[k], high = shared->start[k + 1];

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (rank_of(shared->entry[middle]) - (middle - shared->start[k]) < unchanged)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// In a flipped class the gaps count changes between elements that do not change.
template <unsigned W, uint32_t ROOM>
__device__ static void put_flipped(const BlockState &block, const SegmentState &segment,
                                   SortShared<W, ROOM> *shared, const Tokens<W> &tokens) {
    for (uint32_t k = segment.flipped; k < segment.classes; k++) {
        uint32_t events = block.seen[k] - block.changes[k];

        for (uint32_t u = threadIdx.x; u < events; u += THREADS) {
            uint32_t gap = changes_before(shared, k, u + 1) - changes_before(shared, k, u);

            tokens[shared->gaps_at[k] + u].number(gap);
            note_gap(&shared->largest[k], gap);
        }
    }
}

template <unsigned W, uint32_t ROOM>
__device__ static void sort_block(const Wave &wave, uint32_t b, SortShared<W, ROOM> *shared) {
    BlockState &block = wave.block[b];
    SegmentState &segment = segment_of(wave, wave.blocks[b]);
    const Tokens<W> tokens(wave, b);

    for (uint32_t i = threadIdx.x; i < CLASSES * VALUE_SYMBOLS; i += THREADS)
        (&shared->symbols[0][0])[i] = 0;
    if (threadIdx.x < CLASSES)
        shared->largest[threadIdx.x] = 0;
    if (threadIdx.x < WARP) {
        uint32_t k = threadIdx.x % CLASSES;
        uint32_t events = k < segment.classes ? events_of(block, segment.flipped, k) : 0;
        uint32_t changes = k < segment.classes ? block.changes[k] : 0, upto = sum_up(events + changes, CLASSES);

        shared->gaps_at[k] = upto - events - changes;
        shared->values_at[k] = upto - changes;
        if (threadIdx.x == CLASSES - 1) {
            shared->fits = extend_pages(wave, b, block.changed, upto);
            block.tokens = shared->fits ? upto : 0;
            if (!shared->fits) // a smaller wave may have room, or it is the CPU's
                segment.elsewhere = 1;
        }
    }
    __syncthreads();
    if (!shared->fits)
        return;
    sort_changes(wave, b, block.changed, shared);
    put_changes(segment, block.changed, shared, tokens);
    put_flipped(block, segment, shared, tokens);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < CLASSES * VALUE_SYMBOLS; i += THREADS) {
        if ((&shared->symbols[0][0])[i])
            atomicAdd(&(&segment.value_counts[0][0])[i], (&shared->symbols[0][0])[i]);
    }
    if (threadIdx.x < CLASSES && shared->largest[threadIdx.x])
        atomicMax(&segment.largest_gap[threadIdx.x], shared->largest[threadIdx.x]);
}

// Whether a block is to be sorted. Where much of the segment changes the CPU has it. Others may change their
// minds meanwhile, so one thread looks for all.
template <unsigned W, uint32_t ROOM>
__device__ static bool is_wanted(const Wave &wave, uint32_t b, SortShared<W, ROOM> *shared) {
    SegmentState &segment = segment_of(wave, wave.blocks[b]);

    __syncthreads(); // what the last block left in shared memory is read
    if (threadIdx.x == 0) {
        if (segment.changes * MANY_OF >= wave.segments[wave.blocks[b].segment - wave.first_segment].elements)
            segment.elsewhere = 1;
        shared->wanted = is_coded(segment) && !*wave.overflow && wave.block[b].changed <= ROOM;
    }
    __syncthreads();
    return shared->wanted;
}

template <unsigned W, uint32_t ROOM> __global__ static void __launch_bounds__(THREADS) sort_each(Wave wave) {
    typedef SortShared<W, ROOM> Shared;
    DYNAMIC_SHARED(Shared, shared);

    if (is_wanted(wave, blockIdx.x, shared))
        sort_block(wave, blockIdx.x, shared);
}

// Few thread blocks go through those that are large.
template <unsigned W> __global__ static void __launch_bounds__(THREADS) sort_large(Wave wave) {
    typedef SortShared<W, SORT_LARGE<W>> Shared;
    DYNAMIC_SHARED(Shared, shared);

    for (uint32_t i = blockIdx.x; i < *wave.large_count; i += gridDim.x) {
        if (is_wanted(wave, wave.large[i], shared))
            sort_block(wave, wave.large[i], shared);
    }
}

// The large ones take the memory of whole processors, so nobody is called for them without need.
template <unsigned W> void encode_sort(const Wave &wave, cudaStream_t stream) {
    if (wave.sort_room == SORT_SMALL)
        launch(sort_each<W, SORT_SMALL>, wave.block_count, THREADS, sizeof(SortShared<W, SORT_SMALL>), stream, wave);
    else
        launch(sort_each<W, SORT_MEDIUM>, wave.block_count, THREADS, sizeof(SortShared<W, SORT_MEDIUM>), stream, wave);
    if (wave.sort_large)
        launch(sort_large<W>, wave.block_count < LARGE_BLOCKS ? wave.block_count : LARGE_BLOCKS, THREADS,
               sizeof(SortShared<W, SORT_LARGE<W>>), stream, wave);
}

template void encode_sort<1>(const Wave &, cudaStream_t);
template void encode_sort<2>(const Wave &, cudaStream_t);
template void encode_sort<4>(const Wave &, cudaStream_t);
template void encode_sort<8>(const Wave &, cudaStream_t);
