// SPDX-License-Identifier: Apache-2.0
// What a state of the entropy coder says, in one word: the next state before its bits are added,
// how many those are, and what the symbol's number begins with.
#pragma once

#include "cuda/device.cuh"

#define TABLE_NEXT_BITS 10u
#define TABLE_BITS_BITS 4u
#define TABLE_EXTRA_BITS 6u

__device__ static __forceinline__ uint32_t table_entry(uint32_t next, uint32_t bits, uint32_t extra,
                                                       uint32_t lead) {
    return next | bits << TABLE_NEXT_BITS | extra << (TABLE_NEXT_BITS + TABLE_BITS_BITS) |
           lead << (TABLE_NEXT_BITS + TABLE_BITS_BITS + TABLE_EXTRA_BITS);
}

__device__ static __forceinline__ uint32_t entry_next(uint32_t entry) {
    return entry & ((1u << TABLE_NEXT_BITS) - 1);
}

__device__ static __forceinline__ uint32_t entry_bits(uint32_t entry) {
    return entry >> TABLE_NEXT_BITS & ((1u << TABLE_BITS_BITS) - 1);
}

__device__ static __forceinline__ uint32_t entry_extra(uint32_t entry) {
    return entry >> (TABLE_NEXT_BITS + TABLE_BITS_BITS) & ((1u << TABLE_EXTRA_BITS) - 1);
}

__device__ static __forceinline__ uint32_t entry_lead(uint32_t entry) {
    return entry >> (TABLE_NEXT_BITS + TABLE_BITS_BITS + TABLE_EXTRA_BITS);
}
