// SPDX-License-Identifier: Apache-2.0
// Twin: code/payload_write.c. The eight states do not depend on each other, only where their bits end up
// depends on all of them. So each number is coded first, a thread for each state, which leaves beside it
// the bits that its state puts out; then all bits are put where they belong, a warp for each block.
#include "cuda/encode.cuh"

#define CODE_THREADS 128u
#define PACK_THREADS 256u

// ---- coding ----

template <unsigned W>
__device__ static uint32_t code_list(Token<W> *tokens, uint32_t count, const EncodeTables *tables, bool gaps,
                                     uint32_t *state) {
    const uint32_t turn = threadIdx.x % STREAM_STATES;
    uint32_t s = *state, bits = 0;

    // from the last number of this state to its first
    for (uint32_t i = count > turn ? (count - turn - 1) / STREAM_STATES + 1 : 0; i-- > 0;) {
        Token<W> token = tokens[STREAM_STATES * i + turn];
        Symbol symbol = gaps ? gap_symbol((uint32_t)token.number()) : value_symbol(token.number());
        SymbolStep step = tables->symbol[symbol.symbol];
        uint32_t out = (s + step.bits) >> 16;

        token.put(s & ((1u << out) - 1), out);
        s = tables->next[(int32_t)(s >> out) + step.offset];
        tokens[STREAM_STATES * i + turn] = token;
        bits += out + symbol.extra;
    }
    *state = s;
    return bits;
}

template <unsigned W> __global__ static void __launch_bounds__(CODE_THREADS) code_blocks(Wave wave) {
    const uint32_t b = (blockIdx.x * CODE_THREADS + threadIdx.x) / STREAM_STATES;
    uint32_t state = TANS_STATES, bits = 0;

    if (*wave.overflow)
        return;
    if (b < wave.block_count && wave.block[b].tokens) {
        const BlockState &block = wave.block[b];
        const SegmentState &segment = segment_of(wave, wave.blocks[b]);
        Token<W> *end = (Token<W> *)wave.tokens + block.first_token + block.tokens;

        for (uint32_t k = segment.classes; k-- > 0;) {
            uint32_t changes = block.changes[k], events = events_of(block, segment.flipped, k);

            end -= changes;
            bits += code_list<W>(end, changes, &segment.values[k], false, &state);
            end -= events;
            bits += code_list<W>(end, events, &segment.gaps[k], true, &state);
        }
    }
    for (int by = STREAM_STATES / 2; by > 0; by /= 2)
        bits += __shfl_xor_sync(ALL_LANES, bits, by);
    if (b < wave.block_count) {
        BlockState &block = wave.block[b];

        block.states[threadIdx.x % STREAM_STATES] = state - TANS_STATES;
        if (threadIdx.x % STREAM_STATES == 0) {
            block.bits = bits;
            block.bytes = block.tokens ? (bits + STREAM_STATES * TANS_LOG + 1 + 7) / 8 : 0;
        }
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
#define RING 128u

struct Packer {
    uint32_t *ring;
    uint32_t *to;  // word that bit 0 of the stream is in
    uint32_t bit;  // next one, from the start of *to
    uint32_t done; // words written
    bool first;    // nothing was written yet
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
        if (i == 0 || i == packer->bit / 32)
            atomicOr(&packer->to[i], word);
        else
            packer->to[i] = word;
    }
    packer->done = max(packer->done, upto);
    __syncwarp();
}

// All lanes put their bits behind each other, lane 0 first: `value`, then `high` above 64.
__device__ static void put_all(Packer *packer, uint64_t value, uint32_t high, uint32_t bits) {
    uint32_t upto = sum_up(bits);

    if (bits)
        ring_or(packer, packer->bit + upto - bits, value, high);
    packer->bit += __shfl_sync(ALL_LANES, upto, 31);
    flush(packer, packer->bit / 32);
}

// The extra bits of a number, and above them those of its state.
template <unsigned W> __device__ static uint32_t bits_of(Token<W> token, bool gap, uint64_t *value, uint32_t *high) {
    Symbol symbol = gap ? gap_symbol((uint32_t)token.number()) : value_symbol(token.number());
    uint64_t rest = token.number() & ((UINT64_C(1) << symbol.extra) - 1), state = token.bits();

    *value = rest | state << symbol.extra;
    *high = symbol.extra > 64 - TANS_LOG ? (uint32_t)(state >> (64 - symbol.extra)) : 0;
    return symbol.extra + token.count();
}

template <unsigned W>
__device__ static void pack_list(Packer *packer, const Token<W> *tokens, uint32_t count, bool gaps) {
    for (uint32_t done = 0; done < count; done += WARP) {
        uint32_t i = done + lane_id(), high = 0, bits = 0;
        uint64_t value = 0;

        if (i < count)
            bits = bits_of<W>(tokens[count - 1 - i], gaps, &value, &high);
        put_all(packer, value, high, bits);
    }
}

template <unsigned W> __global__ static void __launch_bounds__(PACK_THREADS) pack_blocks(Wave wave) {
    __shared__ uint32_t rings[PACK_THREADS / WARP][RING];
    const uint32_t b = (blockIdx.x * PACK_THREADS + threadIdx.x) / WARP, lane = lane_id();

    for (uint32_t i = lane; i < RING; i += WARP)
        rings[threadIdx.x / WARP][i] = 0;
    __syncwarp();
    if (b >= wave.block_count || !wave.block[b].tokens || *wave.overflow)
        return;
    const BlockState &block = wave.block[b];
    const SegmentState &segment = segment_of(wave, wave.blocks[b]);
    uint8_t *to = wave.output + segment.offset + segment.header_bytes + block.payload;
    const Token<W> *end = (const Token<W> *)wave.tokens + block.first_token + block.tokens;
    Packer packer = {rings[threadIdx.x / WARP], (uint32_t *)((uintptr_t)to & ~(uintptr_t)3),
                     (uint32_t)((uintptr_t)to & 3) * 8, 0, true};

    for (uint32_t k = segment.classes; k-- > 0;) {
        uint32_t changes = block.changes[k], events = events_of(block, segment.flipped, k);

        end -= changes;
        pack_list<W>(&packer, end, changes, false);
        end -= events;
        pack_list<W>(&packer, end, events, true);
    }
    bool state = lane < STREAM_STATES;

    put_all(&packer, state ? block.states[STREAM_STATES - 1 - lane] : lane == STREAM_STATES, 0,
            state ? TANS_LOG : lane == STREAM_STATES);
    flush(&packer, packer.bit / 32 + 1);
}

template <unsigned W> void encode_payload_pack(const Wave &wave, cudaStream_t stream) {
    launch(pack_blocks<W>, (wave.block_count * WARP + PACK_THREADS - 1) / PACK_THREADS, PACK_THREADS, 0, stream,
           wave);
}

template void encode_payload_code<1>(const Wave &, cudaStream_t);
template void encode_payload_code<2>(const Wave &, cudaStream_t);
template void encode_payload_code<4>(const Wave &, cudaStream_t);
template void encode_payload_code<8>(const Wave &, cudaStream_t);
template void encode_payload_pack<1>(const Wave &, cudaStream_t);
template void encode_payload_pack<2>(const Wave &, cudaStream_t);
template void encode_payload_pack<4>(const Wave &, cudaStream_t);
template void encode_payload_pack<8>(const Wave &, cudaStream_t);
