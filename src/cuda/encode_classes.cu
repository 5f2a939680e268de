// SPDX-License-Identifier: Apache-2.0
// Twins: scan_sample() in code/context_scan.c, code/classes.c.
#include "cuda/encode.cuh"
#include "cuda/encode_journal.cuh"

#define SAMPLE_THREADS 256u
#define SAMPLE_RUN 2048u
#define SAMPLE_ELEMENTS (1u << 19)

#define CHOOSE_THREADS 512u
#define PRICE_LANES 8u // that price one pair
#define TEAMS (CHOOSE_THREADS / PRICE_LANES)
#define GROUPS_MAX 128u
#define NONE 0xffu

#define CLASS_HEADER_BITS 130u
#define CLASS_BLOCK_BITS 7u

// ---- the sample ----

struct SampleShared {
    uint32_t seen[SAMPLE_THREADS / WARP][EXPONENT_CELLS];
    uint32_t changed[EXPONENT_CELLS];
    uint32_t size[EXPONENT_CELLS][SIZES];
};

typedef OverlayMarks<SAMPLE_RUN / OCTET> SampleMarks;
template <unsigned W, bool JOURNAL> using SampleOverlay = Overlay<W, SAMPLE_RUN / OCTET, SAMPLE_THREADS, JOURNAL>;

template <typename T> __device__ static __forceinline__ uint32_t size_symbol(T value) {
    uint32_t symbol = value_symbol(value).symbol;

    return symbol < SIZES ? symbol : SIZES - 1;
}

__device__ static __forceinline__ uint32_t *sample_seen(const Wave &wave, uint32_t segment) {
    return wave.samples + SAMPLE_COUNTERS(wave.cells) * segment;
}

// Elements that moved before were counted as if they had not; they belong to other cells.
template <unsigned W, bool JOURNAL>
__device__ static void sample_moved(const Wave &wave, const cuda_block &block, code_kind kind, uint32_t b,
                                    const SampleOverlay<W, JOURNAL> &overlay, uint32_t from, uint32_t end,
                                    SampleShared *shared, uint32_t *totals) {
    typedef typename element<W>::type T;
    const MoveRange range = moves_of_block(wave, b);

    for (const decode_move *i = range.at + moves_before(range, from) + threadIdx.x; i < range.end;
         i += SAMPLE_THREADS) {
        uint32_t move = *i, at = move_position(move);

        if (at >= end)
            break;
        const T before = overlay.at(at - from, ((const T *)block.old)[at]), after = ((const T *)block.new_)[at];
        uint32_t cell = cell_of_exponent(kind, exponent_of(kind, before));
        uint32_t moved = cell + EXPONENT_CELLS * move_bucket(move_size(move));

        atomicAdd(&shared->seen[0][cell], ~0u);
        atomicAdd(&totals[moved], 1u);
        if (before != after) {
            uint32_t plain = size_symbol(value_of<W>(before, after, false));
            uint32_t signed_ = size_symbol(value_of<W>(before, after, move_size(move) < 0));

            atomicAdd(&shared->changed[cell], ~0u);
            atomicAdd(&shared->size[cell][plain], ~0u);
            atomicAdd(&totals[wave.cells + moved], 1u);
            atomicAdd(&totals[2 * wave.cells + SIZES * moved + signed_], 1u);
        }
    }
}

template <unsigned W, typename T>
__device__ static __forceinline__ void sample_one(code_kind kind, T x, T y, SampleShared *shared) {
    uint32_t cell = cell_of_exponent(kind, exponent_of(kind, x));

    atomicAdd(&shared->seen[threadIdx.x / WARP][cell], 1u);
    if (x != y) {
        atomicAdd(&shared->changed[cell], 1u);
        atomicAdd(&shared->size[cell][size_symbol(value_of<W>(x, y, false))], 1u);
    }
}

template <unsigned W, bool JOURNAL>
__global__ static void __launch_bounds__(SAMPLE_THREADS) sample_blocks(Wave wave) {
    __shared__ SampleShared shared;
    __shared__ SampleMarks marks;
    const cuda_block block = wave.blocks[blockIdx.x];
    const cuda_segment segment = wave.segments[block.segment - wave.first_segment];
    const uint32_t stride = segment.elements / SAMPLE_ELEMENTS + 1;
    const bool aligned = octets_aligned<W>(block.old) && octets_aligned<W>(block.new_);
    uint32_t *totals = sample_seen(wave, block.segment - wave.first_segment);
    SampleOverlay<W, JOURNAL> overlay(wave, wave.first_block + blockIdx.x, &marks);

    for (uint32_t i = threadIdx.x; i < sizeof shared / 4; i += SAMPLE_THREADS)
        ((uint32_t *)&shared)[i] = 0;
    __syncthreads();
    for (uint32_t from = 0; from < block.elements; from += SAMPLE_RUN * stride) {
        uint32_t end = min(from + SAMPLE_RUN, block.elements);

        if (JOURNAL) {
            __syncthreads();
            overlay.find(from);
            overlay.mark(from);
        }
        for (uint32_t octet = from / OCTET + threadIdx.x; OCTET * octet < end; octet += SAMPLE_THREADS) {
            Octet<W> x = load_octet<W>(block.old, aligned, octet, end), y = load_octet<W>(block.new_, aligned, octet, end);

            overlay.put(octet - from / OCTET, &x);
#pragma unroll
            for (uint32_t i = 0; i < OCTET; i++) {
                if (OCTET * octet + i < end)
                    sample_one<W>(segment.kind, x.at(i), y.at(i), &shared);
            }
        }
        if (wave.moves.moves)
            sample_moved<W, JOURNAL>(wave, block, segment.kind, wave.first_block + blockIdx.x, overlay, from, end,
                                     &shared, totals);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < EXPONENT_CELLS; i += SAMPLE_THREADS) {
        uint32_t seen = 0;

        for (uint32_t warp = 0; warp < SAMPLE_THREADS / WARP; warp++)
            seen += shared.seen[warp][i];
        if (seen)
            atomicAdd(&totals[i], seen);
        if (shared.changed[i])
            atomicAdd(&totals[wave.cells + i], shared.changed[i]);
    }
    for (uint32_t i = threadIdx.x; i < EXPONENT_CELLS * SIZES; i += SAMPLE_THREADS) {
        uint32_t count = (&shared.size[0][0])[i];

        if (count)
            atomicAdd(&totals[2 * wave.cells + i], count);
    }
}

// ---- classes: groups of cells are merged, the cheapest pair first, while a class less is worth it ----

// Without history there are no more groups than exponents, and the less memory this takes the sooner some
// processor has it to spare.
template <uint32_t GROUPS> struct Chooser {
    uint64_t pair[GROUPS * (GROUPS - 1) / 2]; // cost, then i and j: the least is the first of equals
    uint64_t cost[GROUPS];
    uint32_t seen[GROUPS], changed[GROUPS];
    uint32_t size[GROUPS][SIZES];
    uint32_t log2[257];
    uint16_t cell[GROUPS];
    uint8_t merged_into[GROUPS], class_of[GROUPS];
    uint8_t of[CELLS];
    uint32_t count;
    uint64_t best[CHOOSE_THREADS / WARP];
};

#define PAIR_BITS 14u // two numbers of groups
#define NO_PAIR (~UINT64_C(0))

__device__ static __forceinline__ uint32_t pair_index(uint32_t i, uint32_t j) { // i < j
    return j * (j - 1) / 2 + i;
}

template <uint32_t GROUPS>
__device__ static __forceinline__ uint64_t cost_of_count(const Chooser<GROUPS> *chooser, uint32_t count, uint32_t total,
                                                         uint32_t log2_total) {
    return count && count < total ? (uint64_t)count * (log2_total - fixed_log2(chooser->log2, count)) : 0;
}

// The cost of one group, or of two as one, by PRICE_LANES lanes; all of them get it.
template <uint32_t GROUPS>
__device__ static uint64_t price_group(const Chooser<GROUPS> *chooser, uint32_t i, uint32_t j, bool two) {
    const uint32_t turn = threadIdx.x % PRICE_LANES;
    const uint32_t seen = chooser->seen[i] + (two ? chooser->seen[j] : 0);
    const uint32_t changed = chooser->changed[i] + (two ? chooser->changed[j] : 0);
    uint64_t cost = 0;

    if (turn < 2) // those that change, those that do not
        cost = cost_of_count(chooser, turn ? changed : seen - changed, seen, fixed_log2(chooser->log2, seen | !seen));
    if (changed) {
        const uint32_t log2_changed = fixed_log2(chooser->log2, changed);

        for (uint32_t s = turn; s < SIZES; s += PRICE_LANES)
            cost += cost_of_count(chooser, chooser->size[i][s] + (two ? chooser->size[j][s] : 0), changed, log2_changed);
    }
    for (int by = PRICE_LANES / 2; by > 0; by /= 2)
        cost += __shfl_xor_sync(ALL_LANES, cost, by);
    return cost;
}

template <uint32_t GROUPS>
__device__ static void set_pair(Chooser<GROUPS> *chooser, uint32_t i, uint32_t j, uint64_t together) {
    uint64_t apart = chooser->cost[i] + chooser->cost[j];
    uint32_t low = min(i, j), high = max(i, j);

    chooser->pair[pair_index(low, high)] =
        (together > apart ? together - apart : 0) << PAIR_BITS | low * GROUPS_MAX | high;
}

// Each of the most seen cells becomes a group: its place is how many are seen more often.
template <uint32_t GROUPS>
__device__ static void start_groups(Chooser<GROUPS> *chooser, const uint32_t *totals, uint32_t cells) {
    for (uint32_t cell = threadIdx.x; cell < cells; cell += CHOOSE_THREADS) {
        uint32_t place = 0;

        if (!totals[cell])
            continue;
        for (uint32_t other = 0; other < cells; other++)
            place += totals[other] > totals[cell] || (totals[other] == totals[cell] && other < cell);
        atomicAdd(&chooser->count, 1u);
        if (place >= GROUPS)
            continue;
        chooser->cell[place] = (uint16_t)cell;
        chooser->merged_into[place] = (uint8_t)place;
        chooser->seen[place] = totals[cell];
        chooser->changed[place] = totals[cells + cell];
        for (uint32_t s = 0; s < SIZES; s++)
            chooser->size[place][s] = totals[2 * cells + SIZES * cell + s];
    }
    __syncthreads();
    if (threadIdx.x == 0)
        chooser->count = min(chooser->count, GROUPS);
    __syncthreads();
}

// All threads come along, for the shuffles; those beyond the work do the first piece again.
template <uint32_t GROUPS>
__device__ static void price_all(Chooser<GROUPS> *chooser) {
    const uint32_t team = threadIdx.x / PRICE_LANES;
    const uint32_t pairs = chooser->count * (chooser->count - 1) / 2;

    for (uint32_t from = 0; from < chooser->count; from += TEAMS) {
        uint32_t i = from + team < chooser->count ? from + team : 0;
        uint64_t cost = price_group(chooser, i, 0, false);

        if (threadIdx.x % PRICE_LANES == 0)
            chooser->cost[i] = cost;
    }
    __syncthreads();
    for (uint32_t from = 0; from < pairs; from += TEAMS) {
        uint32_t p = from + team < pairs ? from + team : 0, j = 1;

        while (pair_index(0, j + 1) <= p)
            j++;
        uint64_t together = price_group(chooser, p - pair_index(0, j), j, true);

        if (threadIdx.x % PRICE_LANES == 0)
            set_pair(chooser, p - pair_index(0, j), j, together);
    }
    __syncthreads();
}

template <uint32_t GROUPS>
__device__ static uint64_t cheapest(Chooser<GROUPS> *chooser) {
    const uint32_t pairs = chooser->count * (chooser->count - 1) / 2;
    uint64_t best = NO_PAIR;

    for (uint32_t p = threadIdx.x; p < pairs; p += CHOOSE_THREADS)
        best = min(best, chooser->pair[p]);
    for (int by = 16; by > 0; by /= 2)
        best = min(best, __shfl_xor_sync(ALL_LANES, best, by));
    if (lane_id() == 0)
        chooser->best[threadIdx.x / WARP] = best;
    __syncthreads();
    for (uint32_t warp = 0; warp < CHOOSE_THREADS / WARP; warp++)
        best = min(best, chooser->best[warp]);
    __syncthreads();
    return best;
}

// Warps without a group that is left have nothing to do.
template <uint32_t GROUPS> __device__ static void merge(Chooser<GROUPS> *chooser, uint32_t i, uint32_t j) {
    for (uint32_t s = threadIdx.x; s < SIZES; s += CHOOSE_THREADS)
        chooser->size[i][s] += chooser->size[j][s];
    if (threadIdx.x == SIZES) {
        chooser->seen[i] += chooser->seen[j];
        chooser->changed[i] += chooser->changed[j];
        chooser->merged_into[j] = (uint8_t)i;
    }
    __syncthreads();
    if (threadIdx.x / WARP == CHOOSE_THREADS / WARP - 1) {
        uint64_t own = price_group(chooser, i, 0, false);

        if (lane_id() == 0)
            chooser->cost[i] = own;
    }
    uint64_t together[GROUPS / TEAMS] = {};

#pragma unroll
    for (uint32_t turn = 0; turn < GROUPS / TEAMS; turn++) {
        uint32_t other = TEAMS * turn + threadIdx.x / PRICE_LANES;
        bool live = other < chooser->count && chooser->merged_into[other] == other && other != i;

        if (__any_sync(ALL_LANES, live))
            together[turn] = price_group(chooser, i, live ? other : i, true);
    }
    __syncthreads();
#pragma unroll
    for (uint32_t turn = 0; turn < GROUPS / TEAMS; turn++) {
        uint32_t other = TEAMS * turn + threadIdx.x / PRICE_LANES;

        if (threadIdx.x % PRICE_LANES || other >= chooser->count)
            continue;
        if (chooser->merged_into[other] == other && other != i)
            set_pair(chooser, i, other, together[turn]);
        if (other != j)
            chooser->pair[pair_index(min(j, other), max(j, other))] = NO_PAIR;
    }
    __syncthreads();
}

// Classes are numbered by their rate of change, which is kept where the costs were.
template <uint32_t GROUPS>
__device__ static void number_classes(Chooser<GROUPS> *chooser, SegmentState *to) {
    uint64_t *rates = chooser->cost;

    for (uint32_t i = threadIdx.x; i < chooser->count; i += CHOOSE_THREADS)
        rates[i] = chooser->merged_into[i] == i ? ((uint64_t)chooser->changed[i] << 32) / chooser->seen[i] : NO_PAIR;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < chooser->count; i += CHOOSE_THREADS) {
        uint32_t place = 0;

        for (uint32_t other = 0; other < chooser->count; other++)
            place += rates[other] < rates[i] || (rates[other] == rates[i] && other < i);
        chooser->class_of[i] = (uint8_t)place;
        if (chooser->merged_into[i] == i && 2 * (uint64_t)chooser->changed[i] > chooser->seen[i])
            atomicMin(&to->flipped, place);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < chooser->count; i += CHOOSE_THREADS) {
        uint32_t root = i;

        while (chooser->merged_into[root] != root)
            root = chooser->merged_into[root];
        chooser->of[chooser->cell[i]] = chooser->class_of[root];
    }
    __syncthreads();
}

// Cells that the sample did not show go with their neighbour in the exponent: the next lower one that it
// showed or, if there is none, the next higher one. A warp for each bucket.
__device__ static void fill_unseen(const uint8_t *from, uint8_t *to) {
    const uint32_t lane = lane_id();
    const uint64_t low = __ballot_sync(ALL_LANES, from[lane] != NONE);
    const uint64_t seen = (uint64_t)__ballot_sync(ALL_LANES, from[WARP + lane] != NONE) << WARP | low;

    static_assert(EXPONENT_CELLS == 2 * WARP, "two cells for each lane");
    for (uint32_t e = lane; e < EXPONENT_CELLS; e += WARP) {
        const uint64_t upto = seen & (~UINT64_C(0) >> (63 - e));
        const uint32_t like = upto ? log2_floor(upto) : (uint32_t)__ffsll((long long)seen) - 1;

        to[e] = seen ? from[like] : 0;
    }
}

// As scan_sample() counts them.
__device__ static uint64_t sampled_elements(const Wave &wave, const cuda_segment &segment) {
    const uint32_t stride = segment.elements / SAMPLE_ELEMENTS + 1;
    uint64_t sampled = 0;

    for (uint32_t b = lane_id(); b < segment.blocks; b += WARP) {
        uint32_t elements = wave.blocks[segment.first_block - wave.first_block + b].elements;
        uint32_t every = SAMPLE_RUN * stride, rest = elements % every;

        sampled += (uint64_t)(elements / every) * SAMPLE_RUN + min(rest, SAMPLE_RUN);
    }
    return warp_sum(sampled);
}

template <uint32_t GROUPS> __global__ static void __launch_bounds__(CHOOSE_THREADS) choose_classes(Wave wave) {
    DYNAMIC_SHARED(Chooser<GROUPS>, chooser);
    const cuda_segment segment = wave.segments[blockIdx.x];
    SegmentState *to = &wave.segment[blockIdx.x];
    const uint64_t sampled = sampled_elements(wave, segment);
    const uint64_t class_bits = CLASS_HEADER_BITS + CLASS_BLOCK_BITS * (uint64_t)segment.blocks;
    const uint64_t worth = (class_bits << COST_SHIFT) * sampled / segment.elements;

    for (uint32_t i = threadIdx.x; i < 257; i += CHOOSE_THREADS)
        chooser->log2[i] = log2_table[i];
    for (uint32_t i = threadIdx.x; i < CELLS; i += CHOOSE_THREADS)
        chooser->of[i] = NONE;
    if (threadIdx.x == 0) {
        chooser->count = 0;
        to->flipped = CLASSES + 1;
    }
    __syncthreads();
    start_groups(chooser, sample_seen(wave, blockIdx.x), wave.cells);
    price_all(chooser);
    uint32_t alive = chooser->count; // each thread counts for itself

    for (; alive > 1; alive--) {
        uint64_t pair = cheapest(chooser);

        if (alive <= CLASSES && pair >> PAIR_BITS > worth)
            break;
        merge(chooser, (uint32_t)pair / GROUPS_MAX % GROUPS_MAX, (uint32_t)pair % GROUPS_MAX);
    }
    number_classes(chooser, to);
    if (threadIdx.x / WARP < wave.cells / EXPONENT_CELLS)
        fill_unseen(chooser->of + EXPONENT_CELLS * (threadIdx.x / WARP), to->of + EXPONENT_CELLS * (threadIdx.x / WARP));
    if (threadIdx.x == 0) {
        to->classes = max(alive, 1u);
        to->flipped = min(to->flipped, to->classes);
    }
}

template <unsigned W> void encode_classes(const Wave &wave, cudaStream_t stream) {
    cudaMemsetAsync(wave.samples, 0, SAMPLE_COUNTERS(wave.cells) * wave.segment_count * 4, stream);
    if constexpr (W == 2 || W == 4) // what can be cast
        launch(wave.journal ? sample_blocks<W, true> : sample_blocks<W, false>, wave.block_count, SAMPLE_THREADS, 0,
               stream, wave);
    else
        launch(sample_blocks<W, false>, wave.block_count, SAMPLE_THREADS, 0, stream, wave);
    if (wave.cells > EXPONENT_CELLS)
        launch(choose_classes<GROUPS_MAX>, wave.segment_count, CHOOSE_THREADS, sizeof(Chooser<GROUPS_MAX>), stream, wave);
    else
        launch(choose_classes<EXPONENT_CELLS>, wave.segment_count, CHOOSE_THREADS, sizeof(Chooser<EXPONENT_CELLS>), stream, wave);
}

template void encode_classes<1>(const Wave &, cudaStream_t);
template void encode_classes<2>(const Wave &, cudaStream_t);
template void encode_classes<4>(const Wave &, cudaStream_t);
template void encode_classes<8>(const Wave &, cudaStream_t);
