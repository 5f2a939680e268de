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
// shared memory while those behind are decoded: a ring for each group. Positions are bits from the line
// of memory on in which the payload begins.
#define LINE_WORDS 32u
#define LINE_BITS 1024
#define LINES 4
#define RING_WORDS (LINES * LINE_WORDS)

struct ring {
    alignas(16) uint32_t words[RING_WORDS];
    uint32_t again[4]; // the first ones, so that there is a word behind the last
};

// Where a group's ring is. The compiler would work it out anew for each word.
#ifdef ULP_EMULATED
typedef const uint32_t *shared_words;
static inline shared_words shared_address(const uint32_t *words) {
    return words;
}
static inline uint2 two_words(shared_words words, uint32_t first) {
    return {words[first], words[first + 1]};
}
static inline const uint32_t *kept(const uint32_t *pointer) {
    return pointer;
}
#else
typedef uint32_t shared_words;
__device__ static __forceinline__ shared_words shared_address(const uint32_t *words) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(words);

    asm volatile("" : "+r"(address));
    return address;
}
__device__ static __forceinline__ uint2 two_words(shared_words words, uint32_t first) {
    uint2 two;

    asm volatile("ld.shared.b32 %0, [%2]; ld.shared.b32 %1, [%2 + 4];"
                 : "=r"(two.x), "=r"(two.y)
                 : "r"(words + 4 * first));
    return two;
}
__device__ static __forceinline__ const uint32_t *kept(const uint32_t *pointer) {
    asm volatile("" : "+l"(pointer));
    return pointer;
}
#endif

// One lane's view of the payload that its group reads.
struct reader {
    const uint32_t *words; // the line in which it begins ...
    int32_t begin;         // ... and the bit
    int32_t at;            // where what is left ends; the same in all lanes
    uint32_t state;
    struct ring *ring;
    shared_words near; // what is in it
    int32_t asked; // the lines from this one on are in the ring, or on their way
    int32_t floor; // the bits from here on are in the ring
    int32_t ask;   // below this the next line is asked for
};

__device__ static __forceinline__ bool group_any(bool here) {
    const unsigned first = lane_id() & ~(LANES - 1);

    return __ballot_sync(ALL_LANES, here) >> first & ((1u << LANES) - 1);
}

// Sums of the group's lanes up to and including this one, and of all.
struct sums {
    uint32_t until, all;
};

__device__ static __forceinline__ struct sums group_sums(uint32_t value) {
    const uint32_t until = sum_up(value, LANES);

    return {until, __shfl_sync(ALL_LANES, until, LANES - 1, LANES)};
}

// ---- bits ----

__device__ static __forceinline__ void ask_for_line(struct reader *reader) {
    const uint32_t vector = threadIdx.x % LANES * 4, line = (uint32_t)--reader->asked;
    struct ring *ring = reader->ring;
    const uint32_t *from = &reader->words[line * LINE_WORDS + vector];

    copy_vector((uint4 *)&ring->words[line % LINES * LINE_WORDS + vector], from);
    if (line % LINES == 0 && vector == 0)
        copy_vector((uint4 *)ring->again, from);
    reader->ask = (reader->asked + 2) * LINE_BITS;
}

// What was asked for is there. All lanes of the warp come here.
__device__ static __forceinline__ void receive_lines(struct reader *reader) {
    copies_done();
    __syncwarp();
    reader->floor = max(reader->asked * LINE_BITS, reader->begin);
}

// A round takes less than a line, so what the next one takes is in the ring if this is called behind each.
static_assert(LANES * TABLE_LENGTH_MAX < LINE_BITS, "a round takes less than a line");

// Receives a line, and asks for the next, when fewer than two of those that are there are left to read. All
// lanes of the warp come here.
__device__ static __forceinline__ void look_ahead(struct reader *reader) {
    const bool needed = reader->at < reader->ask;

    if (!__any_sync(ALL_LANES, needed))
        return;
    receive_lines(reader);
    if (needed && reader->asked)
        ask_for_line(reader);
    else if (needed)
        reader->ask = INT32_MIN;
    copies_begun();
}

// 32 bits from `from` on. Below the floor is nothing but what lies in front of the payload: zeros.
__device__ static __forceinline__ uint32_t fetch_word(const struct reader *reader, int32_t from) {
    const uint2 two = two_words(reader->near, (uint32_t)from / 32 % RING_WORDS);

    return from >= reader->floor ? __funnelshift_r(two.x, two.y, (uint32_t)from % 32) : 0;
}

__device__ static __forceinline__ uint32_t fetch(const struct reader *reader, int32_t from, uint32_t bits) {
    return bits ? fetch_word(reader, from) & UINT32_MAX >> (32 - bits) % 32 : 0;
}

// ---- numbers ----

// A number of fewer than 32 bits with those of its state: gaps, and values of one and two bytes.
__device__ static __forceinline__ uint32_t take_short(const struct reader *reader, int32_t from,
                                                      uint32_t entry, uint32_t *ret_state) {
    const uint32_t extra = entry_extra(entry);
    const uint32_t word = fetch_word(reader, from) & ~(UINT32_MAX << entry_length(entry) % 32);

    *ret_state = entry_next(entry) + (word >> extra);
    return (entry_lead(entry) << extra) + (word & ~(UINT32_MAX << extra));
}

// One of up to 64 bits, and those of its state above them.
__device__ static __forceinline__ uint64_t take_long(const struct reader *reader, int32_t from,
                                                     uint32_t entry, uint32_t *ret_state) {
    const uint32_t extra = entry_extra(entry), low = min(extra, 32u);
    const uint64_t rest = fetch(reader, from, low) | (uint64_t)fetch(reader, from + 32, extra - low)
                                                         << 32;

    *ret_state = entry_next(entry) +
                 fetch(reader, from + (int32_t)extra, entry_length(entry) - extra);
    return ((uint64_t)entry_lead(entry) << extra) + rest;
}

template <bool SHORT> struct number {
    typedef uint32_t type;
};
template <> struct number<false> {
    typedef uint64_t type;
};

// The lanes that take part take their bits, one behind the other: `lengths` are the sums of how many.
// What the new state says is loaded at once, before anybody waits for what the number is good for.
template <bool SHORT>
__device__ static __forceinline__ typename number<SHORT>::type
take(struct reader *reader, const uint32_t *table, struct sums lengths, uint32_t *entry, bool active, bool again) {
    const int32_t from = reader->at - (int32_t)lengths.until;
    typename number<SHORT>::type number;
    uint32_t state;

    if constexpr (SHORT)
        number = take_short(reader, from, *entry, &state);
    else
        number = take_long(reader, from, *entry, &state);
    if (active)
        reader->state = state;
    *entry = again ? __ldg(&table[reader->state]) : 0;
    reader->at -= (int32_t)lengths.all;
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
static_assert(LANES * TABLE_LENGTH_MAX < 1u << (32 - GAP_BITS), "lengths of a round");

// Every event is a change. Returns the rank behind the last.
__device__ static uint32_t read_ranks(struct reader *reader, const uint32_t *table, uint32_t events,
                                      uint32_t rounds, struct target to) {
    const uint32_t lane = threadIdx.x % LANES;
    uint32_t rank = 0, pending = 0, entry = first_entry(reader, table, lane < events);

    for (uint32_t i = lane; i < rounds + lane; i += LANES) {
        const bool active = i < events;
        const struct sums sums = group_sums(entry_length(entry) << GAP_BITS | pending);
        const uint32_t gap =
            (uint32_t)take<true>(reader, table, {sums.until >> GAP_BITS, sums.all >> GAP_BITS},
                                 &entry, active, i + LANES < events);

        if (pending) // of the round before
            to.ranks[i - LANES] = rank + (sums.until & GAP_MASK) - 1;
        rank = min(rank + (sums.all & GAP_MASK), RANK_END);
        pending = active ? min(gap, DECODE_BLOCK_MAX) + 1 : 0; // further is as wrong as that
    }
    const struct sums sums = group_sums(pending);

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
        const struct sums lengths = group_sums(entry_length(entry));
        const uint32_t number =
            (uint32_t)take<true>(reader, table, lengths, &entry, active, i + LANES < events);
        const uint32_t gap = active ? number : 0;
        const struct sums gaps = group_sums(gap);
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
    typedef typename number<WIDTH <= 2>::type wide;
    const uint32_t lane = threadIdx.x % LANES;
    const wide beyond = (wide)(type)~(type)0;
    uint32_t entry = first_entry(reader, table, lane < to.changes);
    bool active = lane < to.changes;
    wide widest = 0;

    for (uint32_t i = lane; i < rounds + lane; i += LANES) {
        const bool again = i + LANES < to.changes;
        const wide value =
            take<WIDTH <= 2>(reader, table, group_sums(entry_length(entry)), &entry, active, again);
        const wide zigzag = value + 1;

        if (active) {
            widest = max(widest, value);
            ((type *)to.steps)[i] = (type)(zigzag >> 1 ^ (0 - (zigzag & 1)));
        }
        active = again;
    }
    return widest < beyond;
}

// ---- a block ----

// All lanes of the warp come here. Without bytes there is nothing to read.
__device__ static struct reader open_reader(const uint8_t *payload, uint64_t begin, uint32_t bytes,
                                            struct ring *ring, bool *ret_marked) {
    const uint32_t lane = threadIdx.x % LANES, last = bytes ? payload[begin + bytes - 1] : 0;
    const uint32_t line = 4 * LINE_WORDS;
    struct reader reader = {};

    reader.words = (const uint32_t *)(payload + begin / line * line);
    reader.at = reader.begin = (int32_t)(begin % line) * 8;
    reader.ring = ring;
    reader.near = shared_address(ring->words);
    reader.ask = INT32_MIN;
    *ret_marked = last;
    if (last) {
        reader.at += (int32_t)(8 * bytes) - 8 + 31 - __clz(last);
        reader.asked = reader.at / LINE_BITS + 1;
        for (int k = 0; k < LINES && reader.asked; k++)
            ask_for_line(&reader);
    }
    copies_begun();
    receive_lines(&reader);
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
                                      struct ring *ring) {
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
            kept(decode->tables + (size_t)segment->gap_table[has ? k : 0] * DECODE_STATES);
        const uint32_t *value_table =
            kept(decode->tables + (size_t)segment->value_table[has ? k : 0] * DECODE_STATES);
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
    if (reader.at != reader.begin)
        return DECODE_LENGTH;
    return values_fit ? 0 : DECODE_VALUE;
}

template <unsigned WIDTH>
__global__ static void __launch_bounds__(THREADS)
    read_payloads(struct cuda_decode decode, struct decode_range range) {
    DYNAMIC_SHARED(struct ring, rings);
    const uint32_t index = (blockIdx.x * THREADS + threadIdx.x) / LANES;
    const bool there = index < range.coded;
    const uint32_t number = range.first + (there ? index : 0);
    const struct decode_block block = decode.blocks[number];
    const bool live = there && block.payload_bytes;
    const uint32_t fault =
        read_block<WIDTH>(&decode, &block, live, &rings[threadIdx.x / LANES]);

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
               blocks_at_once * sizeof(struct ring), (cudaStream_t)stream, *decode, range);
    }
    return cuda_status(cudaGetLastError());
}
