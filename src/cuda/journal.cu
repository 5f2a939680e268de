// SPDX-License-Identifier: Apache-2.0
// Twins: gpu/cast_portable.c, patch/moves.c. A block of threads for each block of elements.
#include "cuda/journal.h"

#include "cuda/device.cuh"
#include "cuda/element.cuh"
#include "cuda/status.cuh"

#define THREADS 256u

// The entries of a block, wherever they are.
template <unsigned W> struct Entries {
    typedef typename element<W>::type T;
    const uint32_t *positions, *pages;
    const uint8_t *values;
    uint32_t stride, count;

    __device__ __forceinline__ Entries(const cuda_journal &journal, uint32_t b) {
        const uint64_t first = journal.first[b];

        count = journal.count[b];
        pages = journal.pages ? journal.pages + first : nullptr;
        positions = pages ? journal.positions : journal.positions + first;
        values = pages ? journal.values : journal.values + journal.value[b];
        stride = pages ? journal.stride : W;
    }

    __device__ __forceinline__ uint32_t slot(uint32_t i) const {
        return pages ? pages[i / JOURNAL_PAGE] + i % JOURNAL_PAGE : i;
    }

    __device__ __forceinline__ T value(uint32_t slot) const { return *(const T *)(values + (size_t)slot * stride); }
};

// Calls what is given for each entry of this thread that is in the block: position, value, number.
template <unsigned W, typename Do>
__device__ static __forceinline__ void for_entries(const cuda_journal &journal, uint32_t b, uint32_t elements,
                                                   Do each) {
    const Entries<W> entries(journal, b);

    for (uint32_t i = threadIdx.x; i < entries.count; i += THREADS) {
        const uint32_t slot = entries.slot(i), position = entries.positions[slot];

        if (position < elements)
            each(position, entries.value(slot), i);
    }
}

__device__ static __forceinline__ uint32_t width_of(const cuda_plan &plan, const cuda_block &block) {
    return plan.segments[block.segment].kind.width;
}

template <unsigned W> __device__ static __forceinline__ typename element<W>::type *weights_of(const cuda_block &block) {
    return (typename element<W>::type *)(uintptr_t)block.old;
}

// ---- merging ----

// A bit for each element that the older journal names and for each that stays, and how many of the latter
// there are in front of each run of 256: so an entry finds its place.
#define RUN_WORDS 8u
#define RUN (32u * RUN_WORDS)
#define RUNS (DECODE_BLOCK_MAX / RUN)
#define RUNS_PER_THREAD (RUNS / THREADS)

struct Union {
    uint32_t older[DECODE_BLOCK_MAX / 32], kept[DECODE_BLOCK_MAX / 32];
    uint32_t before[RUNS];
    uint32_t warps[THREADS / WARP];
};

__device__ static __forceinline__ bool has_bit(const uint32_t *bits, uint32_t i) {
    return bits[i / 32] >> i % 32 & 1;
}

__device__ static __forceinline__ void set_bit(uint32_t *bits, uint32_t i) {
    atomicOr(&bits[i / 32], 1u << i % 32);
}

// Elements that the older journal names and that are again what it says need no entry.
template <unsigned W>
__device__ static void mark_kept(Union *marks, const cuda_block &block, const cuda_journal &older,
                                 const cuda_journal &newer, uint32_t b) {
    const typename element<W>::type *weights = weights_of<W>(block);

    for (uint32_t i = threadIdx.x; i < DECODE_BLOCK_MAX / 32; i += THREADS)
        marks->older[i] = marks->kept[i] = 0;
    __syncthreads();
    for_entries<W>(older, b, block.elements, [&](uint32_t position, typename element<W>::type value, uint32_t) {
        set_bit(marks->older, position);
        if (value != weights[position])
            set_bit(marks->kept, position);
    });
    __syncthreads();
    for_entries<W>(newer, b, block.elements, [&](uint32_t position, typename element<W>::type value, uint32_t) {
        if (!has_bit(marks->older, position) && value != weights[position])
            set_bit(marks->kept, position);
    });
    __syncthreads();
}

// Each thread adds up a few runs that lie together. Returns how many there are in all.
__device__ static uint32_t count_kept(Union *marks) {
    const uint32_t first = threadIdx.x * RUNS_PER_THREAD, warp = threadIdx.x / WARP;
    uint32_t here[RUNS_PER_THREAD], sum = 0, total = 0;

    for (uint32_t r = 0; r < RUNS_PER_THREAD; r++) {
        here[r] = sum;
        for (uint32_t i = 0; i < RUN_WORDS; i++)
            sum += (uint32_t)__popc(marks->kept[(first + r) * RUN_WORDS + i]);
    }
    const uint32_t upto = sum_up(sum);
    uint32_t before = upto - sum;

    if (lane_id() == WARP - 1)
        marks->warps[warp] = upto;
    __syncthreads();
    for (uint32_t i = 0; i < THREADS / WARP; i++) {
        before += i < warp ? marks->warps[i] : 0;
        total += marks->warps[i];
    }
    for (uint32_t r = 0; r < RUNS_PER_THREAD; r++)
        marks->before[first + r] = before + here[r];
    __syncthreads();
    return total;
}

__device__ static uint32_t kept_before(const Union *marks, uint32_t position) {
    const uint32_t run = position / RUN, word = position / 32;
    uint32_t count = marks->before[run];

    for (uint32_t i = run * RUN_WORDS; i < word; i++)
        count += (uint32_t)__popc(marks->kept[i]);
    return count + (uint32_t)__popc(marks->kept[word] & ((1u << position % 32) - 1));
}

__global__ static void __launch_bounds__(THREADS)
    count_merged(cuda_plan plan, cuda_journal older, cuda_journal newer, uint32_t *counts) {
    DYNAMIC_SHARED(Union, marks);
    const uint32_t b = blockIdx.x;
    const cuda_block block = plan.blocks[b];
    uint32_t count = 0;

    if (older.count[b] || newer.count[b]) {
        if (width_of(plan, block) == 2)
            mark_kept<2>(marks, block, older, newer, b);
        else
            mark_kept<4>(marks, block, older, newer, b);
        count = count_kept(marks);
    }
    if (threadIdx.x == 0)
        counts[b] = count;
}

// What is in a journal and stays; of a newer one without what the older one names.
template <unsigned W>
__device__ static void put_kept(const Union *marks, const cuda_block &block, const cuda_journal &from, bool newer,
                                const cuda_journal_room &to, uint32_t b) {
    typedef typename element<W>::type T;
    uint32_t *positions = to.positions + to.first[b];
    T *values = (T *)(to.values + to.value[b]);

    for_entries<W>(from, b, block.elements, [&](uint32_t position, T value, uint32_t) {
        if (!has_bit(marks->kept, position) || (newer && has_bit(marks->older, position)))
            return;
        const uint32_t place = kept_before(marks, position);

        positions[place] = position;
        values[place] = value;
    });
}

template <unsigned W>
__device__ static void merge_block(Union *marks, const cuda_block &block, const cuda_journal &older,
                                   const cuda_journal &newer, const cuda_journal_room &to, uint32_t b) {
    mark_kept<W>(marks, block, older, newer, b);
    count_kept(marks);
    put_kept<W>(marks, block, older, false, to, b);
    put_kept<W>(marks, block, newer, true, to, b);
}

__global__ static void __launch_bounds__(THREADS)
    merge_journals(cuda_plan plan, cuda_journal older, cuda_journal newer, cuda_journal_room to) {
    DYNAMIC_SHARED(Union, marks);
    const uint32_t b = blockIdx.x;
    const cuda_block block = plan.blocks[b];

    if (!older.count[b] && !newer.count[b])
        return;
    if (width_of(plan, block) == 2)
        merge_block<2>(marks, block, older, newer, to, b);
    else
        merge_block<4>(marks, block, older, newer, to, b);
}

extern "C" enum ulp_status cuda_journal_count(const cuda_plan *plan, const cuda_journal *older,
                                              const cuda_journal *newer, uint32_t *counts, void *stream) {
    launch(count_merged, plan->block_count, THREADS, sizeof(Union), (cudaStream_t)stream, *plan, *older, *newer,
           counts);
    return cuda_status(cudaGetLastError());
}

extern "C" enum ulp_status cuda_journal_merge(const cuda_plan *plan, const cuda_journal *older,
                                              const cuda_journal *newer, const cuda_journal_room *to, void *stream) {
    launch(merge_journals, plan->block_count, THREADS, sizeof(Union), (cudaStream_t)stream, *plan, *older, *newer, *to);
    return cuda_status(cudaGetLastError());
}

// ---- each by itself ----

// What is done with the entries of one journal: a function for each width.
template <typename Job>
__global__ static void __launch_bounds__(THREADS) visit_blocks(cuda_plan plan, cuda_journal journal, Job job) {
    const uint32_t b = job.first_block() + blockIdx.x;
    const cuda_block block = plan.blocks[b];

    if (!journal.count[b])
        return;
    if (width_of(plan, block) == 2)
        job.template visit<2>(block, journal, b);
    else
        job.template visit<4>(block, journal, b);
}

struct CopyJob {
    cuda_journal_room to;

    __device__ uint32_t first_block() const { return 0; }

    template <unsigned W>
    __device__ void visit(const cuda_block &block, const cuda_journal &journal, uint32_t b) const {
        typedef typename element<W>::type T;
        uint32_t *positions = to.positions + to.first[b];
        T *values = (T *)(to.values + to.value[b]);

        for_entries<W>(journal, b, block.elements, [&](uint32_t position, T value, uint32_t i) {
            positions[i] = position;
            values[i] = value;
        });
    }
};

struct RestoreJob {
    __device__ uint32_t first_block() const { return 0; }

    template <unsigned W>
    __device__ void visit(const cuda_block &block, const cuda_journal &journal, uint32_t b) const {
        typename element<W>::type *weights = weights_of<W>(block);

        for_entries<W>(journal, b, block.elements, [&](uint32_t position, typename element<W>::type value, uint32_t) {
            weights[position] = value;
        });
    }
};

struct MovesJob {
    decode_move *moves;

    __device__ uint32_t first_block() const { return 0; }

    template <unsigned W>
    __device__ void visit(const cuda_block &block, const cuda_journal &journal, uint32_t b) const {
        typedef typename element<W>::type T;
        const T *weights = weights_of<W>(block);
        decode_move *to = moves + journal.first[b];

        for_entries<W>(journal, b, block.elements, [&](uint32_t position, T value, uint32_t i) {
            const int64_t moved = (typename element<W>::step)(T)(weights[position] - value);
            const int64_t clipped = moved < -127 ? -127 : moved > 127 ? 127 : moved;

            to[i] = position << 8 | (uint8_t)clipped;
        });
    }
};

struct ListJob {
    uint32_t from, limit;
    cuda_change *changes;
    uint32_t *found;

    __device__ uint32_t first_block() const { return from; }

    template <unsigned W>
    __device__ void visit(const cuda_block &block, const cuda_journal &journal, uint32_t b) const {
        typedef typename element<W>::type T;
        const T *weights = weights_of<W>(block);

        for_entries<W>(journal, b, block.elements, [&](uint32_t position, T value, uint32_t) {
            if (weights[position] == value)
                return;
            const uint32_t at = atomicAdd(found, 1u);

            if (at < limit)
                changes[at] = {(uint64_t)weights[position], b - from, position};
        });
    }
};

template <typename Job>
static enum ulp_status visit(const cuda_plan *plan, const cuda_journal *journal, uint32_t blocks, Job job,
                             void *stream) {
    launch(visit_blocks<Job>, blocks, THREADS, 0, (cudaStream_t)stream, *plan, *journal, job);
    return cuda_status(cudaGetLastError());
}

extern "C" enum ulp_status cuda_journal_copy(const cuda_plan *plan, const cuda_journal *newer,
                                             const cuda_journal_room *to, void *stream) {
    return visit(plan, newer, plan->block_count, CopyJob{*to}, stream);
}

extern "C" enum ulp_status cuda_journal_restore(const cuda_plan *plan, const cuda_journal *journal, void *stream) {
    return visit(plan, journal, plan->block_count, RestoreJob{}, stream);
}

extern "C" enum ulp_status cuda_journal_moves(const cuda_plan *plan, const cuda_journal *journal, decode_move *moves,
                                              void *stream) {
    return visit(plan, journal, plan->block_count, MovesJob{moves}, stream);
}

extern "C" enum ulp_status cuda_journal_list(const cuda_plan *plan, const cuda_journal *journal, uint32_t first_block,
                                             uint32_t count, uint32_t limit, cuda_change *changes, uint32_t *found,
                                             void *stream) {
    return visit(plan, journal, count, ListJob{first_block, limit, changes, found}, stream);
}
