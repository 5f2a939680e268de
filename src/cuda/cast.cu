// SPDX-License-Identifier: Apache-2.0
// Twin: cast_portable() in gpu/cast_portable.c.
//
// One thread block per block of the grid, tile after tile. A thread has two octets of a tile, the second half
// a tile behind the first; so loads are whole lines, and entries ascend if all first octets come before all
// second ones. How many changes are in front of a thread's is one sum for both, in two halves of a word.
#include "cuda/cast.h"

#include "cuda/device.cuh"
#include "cuda/elements.cuh"
#include "cuda/round.h"
#include "cuda/status.cuh"

#define THREADS 256u
#define WARPS (THREADS / WARP)
#define OCTETS 2u // of a thread in a tile
#define TILE (THREADS * OCTETS * OCTET)
#define PAGES_OF_BLOCK (DECODE_BLOCK_MAX / JOURNAL_PAGE)

static_assert(TILE + 2 * JOURNAL_PAGE <= CAST_POOL_LEAST, "an empty pool has room for a tile");

struct CastShared {
    uint32_t warps[2][WARPS]; // changes of each warp, of first and second octets; of two tiles by turns
    uint32_t pages[PAGES_OF_BLOCK];
    uint32_t full; // the pool is
};

// ---- eight elements ----

// As load_octet(), by loads that may see what this kernel has written; each element is read before.
template <unsigned W>
__device__ static __forceinline__ Octet<W> load_weights(const uint8_t *data, bool aligned, uint32_t octet,
                                                        uint32_t elements) {
    Octet<W> loaded;

    if (!aligned || OCTET * octet + OCTET > elements)
        return load_some<W>(data, octet, elements);
#pragma unroll
    for (unsigned i = 0; i < Octet<W>::WORDS / 4; i++)
        *(uint4 *)&loaded.word[4 * i] = __ldcs((const uint4 *)data + octet * (Octet<W>::WORDS / 4) + i);
    return loaded;
}

template <unsigned W> struct CastOctet {
    typedef typename element<W>::type T;
    Octet<W> old, next;
    uint32_t changed; // one bit for each element

    __device__ __forceinline__ void convert(const Octet<4> &master, bool bf16) {
        next.clear();
        changed = 0;
#pragma unroll
        for (unsigned i = 0; i < OCTET; i++) {
            const uint32_t bits = master.at(i);
            const T value = W == 4 ? (T)bits : bf16 ? (T)round_to_bf16(bits) : (T)round_to_f16(bits);

            next.put(i, value);
            changed |= (uint32_t)(value != old.at(i)) << i;
        }
    }

    __device__ __forceinline__ void store(uint8_t *data, bool aligned, uint32_t octet, uint32_t elements) const {
        if (aligned && OCTET * octet + OCTET <= elements) {
            uint4 *to = (uint4 *)data + octet * (Octet<W>::WORDS / 4);

#pragma unroll
            for (unsigned i = 0; i < Octet<W>::WORDS / 4; i++)
                to[i] = *(const uint4 *)&next.word[4 * i];
            return;
        }
#pragma unroll
        for (unsigned i = 0; i < OCTET; i++) {
            if (changed >> i & 1)
                ((T *)data)[OCTET * octet + i] = next.at(i);
        }
    }
};

// What a block's thread block knows all along.
template <unsigned W> struct Casting {
    const cuda_cast &cast;
    uint8_t *weights;
    const uint8_t *master;
    uint32_t elements;
    bool bf16, weights_aligned, master_aligned;
    CastShared *shared;

    // Behind the end both are zero, and so equal.
    __device__ __forceinline__ void load(uint32_t octet, CastOctet<W> *to) const {
        const Octet<4> from = load_octet<4>(master, master_aligned, octet, elements);

        to->old = load_weights<W>(weights, weights_aligned, octet, elements);
        to->convert(from, bf16);
    }

    // Pages for this many entries of the block, all or none; by one thread. Returns whether there were.
    __device__ bool take_pages(uint32_t *taken, uint32_t entries) const {
        const uint32_t pages = (entries + JOURNAL_PAGE - 1) / JOURNAL_PAGE;
        const uint32_t from = *taken * JOURNAL_PAGE, to = min(pages * JOURNAL_PAGE, elements);

        if (pages <= *taken)
            return true;
        const unsigned long long at = atomicAdd(cast.used, (unsigned long long)(to - from));

        if (at + (to - from) > cast.limit)
            return false;
        for (uint32_t page = *taken; page < pages; page++)
            shared->pages[page] = (uint32_t)at + (page - *taken) * JOURNAL_PAGE;
        *taken = pages;
        return true;
    }

    __device__ __forceinline__ void list(const CastOctet<W> &octet, uint32_t first, uint32_t entry) const {
        typedef typename element<W>::type T;

#pragma unroll
        for (unsigned i = 0; i < OCTET; i++) {
            if (octet.changed >> i & 1) {
                const uint32_t at = shared->pages[entry / JOURNAL_PAGE] + entry % JOURNAL_PAGE;

                cast.positions[at] = first + i;
                *(T *)(cast.values + (size_t)at * cast.stride) = octet.old.at(i);
                entry++;
            }
        }
    }
};

// ---- a block ----

// How many changes are in front of this thread's first and second octet, and in the tile, as halves of a word.
// Sums are of one tile while others still read those of the tile before, hence `turn`.
__device__ static __forceinline__ uint32_t sum_changes(CastShared *shared, uint32_t turn, uint32_t mine,
                                                       uint32_t *ret_total) {
    uint32_t upto = sum_up(mine), before = upto - mine, total = 0;

    if (lane_id() == WARP - 1)
        shared->warps[turn][threadIdx.x / WARP] = upto;
    __syncthreads();
#pragma unroll
    for (uint32_t warp = 0; warp < WARPS; warp++) {
        if (warp < threadIdx.x / WARP)
            before += shared->warps[turn][warp];
        total += shared->warps[turn][warp];
    }
    *ret_total = total;
    return before;
}

// Casts the tiles from `tile` on; returns where it stopped.
template <unsigned W>
__device__ static uint32_t cast_tiles(const Casting<W> &on, uint32_t tile, uint32_t *ret_entries) {
    uint32_t entries = 0, taken = 0, turn = 0; // pages are the first thread's matter

    for (; tile < on.elements; tile += TILE, turn ^= 1) {
        const uint32_t octet = tile / OCTET + threadIdx.x;
        CastOctet<W> one, two;
        uint32_t total;

        on.load(octet, &one);
        on.load(octet + THREADS, &two);
        const uint32_t before =
            sum_changes(on.shared, turn, (uint32_t)__popc(one.changed) | (uint32_t)__popc(two.changed) << 16, &total);
        const uint32_t firsts = total & 0xffff, changes = firsts + (total >> 16);

        if (!changes) // for all threads alike
            continue;
        if (threadIdx.x == 0 && !on.take_pages(&taken, entries + changes))
            on.shared->full = 1;
        __syncthreads();
        if (on.shared->full)
            break;
        on.list(one, OCTET * octet, entries + (before & 0xffff));
        on.list(two, OCTET * (octet + THREADS), entries + firsts + (before >> 16));
        if (one.changed)
            one.store(on.weights, on.weights_aligned, octet, on.elements);
        if (two.changed)
            two.store(on.weights, on.weights_aligned, octet + THREADS, on.elements);
        entries += changes;
    }
    *ret_entries = entries;
    return min(tile, on.elements);
}

template <unsigned W> __global__ static void __launch_bounds__(THREADS, W == 2 ? 5 : 4) cast_blocks(cuda_cast cast) {
    __shared__ CastShared shared;
    const uint32_t b = blockIdx.x;
    const cuda_block block = cast.plan.blocks[b];
    const code_kind kind = cast.plan.segments[block.segment].kind;
    uint8_t *weights = (uint8_t *)(uintptr_t)block.old;
    const uint8_t *master = (const uint8_t *)cast.masters[b];
    const Casting<W> on = {cast,   weights, master, block.elements, kind.exponent_bits == 8, octets_aligned<W>(weights),
                           octets_aligned<4>(master), &shared};
    const uint32_t from = cast.done[b];
    uint32_t entries;

    if (kind.width != W || !master || from >= block.elements)
        return;
    if (threadIdx.x == 0)
        shared.full = 0;
    __syncthreads();
    const uint32_t done = cast_tiles<W>(on, from, &entries);

    for (uint32_t i = threadIdx.x; i * JOURNAL_PAGE < entries; i += THREADS)
        cast.pages[cast.first[b] + i] = shared.pages[i];
    if (threadIdx.x == 0) {
        cast.done[b] = done;
        cast.counts[b] = entries;
        if (done < block.elements)
            atomicAdd(cast.stopped, 1u);
    }
}

extern "C" enum ulp_status cuda_cast_run(const cuda_cast *cast, void *stream) {
    launch(cast_blocks<2>, cast->plan.block_count, THREADS, 0, (cudaStream_t)stream, *cast);
    if (cast->stride == 4)
        launch(cast_blocks<4>, cast->plan.block_count, THREADS, 0, (cudaStream_t)stream, *cast);
    return cuda_status(cudaGetLastError());
}
