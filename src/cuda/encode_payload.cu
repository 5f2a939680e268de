// SPDX-License-Identifier: Apache-2.0
// Twin: code/payload_write.c. The eight states do not depend on each other, only where their bits end up
// depends on all of them. So each number is coded first, a thread for each state, which leaves beside it
// the bits that its state puts out; then all bits are put where they belong, a warp for each list.
#include "cuda/encode.cuh"

#define CODE_THREADS 64u
#define PACK_THREADS 128u

// ---- coding ----

// A state waits for the one before and for nothing else: its numbers are on their way from memory three batches
// ahead, and what its symbols do to it is looked up one batch ahead.
#define BATCH 4u

template <unsigned W> struct Batch {
    Token<W> token[BATCH]; // the last one of the state first
    uint32_t place[BATCH]; // in the pool
    uint32_t count;        // how many there are, in this lane
    uint32_t list;         // of the whole warp; LISTS: there is none
};

// The numbers of a lane's state, from the last one of the last list to the first.
template <unsigned W> struct Source {
    const Tokens<W> tokens;
    const BlockState &block;
    const uint32_t classes, flipped;
    uint32_t list, rounds; // the same in all lanes
    uint32_t first, left;  // of this state's numbers in the list
    uint32_t end, page, base;

    __device__ __forceinline__ Source(const Wave &wave, uint32_t b, bool active)
        : tokens(wave, b), block(wave.block[b]), classes(active ? segment_of(wave, wave.blocks[b]).classes : 0),
          flipped(segment_of(wave, wave.blocks[b]).flipped), list(LISTS), rounds(0), first(0), left(0),
          end(block.tokens), page(PAGES_OF_BLOCK), base(0) {}

    // Lists are as long as the longest of the warp's blocks has them.
    __device__ __forceinline__ void next_list() {
        const uint32_t turn = threadIdx.x % STREAM_STATES, count = numbers_of_list(block, classes, flipped, --list);

        end -= count;
        first = end + turn;
        left = count > turn ? (count - turn - 1) / STREAM_STATES + 1 : 0;
        rounds = (__reduce_max_sync(ALL_LANES, left) + BATCH - 1) / BATCH;
    }

    __device__ __forceinline__ uint32_t place(uint32_t i) {
        if (i / (2 * PAGE_SLOTS) != page) {
            page = i / (2 * PAGE_SLOTS);
            base = 2 * tokens.pages[page];
        }
        return base + i % (2 * PAGE_SLOTS);
    }

    __device__ __forceinline__ void load(Batch<W> *to) {
        while (!rounds && list)
            next_list();
        to->list = rounds ? list : LISTS;
        to->count = min(left, BATCH);
        rounds -= rounds != 0;
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++) {
            if (i < to->count) {
                to->place[i] = place(first + STREAM_STATES * (left - 1 - i));
                to->token[i] = tokens.pool[to->place[i]];
            }
        }
        left -= to->count;
    }
};

struct Steps {
    SymbolStep step[BATCH];
    uint32_t extra; // bits of all
};

template <unsigned W> __device__ static __forceinline__ Symbol symbol_of(Token<W> token, bool gap) {
    return gap ? gap_symbol((uint32_t)token.number()) : value_symbol(token.number());
}

__device__ static __forceinline__ const EncodeTables &tables_of(const SegmentState &segment, uint32_t list) {
    return list % 2 ? segment.values[list / 2] : segment.gaps[list / 2];
}

template <unsigned W>
__device__ static __forceinline__ void look_up(const SegmentState &segment, const Batch<W> &batch, Steps *to) {
    to->extra = 0;
    if (batch.list == LISTS)
        return;
    const EncodeTables &tables = tables_of(segment, batch.list);

#pragma unroll
    for (uint32_t i = 0; i < BATCH; i++) {
        if (i < batch.count) {
            Symbol symbol = symbol_of(batch.token[i], batch.list % 2 == 0);
            uint2 step = __ldg((const uint2 *)&tables.symbol[symbol.symbol]);

            to->step[i] = {step.x, (int32_t)step.y};
            to->extra += symbol.extra;
        }
    }
}

// Runs the state, and puts beside the numbers what it puts out. Returns how many bits they take.
template <unsigned W>
__device__ static __forceinline__ uint32_t code_batch(const SegmentState &segment, const Tokens<W> &tokens,
                                                      Batch<W> *batch, const Steps &steps, uint32_t *state) {
    const EncodeTables &tables = tables_of(segment, batch->list);
    uint32_t bits = steps.extra;

#pragma unroll
    for (uint32_t i = 0; i < BATCH; i++) {
        if (i < batch->count) {
            const uint32_t s = *state, out = (s + steps.step[i].bits) >> 16;

            *state = __ldg(&tables.next[(int32_t)(s >> out) + steps.step[i].offset]);
            batch->token[i].put(s & ((1u << out) - 1), out);
            tokens.pool[batch->place[i]] = batch->token[i];
            bits += out;
        }
    }
    return bits;
}

__device__ static __forceinline__ uint32_t sum_of_states(uint32_t value) {
    for (int by = STREAM_STATES / 2; by > 0; by /= 2)
        value += __shfl_xor_sync(ALL_LANES, value, by);
    return value;
}

// Eight lanes for each block.
template <unsigned W> __global__ static void __launch_bounds__(CODE_THREADS) code_blocks(Wave wave) {
    const uint32_t b = (blockIdx.x * CODE_THREADS + threadIdx.x) / STREAM_STATES, here = b < wave.block_count ? b : 0;
    const uint32_t turn = threadIdx.x % STREAM_STATES;
    BlockState &block = wave.block[here];
    const SegmentState &segment = segment_of(wave, wave.blocks[here]);
    const bool active = b < wave.block_count && block.tokens && is_coded(segment);
    uint32_t state = TANS_STATES, total = 0, bits = 0;
    Source<W> source(wave, here, active);
    Batch<W> now, next, later, latest;
    Steps steps, next_steps;

    if (*wave.overflow)
        return;
    source.load(&now);
    source.load(&next);
    source.load(&later);
    look_up(segment, now, &steps);
    while (now.list != LISTS) {
        const uint32_t list = now.list;

        source.load(&latest);
        look_up(segment, next, &next_steps);
        bits += code_batch(segment, source.tokens, &now, steps, &state);
        now = next;
        next = later;
        later = latest;
        steps = next_steps;
        if (now.list == list)
            continue;
        bits = sum_of_states(bits);
        if (active && turn == 0)
            block.bits[list] = bits;
        total += bits;
        bits = 0;
    }
    if (active) {
        block.states[turn] = state - TANS_STATES;
        block.bytes = (total + STREAM_STATES * TANS_LOG + 1 + 7) / 8;
    }
}

template <unsigned W> void encode_payload_code(const Wave &wave, cudaStream_t stream) {
    launch(code_blocks<W>, (wave.block_count * STREAM_STATES + CODE_THREADS - 1) / CODE_THREADS, CODE_THREADS, 0,
           stream, wave);
}

// ---- packing ----

// Words of 32 bits that are being filled, for one warp. Every round they are written as far as they are
// complete; the first and the last may share a word with a neighbour, so those are added to what is
// there, which was zero.
#define RING 256u

struct Packer {
    uint32_t *ring;
    uint32_t *to;    // words of the output
    uint32_t bit;    // next one, from the start of *to
    uint32_t first;  // word
    uint32_t done;   // words before this are written
};

__device__ static __forceinline__ void ring_or(Packer *packer, uint32_t at, uint64_t value, uint32_t high) {
    uint32_t shift = at % 32, word = at / 32;
    uint32_t parts[4] = {(uint32_t)value << shift, (uint32_t)(value << shift >> 32), 0, 0};

    if (shift) {
        parts[2] = (uint32_t)(value >> 32 >> (32 - shift)) | high << shift;
        parts[3] = high >> (32 - shift);
    } else {
        parts[2] = high;
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        if (parts[i])
            atomicOr(&packer->ring[(word + i) % RING], parts[i]);
    }
}

__device__ static void flush(Packer *packer, uint32_t upto) {
    __syncwarp();
    for (uint32_t i = packer->done + lane_id(); i < upto; i += WARP) {
        uint32_t word = packer->ring[i % RING];

        packer->ring[i % RING] = 0;
        if (i == packer->first || i == packer->bit / 32)
            atomicOr(&packer->to[i], word);
        else
            packer->to[i] = word;
    }
    packer->done = max(packer->done, upto);
    __syncwarp();
}

// The extra bits of a number, and above them those of its state; `high` is what lies above 64 bits.
template <unsigned W>
__device__ static __forceinline__ uint32_t bits_of(Token<W> token, bool gap, uint64_t *value, uint32_t *high) {
    Symbol symbol = gap ? gap_symbol((uint32_t)token.number()) : value_symbol(token.number());
    uint64_t rest = token.number() & ((UINT64_C(1) << symbol.extra) - 1), state = token.bits();

    *value = rest | state << symbol.extra;
    *high = symbol.extra > 64 - TANS_LOG ? (uint32_t)(state >> (64 - symbol.extra)) : 0;
    return symbol.extra + token.count();
}

// Numbers that a lane packs at a time. Two of up to 26 bits are joined first.
template <unsigned W> constexpr uint32_t TOGETHER = W <= 2 ? 4 : 1;

template <unsigned W>
__device__ static void pack_list(Packer *packer, const Tokens<W> &tokens, uint32_t first, uint32_t count, bool gaps) {
    constexpr uint32_t each = TOGETHER<W>, puts = (each + 1) / 2;

    for (uint32_t done = 0; done < count; done += each * WARP) {
        uint32_t from = done + each * lane_id(), length[puts] = {}, high = 0, all = 0;
        uint64_t value[puts] = {};

#pragma unroll
        for (uint32_t i = 0; i < each; i++) { // the last number comes first
            if (from + i < count) {
                uint64_t bits;
                uint32_t more = bits_of<W>(tokens[first + count - 1 - from - i], gaps, &bits, &high);

                value[i / 2] |= bits << length[i / 2];
                length[i / 2] += more;
                all += more;
            }
        }
        uint32_t upto = sum_up(all), at = packer->bit + upto - all;

#pragma unroll
        for (uint32_t i = 0; i < puts; i++) {
            if (length[i])
                ring_or(packer, at, value[i], each == 1 ? high : 0);
            at += length[i];
        }
        packer->bit += __shfl_sync(ALL_LANES, upto, 31);
        flush(packer, packer->bit / 32);
    }
}

__device__ static Packer packer_at(uint32_t *ring, uint8_t *payload, uint32_t bit) {
    const uint32_t start = (uint32_t)((uintptr_t)payload & 3) * 8 + bit;

    return {ring, (uint32_t *)((uintptr_t)payload & ~(uintptr_t)3), start, start / 32, start / 32};
}

// The states, the last one first, then the mark of the end.
__device__ static void pack_end(Packer packer, const uint32_t *states) {
    const uint32_t lane = lane_id();

    if (lane < STREAM_STATES)
        ring_or(&packer, packer.bit + TANS_LOG * lane, states[STREAM_STATES - 1 - lane], 0);
    else if (lane == STREAM_STATES)
        ring_or(&packer, packer.bit + TANS_LOG * STREAM_STATES, 1, 0);
    packer.bit += TANS_LOG * STREAM_STATES + 1;
    flush(&packer, packer.bit / 32 + 1);
}

// A thread block for each block. What is read last comes first in the payload.
template <unsigned W> __global__ static void __launch_bounds__(PACK_THREADS) pack_blocks(Wave wave) {
    __shared__ uint32_t rings[PACK_THREADS / WARP][RING];
    const uint32_t warp = threadIdx.x / WARP, lane = lane_id();
    const BlockState &block = wave.block[blockIdx.x];

    if (!block.tokens || !is_coded(segment_of(wave, wave.blocks[blockIdx.x])) || *wave.overflow)
        return;
    for (uint32_t i = lane; i < RING; i += WARP)
        rings[warp][i] = 0;
    __syncwarp();
    const SegmentState &segment = segment_of(wave, wave.blocks[blockIdx.x]);
    const Tokens<W> tokens(wave, blockIdx.x);
    uint8_t *payload = wave.output + segment.offset + segment.header_bytes + block.payload;
    uint32_t count = numbers_of_list(block, segment.classes, segment.flipped, lane), bits = block.bits[lane];
    uint32_t from = sum_up(count) - count, upto = sum_up(bits), total = __shfl_sync(ALL_LANES, upto, 31);

    for (uint32_t list = warp; list < 2 * segment.classes; list += PACK_THREADS / WARP) {
        uint32_t here = __shfl_sync(ALL_LANES, count, (int)list);
        Packer packer = packer_at(rings[warp], payload, total - __shfl_sync(ALL_LANES, upto, (int)list));

        pack_list<W>(&packer, tokens, __shfl_sync(ALL_LANES, from, (int)list), here, list % 2 == 0);
        if (here)
            flush(&packer, packer.bit / 32 + 1);
    }
    if (warp == 0)
        pack_end(packer_at(rings[warp], payload, total), block.states);
}

template <unsigned W> void encode_payload_pack(const Wave &wave, cudaStream_t stream) {
    launch(pack_blocks<W>, wave.block_count, PACK_THREADS, 0, stream, wave);
}

template void encode_payload_code<1>(const Wave &, cudaStream_t);
template void encode_payload_code<2>(const Wave &, cudaStream_t);
template void encode_payload_code<4>(const Wave &, cudaStream_t);
template void encode_payload_code<8>(const Wave &, cudaStream_t);
template void encode_payload_pack<1>(const Wave &, cudaStream_t);
template void encode_payload_pack<2>(const Wave &, cudaStream_t);
template void encode_payload_pack<4>(const Wave &, cudaStream_t);
template void encode_payload_pack<8>(const Wave &, cudaStream_t);
