// SPDX-License-Identifier: Apache-2.0
// What a state of the entropy coder says, in one word: the next state before its bits are added, how
// many bits follow those of the state, what the symbol's number begins with, and how many bits it takes
// in all, which is what everybody waits for and therefore comes out with one shift.
#pragma once

#include "cuda/device.cuh"

#define TABLE_NEXT_BITS 10u
#define TABLE_EXTRA_BITS 6u
#define TABLE_LEAD_BITS 9u
#define TABLE_EXTRA_SHIFT TABLE_NEXT_BITS
#define TABLE_LEAD_SHIFT (TABLE_EXTRA_SHIFT + TABLE_EXTRA_BITS)
#define TABLE_LENGTH_SHIFT (TABLE_LEAD_SHIFT + TABLE_LEAD_BITS)
#define TABLE_LENGTH_MAX 73u // a number's 63 bits behind the first, and ten of a state

__device__ static __forceinline__ uint32_t table_entry(uint32_t next, uint32_t bits, uint32_t extra,
                                                       uint32_t lead) {
    return next | extra << TABLE_EXTRA_SHIFT | lead << TABLE_LEAD_SHIFT | (bits + extra) << TABLE_LENGTH_SHIFT;
}

__device__ static __forceinline__ uint32_t entry_next(uint32_t entry) {
    return entry & ((1u << TABLE_NEXT_BITS) - 1);
}

__device__ static __forceinline__ uint32_t entry_extra(uint32_t entry) {
    return entry >> TABLE_EXTRA_SHIFT & ((1u << TABLE_EXTRA_BITS) - 1);
}

__device__ static __forceinline__ uint32_t entry_lead(uint32_t entry) {
    return entry >> TABLE_LEAD_SHIFT & ((1u << TABLE_LEAD_BITS) - 1);
}

// Bits of the state and those that follow.
__device__ static __forceinline__ uint32_t entry_length(uint32_t entry) {
    return entry >> TABLE_LENGTH_SHIFT;
}
