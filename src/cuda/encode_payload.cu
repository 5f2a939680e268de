// SPDX-License-Identifier: Apache-2.0
// Twin: code/payload_write.c. The eight states do not depend on each other, only where their bits end up
// depends on all of them. So each number is coded first, a thread for each state, which leaves beside it
// the bits that its state puts out; then all bits are put where they belong, a warp for each list.
#include "cuda/encode.cuh"

#define CODE_THREADS 128u
#define PACK_THREADS 128u

// ---- coding ----

// Numbers that a state looks up at a time, so that only the states themselves wait for each other.
#define BATCH 8u

template <unsigned W> struct Batch {
    Token<W> token[BATCH];

    // The last `BATCH` of a state's first `left` numbers, the very last one first.
    __device__ __forceinline__ void load(const Tokens<W> &tokens, uint32_t from, uint32_t left) {
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++) {
            if (i < left)
                token[i] = tokens[from + STREAM_STATES * (left - 1 - i)];
        }
    }
};

template <unsigned W> __device__ static __forceinline__ Symbol symbol_of(Token<W> token, bool gap) {
    return gap ? gap_symbol((uint32_t)token.number()) : value_symbol(token.number());
}

__device__ static __forceinline__ uint32_t next_state(const EncodeTables *tables, SymbolStep step, uint32_t state,
                                                      uint32_t *out) {
    *out = (state + step.bits) >> 16;
    return tables->next[(int32_t)(state >> *out) + step.offset];
}

template <unsigned W>
__device__ static __forceinline__ uint32_t code_one(Token<W> *at, const EncodeTables *tables, bool gaps, uint32_t *state) {
    Token<W> token = *at;
    Symbol symbol = symbol_of(token, gaps);
    uint32_t out, next = next_state(tables, tables->symbol[symbol.symbol], *state, &out);

    token.put(*state & ((1u << out) - 1), out);
    *at = token;
    *state = next;
    return out + symbol.extra;
}

// From the last number of this thread's state to its first.
template <unsigned W>
__device__ static uint32_t code_list(const Tokens<W> &tokens, uint32_t from, uint32_t count,
                                     const EncodeTables *tables, bool gaps, uint32_t *state) {
    const uint32_t turn = threadIdx.x % STREAM_STATES;
    uint32_t s = *state, bits = 0, left = count > turn ? (count - turn - 1) / STREAM_STATES + 1 : 0;
    Batch<W> next;

    from += turn;
    next.load(tokens, from, left);
    for (; left >= BATCH; left -= BATCH) {
        Batch<W> batch = next;
        SymbolStep step[BATCH];

        next.load(tokens, from, left - BATCH);
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++) {
            Symbol symbol = symbol_of(batch.token[i], gaps);

            step[i] = tables->symbol[symbol.symbol];
            bits += symbol.extra;
        }
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++) {
            uint32_t out, after = next_state(tables, step[i], s, &out);

            batch.token[i].put(s & ((1u << out) - 1), out);
            bits += out;
            s = after;
        }
#pragma unroll
        for (uint32_t i = 0; i < BATCH; i++)
            tokens[from + STREAM_STATES * (left - 1 - i)] = batch.token[i];
    }
    while (left-- > 0)
        bits += code_one<W>(&tokens[from + STREAM_STATES * left], tables, gaps, &s);
    *state = s;
    return bits;
}

template <unsigned W> __global__ static void __launch_bounds__(CODE_THREADS) code_blocks(Wave wave) {
    const uint32_t b = (blockIdx.x * CODE_THREADS + threadIdx.x) / STREAM_STATES;
    uint32_t state = TANS_STATES, total = 0;

    if (*wave.overflow)
        return;
    const uint32_t here = b < wave.block_count ? b : 0;
    BlockState &block = wave.block[here];
    const SegmentState &segment = segment_of(wave, wave.blocks[here]);
    const bool active = b < wave.block_count && block.tokens && is_coded(segment);
    const Tokens<W> tokens(wave, here);
    uint32_t end = block.tokens;

    for (uint32_t list = LISTS; list-- > 0;) {
        uint32_t count = active ? numbers_of_list(block, segment.classes, segment.flipped, list) : 0;
        const EncodeTables *tables = list % 2 ? &segment.values[list / 2] : &segment.gaps[list / 2];

        end -= count;
        uint32_t bits = count ? code_list<W>(tokens, end, count, tables, list % 2 == 0, &state) : 0;

        for (int by = STREAM_STATES / 2; by > 0; by /= 2)
            bits += __shfl_xor_sync(ALL_LANES, bits, by);
        if (active && threadIdx.x % STREAM_STATES == 0)
            block.bits[list] = bits;
        total += bits;
    }
    if (active) {
        block.states[threadIdx.x % STREAM_STATES] = state - TANS_STATES;
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
