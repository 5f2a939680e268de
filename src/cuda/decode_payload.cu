// SPDX-License-Identifier: Apache-2.0
// Twin: code/payload_read.c. Eight lanes decode a block, one for each state of the entropy coder; a
// warp four blocks, in step. Each lane learns from its state how many bits it takes; the sums over
// the lanes in front say where they are. Gaps add up to ranks in the same way. A number waits for the
// one before it, so what counts is how long a round takes from its beginning to its end.
//
// Nothing here is trusted but the counts, which the host has checked: they bound the loops and what
// is written. In front of the payload bits are zero, as on the CPU; whoever took such bits does not
// end at its first bit, and is found in the end.
#include "cuda/decode.h"

#include "cuda/decode_table.cuh"
#include "cuda/device.cuh"
#include "cuda/element.cuh"
#include "cuda/status.cuh"
#include "cuda/tile.cuh"

#define THREADS 128u
#define LANES 8u // states of a payload
#define STATE_BITS 10
#define RANK_END (DECODE_BLOCK_MAX + 1) // where ranks stay that left the block

// Payloads are read from their end to their beginning. The next lines of each are on their way to
// shared memory while those behind are decoded: a ring for each group.
#define LINE_WORDS 32u
#define LINE_BITS 1024
#define LINES 4
#define RING_WORDS (LINES * LINE_WORDS)

// One lane's view of the payload that its group reads.
struct reader {
    const uint32_t *words; // the line of memory in which it begins ...
    uint32_t skip;         // ... so many bits into it
    int32_t at;            // bits that are left; the same in all lanes
    uint32_t state;
    uint32_t *ring;
    int32_t asked, there; // the lines from these on are on their way to the ring, and in it
    uint32_t below[LANES]; // 1 for each lane up to and including this one, else 0
};

__device__ static __forceinline__ bool group_any(bool here) {
    const unsigned first = lane_id() & ~(LANES - 1);

    return __ballot_sync(ALL_LANES, here) >> first & ((1u << LANES) - 1);
}

// Sums of the group's lanes up to and including this one, and of all. Everybody asks everybody: those
// shuffles do not wait for each other.
struct sums {
    uint32_t until, all;
};

__device__ static __forceinline__ struct sums group_sums(const struct reader *reader, uint32_t value) {
    uint32_t of[LANES];

#pragma unroll
    for (uint32_t k = 0; k < LANES; k++)
        of[k] = __shfl_sync(ALL_LANES, value, (int)k, (int)LANES);
    return {(of[0] + of[1] * reader->below[1] + of[2] * reader->below[2] + of[3] * reader->below[3]) +
                (of[4] * reader->below[4] + of[5] * reader->below[5] + of[6] * reader->below[6] +
                 of[7] * reader->below[7]),
            ((of[0] + of[1]) + (of[2] + of[3])) + ((of[4] + of[5]) + (of[6] + of[7]))};
}

// ---- bits ----

__device__ static __forceinline__ void ask_for_line(struct reader *reader) {
    const uint32_t vector = threadIdx.x % LANES * 4;
    const uint32_t line = (uint32_t)--reader->asked;

    copy_vector((uint4 *)&reader->ring[line % LINES * LINE_WORDS + vector],
                &reader->words[line * LINE_WORDS + vector]);
}

// Asks for the next line when two are left to read. All lanes of the warp come here.
__device__ static __forceinline__ void look_ahead(struct reader *reader) {
    const int32_t line = (reader->at + (int32_t)reader->skip) >> 10;
    const bool needed = reader->asked > 0 && line <= reader->asked + 1;

    if (!__any_sync(ALL_LANES, needed))
        return;
    copies_done();
    __syncwarp();
    reader->there = reader->asked;
    if (needed)
        ask_for_line(reader);
    copies_begun();
}

// Up to 32 bits from `from` on; zeros in front of the payload.
__device__ static __forceinline__ uint32_t fetch(const struct reader *reader, int32_t from,
                                                 uint32_t bits) {
    const uint32_t at = (uint32_t)max(from, 0) + reader->skip, word = at / 32;
    uint32_t low, high;

    if (word >= (uint32_t)reader->there * LINE_WORDS) {
        low = reader->ring[word % RING_WORDS];
        high = reader->ring[(word + 1) % RING_WORDS];
    } else { // numbers that are longer than anybody expects
        low = __ldg(&reader->words[word]);
        high = __ldg(&reader->words[word + 1]);
    }
    return from >= 0 && bits ? __funnelshift_r(low, high, at % 32) & UINT32_MAX >> (32 - bits) % 32 : 0;
}

// ---- numbers ----

__device__ static __forceinline__ uint32_t entry_length(uint32_t entry) {
    return entry_bits(entry) + entry_extra(entry);
}

// A number of at most 32 bits with those of its state: gaps, and values of one and two bytes.
__device__ static __forceinline__ uint32_t take_short(const struct reader *reader, int32_t from,
                                                      uint32_t entry, uint32_t *ret_state) {
    const uint32_t extra = entry_extra(entry);
    const uint32_t word = fetch(reader, from, entry_length(entry));

    *ret_state = entry_next(entry) + (word >> extra);
    return (entry_lead(entry) << extra) + (word & ((1u << extra) - 1));
}

// One of up to 64 bits, and those of its state above them.
__device__ static __forceinline__ uint64_t take_long(const struct reader *reader, int32_t from,
                                                     uint32_t entry, uint32_t *ret_state) {
    const uint32_t extra = entry_extra(entry), low = min(extra, 32u);
    const uint64_t rest = fetch(reader, from, low) | (uint64_t)fetch(reader, from + 32, extra - low)
                                                         << 32;

    *ret_state = entry_next(entry) + fetch(reader, from + (int32_t)extra, entry_bits(entry));
    return ((uint64_t)entry_lead(entry) << extra) + rest;
}

// The lanes that take part take their bits, one behind the other: `lengths` are the sums of how many.
// What the new state says is loaded at once, before anybody waits for what the number is good for.
template <bool SHORT>
__device__ static __forceinline__ uint64_t take(struct reader *reader, const uint32_t *table,
                                                struct sums lengths, uint32_t *entry, bool active,
                                                bool again) {
    const int32_t from = reader->at - (int32_t)lengths.until;
    uint32_t state;
    const uint64_t number = SHORT ? take_short(reader, from, *entry, &state)
                                  : take_long(reader, from, *entry, &state);

    reader->at -= (int32_t)lengths.all;
    if (active)
        reader->state = state;
    *entry = again ? __ldg(&table[reader->state]) : 0;
    look_ahead(reader);
    return number;
}

__device__ static __forceinline__ uint32_t first_entry(const struct reader *reader,
                                                       const uint32_t *table, bool active) {
    return active ? __ldg(&table[reader->state]) : 0;
}

// ---- the numbers of a class ----

// Where the changes of a class go.
struct target {
    uint32_t *ranks;
    uint8_t *steps;
    uint32_t changes;
};

// Gaps and lengths are added up together: the gaps of a round with the lengths of the next.
#define GAP_BITS 22
#define GAP_MASK ((1u << GAP_BITS) - 1)

static_assert(LANES * (DECODE_BLOCK_MAX + 1) <= GAP_MASK, "gaps of a round");
static_assert(LANES * (15 + 63) < 1u << (32 - GAP_BITS), "lengths of a round");

// Every event is a change. Returns the rank behind the last.
__device__ static uint32_t read_ranks(struct reader *reader, const uint32_t *table, uint32_t events,
                                      uint32_t rounds, struct target to) {
    const uint32_t lane = threadIdx.x % LANES;
    uint32_t rank = 0, pending = 0, entry = first_entry(reader, table, lane < events);

    for (uint32_t i = lane; i < rounds + lane; i += LANES) {
        const bool active = i < events;
        const struct sums sums = group_sums(reader, entry_length(entry) << GAP_BITS | pending);
        const uint32_t gap =
            (uint32_t)take<true>(reader, table, {sums.until >> GAP_BITS, sums.all >> GAP_BITS},
                                 &entry, active, i + LANES < events);

        if (pending) // of the round before
            to.ranks[i - LANES] = rank + (sums.until & GAP_MASK) - 1;
        rank = min(rank + (sums.all & GAP_MASK), RANK_END);
        pending = active ? min(gap, DECODE_BLOCK_MAX) + 1 : 0; // further is as wrong as that
    }
    const struct sums sums = group_sums(reader, pending);

    if (pending)
        to.ranks[(rounds + LANES - 1) / LANES * LANES - LANES + lane] = rank + sums.until - 1;
    return min(rank + sums.all, RANK_END);
}

// Of a class in which most elements change: the changes are those between the events. Returns the
// rank behind the last event, or RANK_END when there are more changes in front of it than announced.
__device__ static uint32_t read_flipped(struct reader *reader, const uint32_t *table,
                                        uint32_t events, uint32_t rounds, struct target to) {
    const uint32_t lane = threadIdx.x % LANES;
    uint32_t rank = 0, written = 0, entry = first_entry(reader, table, lane < events);

    for (uint32_t i = lane; i < rounds + lane; i += LANES) {
        const bool active = i < events;
        const struct sums lengths = group_sums(reader, entry_length(entry));
        const uint32_t number =
            (uint32_t)take<true>(reader, table, lengths, &entry, active, i + LANES < events);
        const uint32_t gap = active ? number : 0;
        const struct sums gaps = group_sums(reader, gap);
        const uint32_t first = gaps.until - gap;

        // in front of this lane's gap are `first` changes and one event for each lane before it
        for (uint32_t k = 0; active && k < gap && written + first + k < to.changes; k++)
            to.ranks[written + first + k] = rank + first + lane + k;
        written = min(written + gaps.all, RANK_END);
        rank = min(rank + gaps.all + min(events - min(events, i - lane), LANES), RANK_END);
    }
    for (uint32_t i = written + lane; i < to.changes; i += LANES)
        to.ranks[i] = rank + i - written;
    return written > to.changes ? RANK_END : rank;
}

// False if one is wider than the elements.
template <unsigned WIDTH>
__device__ static bool read_steps(struct reader *reader, const uint32_t *table, uint32_t rounds,
                                  struct target to) {
    typedef typename element<WIDTH>::type type;
    const uint64_t beyond = UINT64_MAX >> (64 - 8 * WIDTH);
    const uint32_t lane = threadIdx.x % LANES;
    uint32_t entry = first_entry(reader, table, lane < to.changes);
    bool fit = true;

    for (uint32_t i = lane; i < rounds + lane; i += LANES) {
        const bool active = i < to.changes;
        const struct sums lengths = group_sums(reader, entry_length(entry));
        const uint64_t value =
            take<WIDTH <= 2>(reader, table, lengths, &entry, active, i + LANES < to.changes);
        const uint64_t zigzag = value + 1;

        fit = fit && (value < beyond || !active);
        if (active)
            ((type *)to.steps)[i] = (type)(zigzag >> 1 ^ (0 - (zigzag & 1)));
    }
    return fit;
}

// ---- a block ----

// All lanes of the warp come here. Without bytes there is nothing to read.
__device__ static struct reader open_reader(const uint8_t *payload, uint64_t begin, uint32_t bytes,
                                            uint32_t *ring, bool *ret_marked) {
    const uint32_t lane = threadIdx.x % LANES, last = bytes ? payload[begin + bytes - 1] : 0;
    const uint32_t line = 4 * LINE_WORDS;
    struct reader reader = {};

    reader.words = (const uint32_t *)(payload + begin / line * line);
    reader.skip = (uint32_t)(begin % line) * 8;
    reader.ring = ring;
    for (uint32_t k = 0; k < LANES; k++)
        reader.below[k] = k <= lane;
    *ret_marked = last;
    if (last) {
        reader.at = (int32_t)(8 * bytes) - 8 + 31 - __clz(last);
        reader.asked = (int32_t)((8 * bytes - 1 + reader.skip) / LINE_BITS) + 1;
        for (int k = 0; k < LINES && reader.asked; k++)
            ask_for_line(&reader);
    }
    copies_begun();
    copies_done();
    __syncwarp();
    reader.there = reader.asked;
    if (last) {
        reader.state = fetch(&reader, reader.at - STATE_BITS * (int32_t)(lane + 1), STATE_BITS);
        reader.at -= STATE_BITS * (int32_t)LANES;
    }
    return reader;
}

// Groups of a warp go through classes and rounds together, as long as one of them has any.
template <unsigned WIDTH>
__device__ static uint32_t read_block(const struct cuda_decode *decode,
                                      const struct decode_block *block, bool live,
                                      uint32_t *ring) {
    const struct decode_segment *segment = &decode->segments[block->segment];
    const uint32_t classes = live ? segment->classes : 0, flipped = segment->flipped;
    const uint32_t all_classes = __reduce_max_sync(ALL_LANES, classes);
    uint32_t *ranks = decode->positions + block->first;
    uint8_t *steps = decode->values + block->values;
    bool marked, gaps_fit = true, values_fit = true;
    struct reader reader =
        open_reader(decode->payload, block->payload, live ? block->payload_bytes : 0, ring, &marked);

    for (uint32_t k = 0; k < all_classes; k++) {
        const bool has = marked && k < classes;
        const uint32_t *counts = decode->counts + block->counts;
        const uint32_t events = has ? counts[k] : 0, changes = has ? counts[classes + k] : 0;
        const bool turned = k >= flipped;
        const uint32_t rounds = __reduce_max_sync(ALL_LANES, events);
        const uint32_t *gap_table =
            decode->tables + (size_t)segment->gap_table[has ? k : 0] * DECODE_STATES;
        const uint32_t *value_table =
            decode->tables + (size_t)segment->value_table[has ? k : 0] * DECODE_STATES;
        const struct target to = {ranks, steps, changes};
        const struct target none = {ranks, steps, 0};

        if (__any_sync(ALL_LANES, !turned))
            gaps_fit = read_ranks(&reader, gap_table, turned ? 0 : events, rounds, to) <=
                           DECODE_BLOCK_MAX &&
                       gaps_fit;
        if (__any_sync(ALL_LANES, turned))
            gaps_fit = read_flipped(&reader, gap_table, turned ? events : 0, rounds,
                                    turned ? to : none) <= DECODE_BLOCK_MAX &&
                       gaps_fit;
        values_fit =
            read_steps<WIDTH>(&reader, value_table, __reduce_max_sync(ALL_LANES, changes), to) &&
            values_fit;
        ranks += changes;
        steps += (size_t)WIDTH * changes;
    }
    values_fit = !group_any(!values_fit);
    const bool ends = !group_any(reader.state != 0);

    if (!marked)
        return DECODE_NO_END;
    if (!gaps_fit)
        return DECODE_GAP;
    if (!ends)
        return DECODE_STATE;
    if (reader.at)
        return DECODE_LENGTH;
    return values_fit ? 0 : DECODE_VALUE;
}

struct rings {
    alignas(16) uint32_t words[THREADS / LANES][RING_WORDS];
};

template <unsigned WIDTH>
__global__ static void __launch_bounds__(THREADS)
    read_payloads(struct cuda_decode decode, struct decode_range range) {
    DYNAMIC_SHARED(struct rings, rings);
    const uint32_t index = (blockIdx.x * THREADS + threadIdx.x) / LANES;
    const bool there = index < range.coded;
    const uint32_t number = range.first + (there ? index : 0);
    const struct decode_block block = decode.blocks[number];
    const bool live = there && block.payload_bytes;
    const uint32_t fault =
        read_block<WIDTH>(&decode, &block, live, rings->words[threadIdx.x / LANES]);

    if (live && fault && threadIdx.x % LANES == 0) {
        decode.faults[number] = fault;
        atomicAdd(decode.failed, 1u);
    }
}

extern "C" enum ulp_status cuda_decode_payload(const struct cuda_decode *decode, void *stream) {
    static void (*const kernels[])(struct cuda_decode, struct decode_range) = {
        read_payloads<1>, read_payloads<2>, read_payloads<4>, read_payloads<8>};

    for (uint32_t w = 0; w < DECODE_WIDTHS; w++) {
        const uint32_t blocks_at_once = THREADS / LANES;
        const struct decode_range range = decode->ranges[w];

        launch(kernels[w], (range.coded + blocks_at_once - 1) / blocks_at_once, THREADS,
               sizeof(struct rings), (cudaStream_t)stream, *decode, range);
    }
    return cuda_status(cudaGetLastError());
}
