// SPDX-License-Identifier: Apache-2.0
// Twins: model_gaps() and model_values() in code/encode.c, code/tans.c, code/fixed.c. One warp makes one
// table: the gaps or the values of a class of a segment.
#include "cuda/encode.cuh"
#include "cuda/fixed.cuh"

#define THREADS 128u
#define WARPS (THREADS / WARP)
#define SMALL_AGAINST_LARGEST 24

struct TableShared {
    uint64_t counts[VALUE_SYMBOLS];
    uint32_t share[VALUE_SYMBOLS], first[VALUE_SYMBOLS], met[VALUE_SYMBOLS];
    uint8_t spread[TANS_STATES];
};

// ---- shares ----

// A symbol as a candidate for one state more or fewer, compared by count over weight.
struct Candidate {
    uint64_t count, weight;
    uint32_t symbol;
};

__device__ static bool better(const Candidate &x, const Candidate &y, bool more) {
    if (x.symbol == VALUE_SYMBOLS || y.symbol == VALUE_SYMBOLS)
        return y.symbol == VALUE_SYMBOLS && x.symbol != VALUE_SYMBOLS;
    uint64_t here = x.count * y.weight, there = y.count * x.weight;

    if (here != there)
        return more ? here > there : here < there;
    return x.symbol < y.symbol;
}

__device__ static uint32_t best_to_change(const TableShared *shared, uint32_t symbols, bool more) {
    Candidate best = {0, 1, VALUE_SYMBOLS};

    for (uint32_t s = lane_id(); s < symbols; s += WARP) {
        uint32_t share = shared->share[s];
        Candidate here = {shared->counts[s], more ? 2 * share + 1 : 2 * share - 1, s};

        if (here.count && (more || share >= 2) && better(here, best, more))
            best = here;
    }
    for (int by = 16; by > 0; by /= 2) {
        Candidate other = {__shfl_xor_sync(ALL_LANES, best.count, by), __shfl_xor_sync(ALL_LANES, best.weight, by),
                           __shfl_xor_sync(ALL_LANES, best.symbol, by)};

        if (better(other, best, more))
            best = other;
    }
    return best.symbol;
}

// The first of the largest shares.
__device__ static uint32_t largest_share(const TableShared *shared, uint32_t symbols) {
    uint32_t best = 0;

    for (uint32_t s = lane_id(); s < symbols; s += WARP)
        best = max(best, shared->share[s] << 8 | (255 - s));
    return 255 - (__reduce_max_sync(ALL_LANES, best) & 255);
}

__device__ static void normalise(TableShared *shared, uint32_t symbols) {
    uint64_t total = 0;
    uint32_t used = 0;

    for (uint32_t s = lane_id(); s < symbols; s += WARP)
        total += shared->counts[s];
    total = warp_sum(total);
    for (uint32_t s = lane_id(); s < symbols; s += WARP) {
        uint64_t share = (shared->counts[s] * TANS_STATES + total / 2) / total;

        shared->share[s] = (uint32_t)(shared->counts[s] && !share ? 1 : share);
        used += shared->share[s];
    }
    __syncwarp();
    int left = (int)TANS_STATES - (int)warp_sum(used);
    uint32_t largest = largest_share(shared, symbols);

    if ((left < 0 ? -left : left) * SMALL_AGAINST_LARGEST <= (int)shared->share[largest]) {
        __syncwarp();
        if (lane_id() == 0)
            shared->share[largest] += (uint32_t)left;
        left = 0;
    }
    for (; left; left += left > 0 ? -1 : 1) {
        __syncwarp();
        uint32_t best = best_to_change(shared, symbols, left > 0);

        if (lane_id() == 0)
            shared->share[best] += left > 0 ? 1u : ~0u;
    }
    __syncwarp();
}

// ---- tables ----

__device__ static void build_table(TableShared *shared, uint32_t symbols, EncodeTables *to) {
    uint32_t total = 0;

    for (uint32_t from = 0; from < symbols; from += WARP) {
        uint32_t s = from + lane_id(), share = s < symbols ? shared->share[s] : 0, upto = sum_up(share);

        if (s < symbols) {
            uint32_t bits = share > 1 ? TANS_LOG - log2_floor(share - 1) : TANS_LOG;

            shared->first[s] = total + upto - share;
            shared->met[s] = 0;
            to->step[s] = ((bits << 16) - (share > 1 ? share << bits : TANS_STATES)) |
                          (total + upto - share - (share ? share : 1)) << STEP_BITS;
            for (uint32_t i = 0; i < share; i++)
                shared->spread[(total + upto - share + i) * TANS_STEP % TANS_STATES] = (uint8_t)s;
        }
        total += __shfl_sync(ALL_LANES, upto, 31);
    }
    __syncwarp();
    for (uint32_t state = lane_id(); state < TANS_STATES; state += WARP) {
        uint32_t s = shared->spread[state], same = __match_any_sync(ALL_LANES, s);
        uint32_t before = (uint32_t)__popc(same & ((1u << lane_id()) - 1)), at = shared->first[s] + shared->met[s];

        to->next[at + before] = (uint16_t)(TANS_STATES + state);
        __syncwarp();
        if (!before)
            shared->met[s] += (uint32_t)__popc(same);
        __syncwarp();
    }
}

__device__ static void model_gaps(const Wave &wave, const cuda_segment &segment, SegmentState *state, uint32_t k,
                                  TableShared *shared) {
    ClassModel *model = &state->model[k];
    uint64_t events = 0, seen = 0;

    for (uint32_t b = lane_id(); b < segment.blocks; b += WARP) {
        const BlockState &block = wave.block[segment.first_block - wave.first_block + b];

        events += events_of(block, state->flipped, k);
        seen += block.seen[k];
    }
    events = warp_sum(events);
    seen = warp_sum(seen);
    if (lane_id() == 0)
        model->used = events != 0;
    if (!events)
        return;
    uint32_t rate = (fixed_log2(log2_table, seen) - fixed_log2(log2_table, events)) >> (COST_SHIFT - 11);
    uint32_t top = gap_symbol(state->largest_gap[k]).symbol;

    rate = min(rate, 65535u);
    uint64_t none = FIXED_ONE - fixed_exp2_negative(rate);

    for (uint32_t s = lane_id(); s <= top; s += WARP) {
        uint64_t before = fixed_power(none, gap_least(s)), after = fixed_power(none, gap_end(s));
        uint64_t count = (before - min(after, before)) >> 6;

        shared->counts[s] = count + !count;
    }
    __syncwarp();
    normalise(shared, top + 1);
    for (uint32_t s = top + 1 + lane_id(); s < GAP_SYMBOLS; s += WARP)
        shared->share[s] = 0;
    __syncwarp();
    build_table(shared, GAP_SYMBOLS, &state->gaps[k]);
    if (lane_id() == 0) {
        model->rate = rate;
        model->top_gap = top;
    }
}

__device__ static void model_values(SegmentState *state, uint32_t k, TableShared *shared) {
    ClassModel *model = &state->model[k];
    uint32_t top = 0;

    for (uint32_t s = lane_id(); s < VALUE_SYMBOLS; s += WARP) {
        shared->counts[s] = state->value_counts[k][s];
        top = shared->counts[s] ? s + 1 : top;
    }
    top = __reduce_max_sync(ALL_LANES, top);
    if (lane_id() == 0)
        model->changes = top != 0;
    __syncwarp();
    if (!top)
        return;
    normalise(shared, VALUE_SYMBOLS);
    build_table(shared, VALUE_SYMBOLS, &state->values[k]);
    for (uint32_t s = lane_id(); s < VALUE_SYMBOLS; s += WARP)
        model->share[s] = (uint16_t)shared->share[s];
    if (lane_id() == 0)
        model->top_value = top - 1;
}

__global__ static void __launch_bounds__(THREADS) make_models(Wave wave) {
    __shared__ TableShared shared[WARPS];
    const uint32_t s = blockIdx.x, table = blockIdx.y * WARPS + threadIdx.x / WARP, k = table / 2;
    SegmentState *state = &wave.segment[s];

    if (k >= state->classes || state->elsewhere || !state->changes || *wave.overflow)
        return;
    if (table % 2)
        model_values(state, k, &shared[threadIdx.x / WARP]);
    else
        model_gaps(wave, wave.segments[s], state, k, &shared[threadIdx.x / WARP]);
}

void encode_models(const Wave &wave, cudaStream_t stream) {
    launch(make_models, dim3(wave.segment_count, 2 * CLASSES / WARPS), THREADS, 0, stream, wave);
}
