// SPDX-License-Identifier: Apache-2.0
// A tile of a block's elements in shared memory. It is cut into chunks of 32 elements, one for each
// thread, and the 16-byte vectors of a chunk are rotated among themselves, each chunk by another
// number, so that threads that read the same vector of their chunks meet in different banks.
#pragma once

#include "cuda/device.cuh"
#include "cuda/element.cuh"

#define TILE_THREADS 256u
#define TILE_CHUNK 32u
#define TILE_CHUNKS TILE_THREADS
#define TILE_ELEMENTS (TILE_CHUNKS * TILE_CHUNK)

template <unsigned WIDTH> struct tile {
    static constexpr unsigned vectors = TILE_CHUNK * WIDTH / 16; // of a chunk
    uint4 data[TILE_CHUNKS * vectors];

    __device__ static __forceinline__ unsigned place(unsigned chunk, unsigned vector) {
        const unsigned turn = vectors >= 8 ? chunk : chunk * vectors / 8;

        return chunk * vectors + ((vector + turn) & (vectors - 1));
    }

    __device__ __forceinline__ uint4 vector(unsigned chunk, unsigned vector) const {
        return data[place(chunk, vector)];
    }

    // Where a byte is.
    __device__ __forceinline__ const uint8_t *at(unsigned byte) const {
        const unsigned vector = byte / 16;

        return (const uint8_t *)&data[place(vector / vectors, vector % vectors)] + byte % 16;
    }

    __device__ __forceinline__ typename element<WIDTH>::type get(unsigned i) const {
        return *(const typename element<WIDTH>::type *)at(i * WIDTH);
    }

    __device__ __forceinline__ void set(unsigned i, typename element<WIDTH>::type value) {
        *(typename element<WIDTH>::type *)(uintptr_t)at(i * WIDTH) = value;
    }

    // A word of the digest.
    __device__ __forceinline__ uint64_t word(unsigned i) const {
        return *(const uint64_t *)at(i * 8);
    }
};

// ---- filling it while something else is done ----

#ifdef ULP_EMULATED
static inline void copy_vector(uint4 *to, const void *from) {
    *to = *(const uint4 *)from;
}
static inline void copies_begun() {
}
static inline void copies_done() {
}
#else
__device__ static __forceinline__ void copy_vector(uint4 *to, const void *from) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ static __forceinline__ void copies_begun() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ static __forceinline__ void copies_done() {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}
#endif

// Starts to fill the tile with the first `elements` at `from`; behind them are zeros up to a whole
// vector, as the digest wants its last word. Complete after copies_done() and a barrier.
template <unsigned WIDTH>
__device__ static __forceinline__ void tile_fill(tile<WIDTH> *to, const uint8_t *from,
                                                 unsigned elements) {
    typedef typename element<WIDTH>::type type;
    constexpr unsigned vectors = tile<WIDTH>::vectors;
    const bool aligned = (uintptr_t)from % 16 == 0;
    const unsigned whole = aligned ? elements * WIDTH / 16 : 0;
    const unsigned end = (elements * WIDTH + 15) / 16 * 16 / WIDTH;

    if (whole == TILE_CHUNKS * vectors) {
        // the chunks of the next TILE_THREADS vectors are rotated by the same numbers
        uint4 *place = &to->data[tile<WIDTH>::place(threadIdx.x / vectors, threadIdx.x % vectors)];

        from += 16 * threadIdx.x;
#pragma unroll
        for (unsigned k = 0; k < vectors; k++)
            copy_vector(place + k * TILE_THREADS, from + 16 * k * TILE_THREADS);
    } else {
        for (unsigned v = threadIdx.x; v < whole; v += TILE_THREADS)
            copy_vector(&to->data[tile<WIDTH>::place(v / vectors, v % vectors)], from + 16 * v);
        for (unsigned i = whole * 16 / WIDTH + threadIdx.x; i < end; i += TILE_THREADS)
            to->set(i, i < elements ? ((const type *)from)[i] : 0);
    }
    copies_begun();
}
