// SPDX-License-Identifier: Apache-2.0
// The encoder on the device, stage by stage; code/encode.c and what it calls are the twin, and every
// byte must come out the same. A wave is a run of segments of one element width that goes through all
// stages together. Stages leave their results in the arrays below.
//
//     encode_classes.cu   a sample of the elements shows which cells behave alike
//     encode_scan.cu      compares, and finds each change's class and rank in it
//     encode_sort.cu      puts the changes into the order of the stream, and counts symbols
//     encode_models.cu    shares of the states, and the tables that encode by them
//     encode_payload.cu   entropy coding, and packing of bits
//     encode_segment.cu   headers, directories, where everything goes, checksums
#pragma once

#include "cuda/decode.h"
#include "cuda/elements.cuh"
#include "cuda/journal.h"

#define CLASSES 16u // CLASSES_MAX
#define SIZES 40u   // SIZE_SYMBOLS

// What a sample showed of the cells of a segment: seen, changed, then the sizes of the changes.
#define SAMPLE_COUNTERS(cells) ((size_t)(cells) * (2 + SIZES))

// The changes of a block that are sorted at once, as many as shared memory holds; a segment with a block
// that has more is left to the CPU, and so is one in which an eighth of the elements changes.
template <unsigned W> constexpr uint32_t SORT_LARGE = W == 8 ? 12288 : W == 4 ? 16384 : 24576;
// Most blocks have far fewer, and are sorted several to a processor, in as much room as the run before asks for.
#define SORT_SMALL 4096u
#define SORT_MEDIUM 8192u
#define MANY_OF 8u

// What did not fit; the wave has to be repeated.
#define FULL_POOL 2u
#define FULL_OUTPUT 4u
#define FULL_SORT 8u // a block has more than `sort_room` changes, and nobody was called to sort those

// Changes are listed on pages that are handed out as they are needed; the last page of a block is as short
// as the block leaves it. A block that needs more pages than this has more changes than can be sorted.
#define PAGE_SLOTS 256u
#define PAGES_OF_BLOCK 128u

#define RANK_BITS 18u // of an entry; the class stands above

// The longest header in front of a directory: two bits of coder, the map, the models.
#define HEAD_WORDS 1152u

// What a symbol does to a state, in one word: what is added to the state to tell, in its upper half, how many
// bits it puts out; and above that where the states go from there.
#define STEP_BITS 20u

struct alignas(16) EncodeTables {
    uint16_t next[TANS_STATES];
    uint32_t step[VALUE_SYMBOLS];
};

struct ClassModel {
    uint32_t used, rate, top_gap;
    uint32_t changes, top_value;
    uint16_t share[VALUE_SYMBOLS]; // of values
};

struct SegmentState {
    uint8_t of[CELLS];
    uint32_t classes, flipped;
    uint32_t largest_gap[CLASSES];
    uint32_t value_counts[CLASSES][VALUE_SYMBOLS];
    ClassModel model[CLASSES];
    EncodeTables gaps[CLASSES], values[CLASSES];

    uint32_t head[HEAD_WORDS];
    uint32_t head_bits;
    uint32_t rice[2 * CLASSES + 1];        // parameter of each column of the directory
    uint32_t column_bits[2 * CLASSES + 1]; // 0: it is not written
    uint32_t header_bytes;
    uint32_t elsewhere; // to be coded by the CPU
    uint32_t largest_block; // changes of the block that has most
    uint64_t changes;
    uint64_t payload_bytes;
    uint64_t checksum;
    uint64_t bytes;  // of the whole; 0 if nothing changed
    uint64_t offset; // in the output
};

// Lists of a block, as they are read: of each class its gaps, then its values.
#define LISTS (2 * CLASSES)

struct BlockState {
    uint32_t changed;
    uint32_t seen[CLASSES], changes[CLASSES];
    uint32_t tokens; // numbers to be coded ...
    uint32_t bits[LISTS]; // ... and what those of each list take
    uint32_t bytes;
    uint32_t states[STREAM_STATES];
    uint64_t payload; // from where the segment's payloads begin
};

// The events of a class: its changes or, in a flipped one, the elements that do not change.
__device__ static __forceinline__ uint32_t events_of(const BlockState &block, uint32_t flipped, uint32_t k) {
    return k < flipped ? block.changes[k] : block.seen[k] - block.changes[k];
}

__device__ static __forceinline__ uint32_t numbers_of_list(const BlockState &block, uint32_t classes, uint32_t flipped,
                                                           uint32_t list) {
    if (list / 2 >= classes)
        return 0;
    return list % 2 ? block.changes[list / 2] : events_of(block, flipped, list / 2);
}

// A number of the stream and, once it is coded, the bits that its state put out: how many, and which.
template <unsigned W> struct Token;

template <> struct Token<2> {
    uint32_t all; // 18 bits number, 10 of the state, 4 how many of those

    __device__ __forceinline__ void number(uint64_t x) { all = (uint32_t)x; }
    __device__ __forceinline__ uint32_t number() const { return all & 0x3ffff; }
    __device__ __forceinline__ void put(uint32_t bits, uint32_t count) { all |= bits << 18 | count << 28; }
    __device__ __forceinline__ uint32_t bits() const { return all >> 18 & 0x3ff; }
    __device__ __forceinline__ uint32_t count() const { return all >> 28; }
};

template <> struct Token<1> : Token<2> {};

template <> struct Token<8> {
    uint64_t wide;
    uint32_t low, high;

    __device__ __forceinline__ void number(uint64_t x) { wide = x, low = high = 0; }
    __device__ __forceinline__ uint64_t number() const { return wide; }
    __device__ __forceinline__ void put(uint32_t bits, uint32_t count) { low = bits, high = count; }
    __device__ __forceinline__ uint32_t bits() const { return low; }
    __device__ __forceinline__ uint32_t count() const { return high; }
};

template <> struct Token<4> {
    uint32_t whole, state;

    __device__ __forceinline__ void number(uint64_t x) { whole = (uint32_t)x, state = 0; }
    __device__ __forceinline__ uint32_t number() const { return whole; }
    __device__ __forceinline__ void put(uint32_t bits, uint32_t count) { state = bits | count << 16; }
    __device__ __forceinline__ uint32_t bits() const { return state & 0xffff; }
    __device__ __forceinline__ uint32_t count() const { return state >> 16; }
};

// A place on a page: a change as the scan finds it; later, in the same memory, two numbers of the stream.
template <unsigned W> union alignas(8) Slot {
    struct {
        uint32_t entry; // rank and class
        uint32_t value;
    } change;
    Token<W> tokens[2];
};

template <> union alignas(16) Slot<8> {
    struct {
        uint64_t entry, value;
    } change;
    Token<8> tokens[2];
};

// Moves of the patch before, as in cuda/encode.h.
struct Moves {
    const decode_move *moves;
    const uint64_t *first;
    const uint32_t *count;
};

__device__ static __forceinline__ uint32_t move_position(decode_move move) {
    return move >> 8;
}

__device__ static __forceinline__ int move_size(decode_move move) {
    return (int8_t)(move & 0xff);
}

// Everything that the stages of a wave share; all pointers lead to device memory.
struct Wave {
    const cuda_segment *segments; // of the wave
    const cuda_block *blocks;
    uint32_t segment_count, block_count;
    uint32_t first_segment, first_block; // what their numbers in the blocks count from
    Moves moves;
    const cuda_journal *journal; // what weights were that are compared with themselves; NULL: they are not

    uint32_t *samples; // SAMPLE_COUNTERS for each segment
    uint32_t cells;    // EXPONENT_CELLS, or CELLS with history
    SegmentState *segment;
    BlockState *block;

    void *slots;     // pages
    uint32_t *pages; // PAGES_OF_BLOCK for each block: where they begin
    uint32_t *slots_used;
    uint32_t slot_limit;

    uint32_t sort_room; // changes of a block: SORT_SMALL or SORT_MEDIUM ...
    uint32_t *large;    // ... blocks with more ...
    uint32_t *large_count;
    uint32_t sort_large; // ... and whether somebody sorts those

    unsigned long long *sums; // two lanes for each piece of the plan: what is added to them
    uint8_t *output;
    uint64_t output_limit;
    uint64_t *output_used;

    uint32_t *overflow; // FULL_POOL, FULL_OUTPUT, FULL_SORT
};

// A page of up to `slots`, aligned to two of them; false if there is none.
__device__ static __forceinline__ bool take_page(const Wave &wave, uint32_t slots, uint32_t *ret_page) {
    slots = (slots + 1) & ~1u;
    *ret_page = atomicAdd(wave.slots_used, slots);
    if (*ret_page <= wave.slot_limit - slots)
        return true;
    atomicOr(wave.overflow, FULL_POOL);
    return false;
}

__device__ static __forceinline__ uint32_t slots_of_page(const cuda_block &block, uint32_t page) {
    return min(PAGE_SLOTS, block.elements - page * PAGE_SLOTS);
}

template <unsigned W>
__device__ static __forceinline__ Slot<W> *slot_at(const Wave &wave, const uint32_t *pages, uint32_t i) {
    return (Slot<W> *)wave.slots + pages[i / PAGE_SLOTS] + i % PAGE_SLOTS;
}

// The numbers of a block, page by page.
template <unsigned W> struct Tokens {
    Token<W> *pool;
    const uint32_t *pages;

    __device__ __forceinline__ Tokens(const Wave &wave, uint32_t b)
        : pool((Token<W> *)wave.slots), pages(wave.pages + (size_t)PAGES_OF_BLOCK * b) {}

    // Where in the pool one of them is.
    __device__ __forceinline__ uint32_t place(uint32_t i) const {
        return 2 * pages[i / (2 * PAGE_SLOTS)] + i % (2 * PAGE_SLOTS);
    }

    __device__ __forceinline__ Token<W> &operator[](uint32_t i) const { return pool[place(i)]; }
};

// The moves of a block.
struct MoveRange {
    const decode_move *at, *end;
};

__device__ static __forceinline__ MoveRange moves_of_block(const Wave &wave, uint32_t b) {
    const decode_move *first = wave.moves.moves + wave.moves.first[b];

    return {first, first + wave.moves.count[b]};
}

// How many of them there are in front of a position.
__device__ static inline uint32_t moves_before(MoveRange range, uint32_t position) {
    uint32_t low = 0, high = (uint32_t)(range.end - range.at);

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (move_position(range.at[middle]) < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Whether the segment is coded here, as far as is known.
__device__ static __forceinline__ bool is_coded(const SegmentState &segment) {
    return segment.changes && !segment.elsewhere;
}

__device__ static __forceinline__ SegmentState &segment_of(const Wave &wave, const cuda_block &block) {
    return wave.segment[block.segment - wave.first_segment];
}

// ---- the stages ----

template <unsigned W> void encode_classes(const Wave &wave, cudaStream_t stream);
template <unsigned W> void encode_scan(const Wave &wave, cudaStream_t stream);
template <unsigned W> void encode_sort(const Wave &wave, cudaStream_t stream);
void encode_models(const Wave &wave, cudaStream_t stream);
template <unsigned W> void encode_payload_code(const Wave &wave, cudaStream_t stream);
void encode_heads(const Wave &wave, cudaStream_t stream);
void encode_measure(const Wave &wave, cudaStream_t stream);
void encode_place(const Wave &wave, cudaStream_t stream);
void encode_directories(const Wave &wave, cudaStream_t stream);
template <unsigned W> void encode_payload_pack(const Wave &wave, cudaStream_t stream);
void encode_checksums(const Wave &wave, cudaStream_t stream);
