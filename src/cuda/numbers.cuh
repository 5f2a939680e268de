// SPDX-License-Identifier: Apache-2.0
// The integer arithmetic that shapes a segment, as in code/fixed.c, code/symbols.h and code/tans.c.
#pragma once

#include "code/classes.h"
#include "code/kind.h"
#include "cuda/device.cuh"

#define COST_SHIFT 12u
#define TANS_LOG 10u
#define TANS_STATES (1u << TANS_LOG)
#define TANS_STEP ((TANS_STATES >> 1) + (TANS_STATES >> 3) + 3)
#define GAP_SYMBOLS 76u
#define VALUE_DIRECT 16u
#define VALUE_SYMBOLS 136u
#define STREAM_STATES 8u

__device__ static const uint32_t log2_table[257] = {
#include "code/log2_table.inc"
};

__device__ static __forceinline__ uint32_t log2_floor(uint32_t x) {
    return 31 - (uint32_t)__clz(x);
}

__device__ static __forceinline__ uint32_t log2_floor(uint64_t x) {
    return 63 - (uint32_t)__clzll(x);
}

// With a table of the caller's choice, in shared memory perhaps.
__device__ static __forceinline__ uint32_t fixed_log2(const uint32_t *table, uint64_t x) {
    uint32_t whole = log2_floor(x);
    uint64_t fraction = x << (63 - whole) << 1 >> 40;
    uint64_t low = table[fraction >> 16], high = table[(fraction >> 16) + 1];
    uint64_t between = low + ((high - low) * (fraction & 0xffff) >> 16);

    return whole << COST_SHIFT | (uint32_t)(between >> (24 - COST_SHIFT));
}

// ---- numbers as symbols with extra bits ----

struct Symbol {
    uint32_t symbol, extra;
};

__device__ static __forceinline__ Symbol gap_symbol(uint32_t gap) {
    uint32_t extra = log2_floor(gap | 4) - 2;

    return {4 * extra + (gap >> extra), extra};
}

template <typename T> __device__ static __forceinline__ Symbol value_symbol(T value) {
    if (value < VALUE_DIRECT)
        return {(uint32_t)value, 0};
    uint32_t extra = (sizeof value > 4 ? log2_floor((uint64_t)value) : log2_floor((uint32_t)value)) - 1;

    return {VALUE_DIRECT - 8 + 2 * extra + (uint32_t)(value >> extra), extra};
}

// The smallest number of a gap symbol, and of the one behind it.
__device__ static __forceinline__ uint32_t gap_least(uint32_t symbol) {
    return symbol < 8 ? symbol : (4 + (symbol & 3)) << ((symbol >> 2) - 1);
}

__device__ static __forceinline__ uint32_t gap_end(uint32_t symbol) {
    return symbol < 8 ? symbol + 1 : (5 + (symbol & 3)) << ((symbol >> 2) - 1);
}

// ---- cells ----

__device__ static __forceinline__ uint32_t cell_of_exponent(code_kind kind, uint32_t exponent) {
    if (exponent < kind.lowest)
        return 0;
    exponent -= kind.lowest;
    return exponent < EXPONENT_CELLS ? exponent : EXPONENT_CELLS - 1;
}

template <typename T> __device__ static __forceinline__ uint32_t exponent_of(code_kind kind, T old) {
    return (uint32_t)(old >> kind.exponent_shift) & ((1u << kind.exponent_bits) - 1);
}

__device__ static __forceinline__ uint32_t move_bucket(int move) {
    int size = move < 0 ? -move : move;

    return size <= 2 ? (uint32_t)size : size <= 4 ? 3 : size <= 8 ? 4 : size <= 24 ? 5 : 6;
}
