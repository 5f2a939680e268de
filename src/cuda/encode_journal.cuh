// SPDX-License-Identifier: Apache-2.0
// The old elements of weights that were cast in place: what is there now, and over it what the journal says. A
// tile's entries are marked in shared memory, a bit for each element and for each octet which entry is its first;
// so octets without one, nearly all, cost a look at a byte. Without a journal all of this is nothing.
#pragma once

#include "cuda/encode.cuh"

template <uint32_t OCTETS> struct OverlayMarks {
    uint32_t bits[OCTETS / 4]; // a byte for each octet
    uint16_t first[OCTETS];    // its first entry, counted from the tile's; where there is one
    uint32_t end;              // of the tile's entries
};

template <unsigned W, uint32_t OCTETS, uint32_t THREADS, bool JOURNAL> struct Overlay;

template <unsigned W, uint32_t OCTETS, uint32_t THREADS> struct Overlay<W, OCTETS, THREADS, false> {
    typedef typename element<W>::type T;

    __device__ __forceinline__ Overlay(const Wave &, uint32_t, OverlayMarks<OCTETS> *) {}
    __device__ __forceinline__ void find(uint32_t) {}
    __device__ __forceinline__ void mark(uint32_t) {}
    __device__ __forceinline__ void put(uint32_t, Octet<W> *) const {}
    __device__ __forceinline__ T at(uint32_t, T there) const { return there; }
};

template <unsigned W, uint32_t OCTETS, uint32_t THREADS> struct Overlay<W, OCTETS, THREADS, true> {
    typedef typename element<W>::type T;
    const uint32_t *positions;
    const T *values;
    uint32_t count;
    uint32_t begin, next; // the first entry of this tile and of the one behind it
    OverlayMarks<OCTETS> *marks;

    // Block b of the plan.
    __device__ __forceinline__ Overlay(const Wave &wave, uint32_t b, OverlayMarks<OCTETS> *in) {
        const cuda_journal journal = *wave.journal;

        positions = journal.positions + journal.first[b];
        values = (const T *)(journal.values + journal.value[b]);
        count = journal.count[b];
        begin = next = 0;
        marks = in;
    }

    // For who leaves out tiles: the next one begins here.
    __device__ void find(uint32_t tile) {
        uint32_t high = count;

        while (next < high) {
            const uint32_t middle = (next + high) / 2;

            if (positions[middle] < tile)
                next = middle + 1;
            else
                high = middle;
        }
    }

    // The tile from element `tile` on. All threads come here, and nobody needs the marks of another tile any more.
    __device__ void mark(uint32_t tile) {
        begin = next;
        for (uint32_t i = threadIdx.x; i < OCTETS / 4; i += THREADS)
            marks->bits[i] = 0;
        if (threadIdx.x == 0)
            marks->end = begin;
        __syncthreads();
        for (uint32_t i = begin + threadIdx.x; i < count; i += THREADS) {
            const uint32_t place = positions[i] - tile, octet = place / OCTET;

            if (place >= OCTETS * OCTET)
                break;
            atomicOr(&marks->bits[octet / 4], 1u << (octet % 4 * 8 + place % OCTET));
            if (i == begin || (positions[i - 1] - tile) / OCTET != octet)
                marks->first[octet] = (uint16_t)(i - begin);
            if (i + 1 == count || positions[i + 1] - tile >= OCTETS * OCTET)
                marks->end = i + 1;
        }
        __syncthreads();
        next = marks->end;
    }

    __device__ __forceinline__ uint32_t bits_of(uint32_t octet) const {
        return ((const uint8_t *)marks->bits)[octet];
    }

    // Over an octet of the tile.
    __device__ __forceinline__ void put(uint32_t octet, Octet<W> *there) const {
        const uint32_t bits = bits_of(octet);

        if (!bits)
            return;
        const T *value = values + begin + marks->first[octet];

#pragma unroll
        for (uint32_t i = 0; i < OCTET; i++) {
            if (bits >> i & 1)
                there->set(i, *value++);
        }
    }

    // An element of the tile, which is now what is given.
    __device__ __forceinline__ T at(uint32_t place, T there) const {
        const uint32_t octet = place / OCTET, bits = bits_of(octet);

        if (!(bits >> place % OCTET & 1))
            return there;
        return values[begin + marks->first[octet] + (uint32_t)__popc(bits & ((1u << place % OCTET) - 1))];
    }
};
