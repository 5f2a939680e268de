// SPDX-License-Identifier: Apache-2.0
// Twins: code/tans.c, tans_geometric() and tans_decoder_build(), with code/fixed.c and
// code/symbols.h. Integers only, and just these: the tables must be the encoder's, bit for bit. A
// warp makes a table.
#include "cuda/decode.h"

#include "cuda/decode_table.cuh"
#include "cuda/device.cuh"
#include "cuda/fixed.cuh"
#include "cuda/status.cuh"

#define TABLES_AT_ONCE 4u // warps of a block
#define LOG 10u           // of DECODE_STATES
#define SPREAD_BACK 43u   // 643 * 43 = 1 modulo 1024: which turn of the spread filled a state
#define SMALL_AGAINST_LARGEST 24
#define SYMBOLS_MAX DECODE_VALUE_SYMBOLS

// ---- symbols: the number is (lead << extra) + as many extra bits ----

struct form {
    uint32_t lead, extra;
};

__device__ static struct form form_of(uint32_t symbol, bool gaps) {
    if (gaps && symbol >= 8)
        return {4 + (symbol & 3), symbol / 4 - 1};
    if (!gaps && symbol >= 16)
        return {2 + (symbol & 1), (symbol - 16) / 2 + 3};
    return {symbol, 0};
}

// ---- shares ----

struct workspace {
    uint64_t count[DECODE_GAP_SYMBOLS];
    uint32_t share[SYMBOLS_MAX];
    uint32_t first[SYMBOLS_MAX + 1]; // states of the symbols in front of it
    uint32_t met[SYMBOLS_MAX];       // of its share, states met so far
};

// What [0, end of the symbol) is not hit with.
__device__ static uint64_t none_until(uint64_t none, uint32_t symbol) {
    struct form form = form_of(symbol, true);

    return fixed_power(none, (form.lead + 1) << form.extra);
}

__device__ static void count_gaps(struct workspace *work, uint32_t rate, uint32_t symbols) {
    const uint64_t none = FIXED_ONE - fixed_exp2_negative(rate);

    for (uint32_t s = lane_id(); s < symbols; s += WARP) {
        uint64_t before = s ? none_until(none, s - 1) : FIXED_ONE, after = none_until(none, s);
        uint64_t count = (before - min(after, before)) >> 6;

        work->count[s] = count ? count : 1;
    }
    __syncwarp();
}

// A symbol to be given a state or to lose one; `symbol` is DECODE_GAP_SYMBOLS for none.
struct candidate {
    uint64_t count;
    uint32_t weight, symbol;
};

// Whether `a` goes before `b`: compares count / weight by cross-multiplication, the first of equals
// wins.
__device__ static bool goes_before(struct candidate a, struct candidate b, bool more) {
    uint64_t left = a.count * b.weight, right = b.count * a.weight;

    if (a.symbol == DECODE_GAP_SYMBOLS || b.symbol == DECODE_GAP_SYMBOLS)
        return b.symbol == DECODE_GAP_SYMBOLS && a.symbol != DECODE_GAP_SYMBOLS;
    if (left == right)
        return a.symbol < b.symbol;
    return more ? left > right : left < right;
}

__device__ static uint32_t best_to_change(const struct workspace *work, uint32_t symbols,
                                          bool more) {
    struct candidate best = {0, 0, DECODE_GAP_SYMBOLS};

    for (uint32_t s = lane_id(); s < symbols; s += WARP) {
        uint32_t share = work->share[s];
        struct candidate here = {work->count[s], more ? 2 * share + 1 : 2 * share - 1, s};

        if ((more || share >= 2) && goes_before(here, best, more))
            best = here;
    }
    for (int by = 16; by > 0; by /= 2) {
        struct candidate other = {__shfl_xor_sync(ALL_LANES, best.count, by),
                                  __shfl_xor_sync(ALL_LANES, best.weight, by),
                                  __shfl_xor_sync(ALL_LANES, best.symbol, by)};

        if (goes_before(other, best, more))
            best = other;
    }
    return best.symbol;
}

// The first of the largest shares.
__device__ static uint32_t largest_share(const struct workspace *work, uint32_t symbols) {
    uint32_t best = 0; // share, and behind it the symbol from the end

    for (uint32_t s = lane_id(); s < symbols; s += WARP)
        best = max(best, work->share[s] << 8 | (255 - s));
    return 255 - (__reduce_max_sync(ALL_LANES, best) & 255);
}

__device__ static void change_share(struct workspace *work, uint32_t symbol, int by) {
    __syncwarp();
    if (lane_id() == 0)
        work->share[symbol] += (uint32_t)by;
    __syncwarp();
}

// tans_normalise() of counts that are all positive.
__device__ static void normalise(struct workspace *work, uint32_t symbols) {
    uint64_t total = 0;
    uint32_t used = 0, largest;
    int left;

    for (uint32_t s = lane_id(); s < symbols; s += WARP)
        total += work->count[s];
    total = warp_sum(total);
    for (uint32_t s = lane_id(); s < symbols; s += WARP) {
        uint32_t share = (uint32_t)((work->count[s] * DECODE_STATES + total / 2) / total);

        work->share[s] = share ? share : 1;
        used += work->share[s];
    }
    left = (int)DECODE_STATES - (int)warp_sum(used);
    __syncwarp();
    largest = largest_share(work, symbols);
    if ((left < 0 ? -left : left) * SMALL_AGAINST_LARGEST <= (int)work->share[largest]) {
        change_share(work, largest, left);
        left = 0;
    }
    for (; left > 0; left--)
        change_share(work, best_to_change(work, symbols, true), 1);
    for (; left < 0; left++)
        change_share(work, best_to_change(work, symbols, false), -1);
}

// ---- the table ----

__device__ static void add_up_shares(struct workspace *work, uint32_t symbols) {
    uint32_t before = 0;

    for (uint32_t from = 0; from < symbols; from += WARP) {
        uint32_t s = from + lane_id(), share = s < symbols ? work->share[s] : 0;
        uint32_t until = sum_up(share);

        if (s < symbols) {
            work->first[s] = before + until - share;
            work->met[s] = share;
        }
        before += __shfl_sync(ALL_LANES, until, WARP - 1);
    }
    __syncwarp();
}

// The symbol whose turn it was: the last that begins at or before it. Those without states are
// skipped, since the next begins at the same.
__device__ static uint32_t symbol_of_turn(const struct workspace *work, uint32_t symbols,
                                          uint32_t turn) {
    uint32_t low = 0, high = symbols;

    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;

        if (work->first[middle] <= turn)
            low = middle;
        else
            high = middle;
    }
    return low;
}

__device__ static void fill_table(struct workspace *work, uint32_t symbols, bool gaps,
                                  uint32_t *table) {
    add_up_shares(work, symbols);
    for (uint32_t state = lane_id(); state < DECODE_STATES; state += WARP) {
        uint32_t symbol = symbol_of_turn(work, symbols, state * SPREAD_BACK % DECODE_STATES);
        unsigned same = __match_any_sync(ALL_LANES, symbol);
        uint32_t x = work->met[symbol] + (uint32_t)__popc(same & ((1u << lane_id()) - 1));
        uint32_t bits = LOG - (31 - (uint32_t)__clz(x));
        struct form form = form_of(symbol, gaps);

        table[state] = table_entry((x << bits) - DECODE_STATES, bits, form.extra, form.lead);
        __syncwarp();
        if (same >> lane_id() == 1) // the last of them
            work->met[symbol] = x + 1;
        __syncwarp();
    }
}

__global__ static void __launch_bounds__(TABLES_AT_ONCE *WARP)
    build_tables(const struct decode_model *models, const uint16_t *shares, uint32_t *tables,
                 uint32_t count) {
    DYNAMIC_SHARED(struct workspace, works);
    struct workspace *work = &works[threadIdx.x / WARP];
    const uint32_t index = blockIdx.x * TABLES_AT_ONCE + threadIdx.x / WARP;

    if (index >= count) // the whole warp
        return;
    const struct decode_model model = models[index];
    const uint32_t symbols = model.top + 1u;

    if (model.gaps) {
        count_gaps(work, model.rate, symbols);
        normalise(work, symbols);
    } else {
        for (uint32_t s = lane_id(); s < symbols; s += WARP)
            work->share[s] = shares[model.shares + s];
        __syncwarp();
    }
    fill_table(work, symbols, model.gaps, &tables[(size_t)index * DECODE_STATES]);
}

extern "C" enum ulp_status cuda_decode_tables(const struct cuda_decode *decode, void *stream) {
    const uint32_t blocks = (decode->table_count + TABLES_AT_ONCE - 1) / TABLES_AT_ONCE;

    launch(build_tables, blocks, TABLES_AT_ONCE * WARP, TABLES_AT_ONCE * sizeof(struct workspace),
           (cudaStream_t)stream, decode->models, decode->shares, decode->tables,
           decode->table_count);
    return cuda_status(cudaGetLastError());
}
