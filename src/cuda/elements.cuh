// SPDX-License-Identifier: Apache-2.0
// Elements in device memory: eight at a time, as vectors where they are aligned, one by one where not
// or where a block ends.
#pragma once

#include "cuda/element.cuh"
#include "cuda/numbers.cuh"
#include "cuda/plan.h"

#define OCTET 8u

// The number that stands for the step between two elements that differ: zigzag, less one; against the
// last move it is negated.
template <unsigned W>
__device__ static __forceinline__ typename element<W>::type
value_of(typename element<W>::type before, typename element<W>::type after, bool negated) {
    typedef typename element<W>::type T;
    typename element<W>::step step = (typename element<W>::step)(T)(negated ? before - after : after - before);

    return (T)((T)((T)step << 1) ^ (T)(step >> (8 * W - 1))) - (T)1;
}

template <unsigned W> struct Octet {
    typedef typename element<W>::type T;
    static constexpr unsigned WORDS = 2 * W; // of 32 bits

    alignas(W == 1 ? 8 : 16) uint32_t word[WORDS];

    __device__ __forceinline__ T at(unsigned i) const {
        if (W == 8)
            return (T)((uint64_t)word[2 * i + 1] << 32 | word[2 * i]);
        return (T)(word[i * W / 4] >> 8 * (i * W % 4));
    }

    __device__ __forceinline__ void put(unsigned i, T value) {
        if (W == 8) {
            word[2 * i] = (uint32_t)value;
            word[2 * i + 1] = (uint32_t)((uint64_t)value >> 32);
        } else {
            word[i * W / 4] |= (uint32_t)value << 8 * (i * W % 4);
        }
    }

    // In place of what was there.
    __device__ __forceinline__ void set(unsigned i, T value) {
        if (W < 4)
            word[i * W / 4] &= ~(((1u << 8 * (W % 4)) - 1) << 8 * (i * W % 4));
        else if (W == 4)
            word[i] = 0;
        put(i, value);
    }

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (unsigned i = 0; i < WORDS; i++)
            word[i] = 0;
    }
};

// Whether whole octets can be loaded as vectors.
template <unsigned W> __device__ static __forceinline__ bool octets_aligned(const uint8_t *data) {
    return ((uintptr_t)data & (W == 1 ? 7 : 15)) == 0;
}

template <unsigned W>
__device__ static __forceinline__ Octet<W> load_vector(const uint8_t *data, uint32_t octet) {
    Octet<W> loaded;

    if constexpr (W == 1) {
        uint2 two = __ldg((const uint2 *)data + octet);

        loaded.word[0] = two.x;
        loaded.word[1] = two.y;
    } else {
#pragma unroll
        for (unsigned i = 0; i < Octet<W>::WORDS / 4; i++) {
            uint4 four = __ldg((const uint4 *)data + octet * (Octet<W>::WORDS / 4) + i);

            loaded.word[4 * i] = four.x;
            loaded.word[4 * i + 1] = four.y;
            loaded.word[4 * i + 2] = four.z;
            loaded.word[4 * i + 3] = four.w;
        }
    }
    return loaded;
}

// Elements from `count` on are zero.
template <unsigned W>
__device__ static __forceinline__ Octet<W> load_some(const uint8_t *data, uint32_t octet, uint32_t count) {
    typedef typename element<W>::type T;
    Octet<W> loaded;

    loaded.clear();
#pragma unroll
    for (unsigned i = 0; i < OCTET; i++) {
        if (OCTET * octet + i < count)
            loaded.put(i, ((const T *)data)[OCTET * octet + i]);
    }
    return loaded;
}

template <unsigned W>
__device__ static __forceinline__ Octet<W> load_octet(const uint8_t *data, bool aligned, uint32_t octet,
                                                      uint32_t elements) {
    if (aligned && OCTET * octet + OCTET <= elements)
        return load_vector<W>(data, octet);
    return load_some<W>(data, octet, elements);
}

// The 8-byte word of the block that an element is in; behind the block's end it is zero.
template <unsigned W>
__device__ static __forceinline__ uint64_t load_word(const uint8_t *data, bool aligned, uint32_t word,
                                                     uint32_t elements) {
    typedef typename element<W>::type T;
    const uint32_t each = 8 / W, first = word * each;
    uint64_t value = 0;

    if (aligned && first + each <= elements)
        return __ldg((const unsigned long long *)data + word);
    for (uint32_t i = 0; i < each && first + i < elements; i++)
        value |= (uint64_t)((const T *)data)[first + i] << (W == 8 ? 0 : 8 * W * i);
    return value;
}
