// SPDX-License-Identifier: Apache-2.0
// Twin: the lists of scan_all() in code/encode.c, class by class. The changes of a block are put into
// the order of their classes in shared memory, ranks become gaps, and symbols are counted.
#include "cuda/encode.cuh"

#define THREADS 256u
#define WARPS (THREADS / WARP)
#define PREFIX_THREADS 1024u
#define SORT_SMALL 4096u // most blocks have fewer changes, and are sorted several to a processor

#define LARGE_BLOCKS 132u // one to a processor

// ---- where the numbers of each block go ----

__device__ static uint32_t numbers_of(const BlockState &block, const SegmentState &segment) {
    uint32_t count = 0;

    for (uint32_t k = 0; k < segment.classes; k++)
        count += events_of(block, segment.flipped, k) + block.changes[k];
    return count;
}

// How many numbers there are, and who codes them.
template <unsigned W> __global__ static void mark_elsewhere(Wave wave) {
    uint32_t b = blockIdx.x * blockDim.x + threadIdx.x;

    if (b >= wave.block_count)
        return;
    uint32_t s = wave.blocks[b].segment - wave.first_segment;

    wave.block[b].tokens = numbers_of(wave.block[b], wave.segment[s]);
    if (wave.block[b].changed > SORT_SMALL)
        wave.large[atomicAdd(wave.large_count, 1u)] = b;
    if (wave.block[b].changed > SORT_LARGE<W> || wave.segment[s].changes * MANY_OF >= wave.segments[s].elements)
        wave.segment[s].elsewhere = 1;
}

// Segments that the CPU codes, or that do not change, take no room.
__global__ static void __launch_bounds__(PREFIX_THREADS) place_tokens(Wave wave) {
    __shared__ uint64_t warp_sums[PREFIX_THREADS / WARP];
    const uint32_t each = (wave.block_count + PREFIX_THREADS - 1) / PREFIX_THREADS;
    const uint32_t from = min(each * threadIdx.x, wave.block_count), end = min(from + each, wave.block_count);
    uint64_t sum = 0;

    for (uint32_t b = from; b < end; b++) {
        const SegmentState &segment = segment_of(wave, wave.blocks[b]);

        if (segment.elsewhere || !segment.changes)
            wave.block[b].tokens = 0;
        sum += wave.block[b].tokens;
    }
    uint64_t upto = sum_up(sum);

    if (lane_id() == WARP - 1)
        warp_sums[threadIdx.x / WARP] = upto;
    __syncthreads();
    uint64_t at = upto - sum, total = 0;

    for (uint32_t warp = 0; warp < PREFIX_THREADS / WARP; warp++) {
        if (warp < threadIdx.x / WARP)
            at += warp_sums[warp];
        total += warp_sums[warp];
    }
    for (uint32_t b = from; b < end; b++) {
        wave.block[b].first_token = at;
        at += wave.block[b].tokens;
    }
    if (threadIdx.x == 0 && total > wave.token_limit)
        atomicOr(wave.overflow, FULL_POOL);
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

__device__ static __forceinline__ uint32_t page_place(const Wave &wave, uint32_t b, uint32_t entry) {
    return wave.pages[(size_t)PAGES_OF_BLOCK * b + entry / PAGE_ENTRIES] + entry % PAGE_ENTRIES;
}

// Each warp has a run of the entries, so that equal classes stay in order.
template <unsigned W, uint32_t ROOM>
__device__ static void sort_changes(const Wave &wave, uint32_t b, uint32_t n, SortShared<W, ROOM> *shared) {
    typedef typename element<W>::type T;
    const uint32_t run = (n + THREADS - 1) / THREADS * WARP, warp = threadIdx.x / WARP, lane = lane_id();
    const uint32_t from = min(run * warp, n), end = min(from + run, n), own = lane % CLASSES;
    uint32_t count = 0;

    for (uint32_t i = from; i < end; i += WARP) {
        bool valid = i + lane < end;
        uint32_t entry = valid ? wave.entries[page_place(wave, b, i + lane)] : 0;

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
        uint32_t place = valid ? page_place(wave, b, i + lane) : 0;
        uint32_t entry = valid ? wave.entries[place] : 0;
        Keys keys = ballot_keys(entry >> RANK_BITS, valid);
        uint32_t to = __shfl_sync(ALL_LANES, next, (int)(entry >> RANK_BITS)) +
                      (uint32_t)__popc(keys.equal(entry >> RANK_BITS) & ((1u << lane) - 1));

        if (valid) {
            shared->entry[to] = entry;
            shared->value[to] = ((const T *)wave.values)[place];
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
                                   Token<W> *tokens) {
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
                                   SortShared<W, ROOM> *shared, Token<W> *tokens) {
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
    const BlockState &block = wave.block[b];
    SegmentState &segment = segment_of(wave, wave.blocks[b]);
    Token<W> *tokens = (Token<W> *)wave.tokens + block.first_token;

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
    }
    __syncthreads();
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
    __syncthreads();
}

template <unsigned W> __global__ static void __launch_bounds__(THREADS) sort_small(Wave wave) {
    typedef SortShared<W, SORT_SMALL> Shared;
    DYNAMIC_SHARED(Shared, shared);

    if (wave.block[blockIdx.x].tokens && wave.block[blockIdx.x].changed <= SORT_SMALL && !*wave.overflow)
        sort_block(wave, blockIdx.x, shared);
}

// Few thread blocks go through those that are large.
template <unsigned W> __global__ static void __launch_bounds__(THREADS) sort_large(Wave wave) {
    typedef SortShared<W, SORT_LARGE<W>> Shared;
    DYNAMIC_SHARED(Shared, shared);

    for (uint32_t i = blockIdx.x; i < *wave.large_count && !*wave.overflow; i += gridDim.x) {
        if (wave.block[wave.large[i]].tokens)
            sort_block(wave, wave.large[i], shared);
    }
}

template <unsigned W> void encode_sort(const Wave &wave, cudaStream_t stream) {
    launch(mark_elsewhere<W>, (wave.block_count + THREADS - 1) / THREADS, THREADS, 0, stream, wave);
    launch(place_tokens, 1, PREFIX_THREADS, 0, stream, wave);
    launch(sort_small<W>, wave.block_count, THREADS, sizeof(SortShared<W, SORT_SMALL>), stream, wave);
    launch(sort_large<W>, wave.block_count < LARGE_BLOCKS ? wave.block_count : LARGE_BLOCKS, THREADS, sizeof(SortShared<W, SORT_LARGE<W>>), stream,
           wave);
}

template void encode_sort<1>(const Wave &, cudaStream_t);
template void encode_sort<2>(const Wave &, cudaStream_t);
template void encode_sort<4>(const Wave &, cudaStream_t);
template void encode_sort<8>(const Wave &, cudaStream_t);
