// SPDX-License-Identifier: Apache-2.0
// Twin: code/payload_write.c. The eight states do not depend on each other, only where their bits end up
// depends on all of them. So each number is coded first, a warp for each block, which leaves beside it
// the bits that its state puts out; then all bits are put where they belong, a warp for each list.
#include "cuda/encode.cuh"
#include "cuda/tile.cuh"

#define CODE_THREADS 64u
#define PACK_THREADS 128u

// ---- coding ----

// A warp for each block. 32 numbers go through it at a time, one to a lane, and the lane finds out what its
// symbol does to a state; then the states, each of which is in four lanes, run through four numbers each. They
// wait for nothing but themselves: numbers and tables come to shared memory ahead of them.
#define CHUNKS 4u // of numbers: one or two in use, two on their way
#define TABLE_VECTORS ((unsigned)(sizeof(EncodeTables) / sizeof(uint4)))

template <unsigned W> constexpr uint32_t CHUNK = WARP * sizeof(uint4) / sizeof(Token<W>);

template <unsigned W> struct CodeShared {
    uint4 chunk[CHUNKS][WARP];
    uint32_t base[2 * CHUNKS]; // where chunks are in the pool, for a while longer
    EncodeTables tables;       // of the list
};

// The chunk that was begun before the last two is there.
__device__ static __forceinline__ void wait_for_chunk() {
#ifndef ULP_EMULATED
    asm volatile("cp.async.wait_group 2;" ::: "memory");
#endif
    __syncwarp();
}

// The numbers of a block, from the last one to the first.
template <unsigned W> struct Feed {
    const Tokens<W> tokens;
    CodeShared<W> *shared;
    uint32_t arrived; // chunks from this one on

    __device__ __forceinline__ Feed(const Wave &wave, uint32_t b, CodeShared<W> *shared)
        : tokens(wave, b), shared(shared), arrived((wave.block[b].tokens + CHUNK<W> - 1) / CHUNK<W>) {
        begin(1);
        begin(2);
    }

    // The chunk that is so far in front of those that have arrived.
    __device__ __forceinline__ void begin(uint32_t before) {
        if (before <= arrived) {
            const uint32_t chunk = arrived - before, base = tokens.place(CHUNK<W> * chunk);

            shared->base[chunk % (2 * CHUNKS)] = base;
            copy_vector(&shared->chunk[chunk % CHUNKS][lane_id()], (const uint4 *)&tokens.pool[base] + lane_id());
        }
        copies_begun();
    }

    // Numbers from `i` on are wanted, and none that are two chunks behind it.
    __device__ __forceinline__ void want(uint32_t i) {
        while (arrived > i / CHUNK<W>) {
            __syncwarp(); // everybody has read what is written over
            begin(3);
            wait_for_chunk();
            arrived--;
        }
    }

    __device__ __forceinline__ Token<W> at(uint32_t i) const {
        return ((const Token<W> *)shared->chunk[i / CHUNK<W> % CHUNKS])[i % CHUNK<W>];
    }

    __device__ __forceinline__ void put_back(uint32_t i, Token<W> token) const {
        tokens.pool[shared->base[i / CHUNK<W> % (2 * CHUNKS)] + i % CHUNK<W>] = token;
    }
};

// The table of a list on its way to shared memory.
struct TableVectors {
    uint4 vector[(TABLE_VECTORS + WARP - 1) / WARP];

    __device__ __forceinline__ void load(const EncodeTables *from) {
#pragma unroll
        for (uint32_t i = 0; i < (TABLE_VECTORS + WARP - 1) / WARP; i++) {
            if (WARP * i + lane_id() < TABLE_VECTORS)
                vector[i] = __ldg((const uint4 *)from + WARP * i + lane_id());
        }
    }

    __device__ __forceinline__ void store(EncodeTables *to) const {
        __syncwarp();
#pragma unroll
        for (uint32_t i = 0; i < (TABLE_VECTORS + WARP - 1) / WARP; i++) {
            if (WARP * i + lane_id() < TABLE_VECTORS)
                ((uint4 *)to)[WARP * i + lane_id()] = vector[i];
        }
        __syncwarp();
    }
};

// 32 numbers, in the first round of a list perhaps fewer.
template <unsigned W, bool GAPS> struct Round {
    Token<W> token;
    uint32_t step, extra;

    __device__ __forceinline__ Round(Feed<W> *feed, uint32_t first, uint32_t count) : step(0), extra(0) {
        token.number(0);
        feed->want(first);
        if (lane_id() < count) {
            token = feed->at(first + lane_id());
            const Symbol symbol = GAPS ? gap_symbol((uint32_t)token.number()) : value_symbol(token.number());

            step = feed->shared->tables.step[symbol.symbol];
            extra = symbol.extra;
        }
    }

    // Runs the states, and puts beside the numbers what they put out. Returns how many bits this lane's takes.
    __device__ __forceinline__ uint32_t code(Feed<W> *feed, uint32_t first, uint32_t count, uint32_t *state) {
        const uint32_t lane = lane_id(), turn = lane % STREAM_STATES, group = lane / STREAM_STATES;
        uint32_t s = *state, own = 0, own_out = 0;

#pragma unroll
        for (uint32_t j = WARP / STREAM_STATES; j-- > 0;) {
            const uint32_t here = __shfl_sync(ALL_LANES, step, (int)(STREAM_STATES * j + turn));

            if (STREAM_STATES * j + turn < count) {
                const uint32_t out = (s + (here & ((1u << STEP_BITS) - 1))) >> 16;

                own = group == j ? s : own;
                own_out = group == j ? out : own_out;
                s = feed->shared->tables.next[(int32_t)(s >> out) + ((int32_t)here >> STEP_BITS)];
            }
        }
        *state = s;
        if (lane >= count)
            return 0;
        token.put(own & ((1u << own_out) - 1), own_out);
        feed->put_back(first + lane, token);
        return own_out + extra;
    }
};

// A list whose table is in shared memory. Returns the bits of this lane's numbers.
template <unsigned W, bool GAPS>
__device__ static __forceinline__ uint32_t code_list(Feed<W> *feed, uint32_t first, uint32_t count, uint32_t *state) {
    uint32_t in_front = (count - 1) / WARP * WARP, bits;
    Round<W, GAPS> round(feed, first + in_front, count - in_front);

    if (!in_front)
        return round.code(feed, first, count, state);
    Round<W, GAPS> next(feed, first + in_front - WARP, WARP);

    bits = round.code(feed, first + in_front, count - in_front, state);
    for (in_front -= WARP; in_front; in_front -= WARP) { // all lanes from here on
        round = next;
        next = Round<W, GAPS>(feed, first + in_front - WARP, WARP);
        bits += round.code(feed, first + in_front, WARP, state);
    }
    return bits + next.code(feed, first, WARP, state);
}

__device__ static __forceinline__ const EncodeTables *tables_of(const SegmentState &segment, uint32_t list) {
    return list % 2 ? &segment.values[list / 2] : &segment.gaps[list / 2];
}

template <unsigned W> __global__ static void __launch_bounds__(CODE_THREADS) code_blocks(Wave wave) {
    __shared__ CodeShared<W> shared[CODE_THREADS / WARP];
    const uint32_t b = (blockIdx.x * CODE_THREADS + threadIdx.x) / WARP, lane = lane_id();

    if (b >= wave.block_count || *wave.overflow)
        return;
    BlockState &block = wave.block[b];
    const SegmentState &segment = segment_of(wave, wave.blocks[b]);

    if (!block.tokens || !is_coded(segment))
        return;
    Feed<W> feed(wave, b, &shared[threadIdx.x / WARP]);
    const uint32_t counts = numbers_of_list(block, segment.classes, segment.flipped, lane);
    uint32_t lists = __ballot_sync(ALL_LANES, counts != 0), first = block.tokens, state = TANS_STATES, total = 0;
    TableVectors table;

    table.load(tables_of(segment, log2_floor(lists)));
    while (lists) {
        const uint32_t list = log2_floor(lists), count = __shfl_sync(ALL_LANES, counts, (int)list);

        table.store(&feed.shared->tables);
        lists ^= 1u << list;
        if (lists)
            table.load(tables_of(segment, log2_floor(lists)));
        first -= count;
        const uint32_t bits = warp_sum(list % 2 ? code_list<W, false>(&feed, first, count, &state)
                                                : code_list<W, true>(&feed, first, count, &state));

        if (lane == 0)
            block.bits[list] = bits;
        total += bits;
    }
    if (lane < STREAM_STATES)
        block.states[lane] = state - TANS_STATES;
    if (lane == 0)
        block.bytes = (total + STREAM_STATES * TANS_LOG + 1 + 7) / 8;
}

template <unsigned W> void encode_payload_code(const Wave &wave, cudaStream_t stream) {
    launch(code_blocks<W>, (wave.block_count * WARP + CODE_THREADS - 1) / CODE_THREADS, CODE_THREADS, 0, stream, wave);
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
